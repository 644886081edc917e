"""What the parent sees of a contender that runs: processes, threads, and what disturbs them."""
