"""The commands `tab` and `convert`."""
