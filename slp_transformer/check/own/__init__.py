"""A Transformer of a reader's own functions: put together, trained, and shown."""
