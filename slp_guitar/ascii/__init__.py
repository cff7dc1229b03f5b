"""ASCII tablature: read as people publish it, and written so that it is read back as it was."""
