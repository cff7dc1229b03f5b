"""From what a reader's function answers to which known mistake it makes."""
