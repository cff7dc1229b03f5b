"""Tabs in the files of other programs. Strings are numbered here from 1, the highest, as players
do; what counts otherwise is converted at its own door, and nowhere else.
"""
