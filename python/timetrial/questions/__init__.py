"""What is asked of a contender to prove it, and what it showed then."""
