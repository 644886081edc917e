"""Analysis: from stamps to estimates with intervals. Pure functions; the formulas stand beside them."""
