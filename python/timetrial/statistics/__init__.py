"""Statistics of plain arrays: steady states, intervals, verdicts. Imports nothing else of ours."""
