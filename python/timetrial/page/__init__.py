"""`timetrial report`: results as one file of HTML, without scripts and without the network.

What it says are the words and numbers of the terminal: each part asks the function that the terminal asks.
"""
