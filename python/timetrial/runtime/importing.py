"""What this interpreter imports from: not our own modules. Syntax and modules of Python 3.6."""

import os
import sys


def leave_the_path():
    """Frameworks and the user's code must not find our modules under such plain names."""
    own = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != own]


def add_folders(folders, first):
    """`folders` before this interpreter's own, or behind them."""
    rest = [entry for entry in sys.path if entry not in folders]
    new = [folder for folder in folders if first or folder not in sys.path]
    sys.path[:] = new + rest if first else sys.path + new
