"""Tabs in the files of other programs.

Strings are numbered here from 1, the highest, as players do. Each format converts its own numbers.
"""
