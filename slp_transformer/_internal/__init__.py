"""Internals that the rest of the package builds on: checks, shape types, fast paths.

Nothing here is part of the public interface.
"""
