"""Heats: launches that are alive together and take turns; what a launch is they do not know."""
