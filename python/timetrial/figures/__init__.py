"""Figures: drawn from results with matplotlib, readable at half size, dark and light."""
