"""Tables of checks, one row a mistake: a file for the exercises of a part of the book."""
