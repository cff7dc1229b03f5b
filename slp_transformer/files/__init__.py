"""Files: written whole or not at all, memory-mapped tokens, downloads, and bars that show progress.

It knows nothing of models.
"""
