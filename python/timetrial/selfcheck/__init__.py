"""timetrial asking itself: how often is a verdict wrong on this machine? `timetrial self-check`.

checks.py has the questions, each a race whose answer is known; run.py asks them; tally.py counts.
"""
