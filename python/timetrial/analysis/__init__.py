"""Analysis: from records and their stamps to rows with intervals. The formulas are in statistics/."""
