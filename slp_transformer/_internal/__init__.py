"""What the rest of the package is built on, and nobody else needs: checks, shape types, fast paths.

Nothing here is part of the public interface.
"""
