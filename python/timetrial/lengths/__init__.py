"""Sequences of unequal lengths: how many of their steps count, and how fast a row is by those."""
