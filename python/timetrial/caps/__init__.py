"""What of the machine a contender may have at most, who keeps it to that, and what shows that it was kept."""
