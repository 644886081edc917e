"""The libraries of the user's own process: what is loaded, and settings for a while."""
