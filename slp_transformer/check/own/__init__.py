"""A Transformer of a reader's own functions: put together, trained, and shown."""

from slp_transformer.check.own.wrong_part import follow

__all__ = ["follow"]
