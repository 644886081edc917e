"""The command line: one thin file per verb. What a verb needs is imported when it runs."""
