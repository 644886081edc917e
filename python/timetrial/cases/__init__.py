"""One point of an experiment: keys, grammar, axes, and what a file may say. Imports nothing that runs."""
