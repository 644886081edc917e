"""The proof: does a contender compute what the workload says? What it shows, the judge, the verdict."""
