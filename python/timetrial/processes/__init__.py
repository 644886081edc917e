"""A contender as a process: how it is started, spoken to over its pipes (PROTOCOL.md), and ended."""
