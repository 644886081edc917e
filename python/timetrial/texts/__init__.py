"""Texts and series of unequal lengths: words, their numbers, padding, and a loader for each form of files."""
