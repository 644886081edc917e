"""Results over time: what changed from one to a later one, and the file that a number joins each time."""
