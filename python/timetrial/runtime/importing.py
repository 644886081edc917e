"""What this interpreter imports from: not our own modules. Syntax and modules of Python 3.6."""

import os
import sys

PACKAGES = ("site-packages", "dist-packages")
# Folders of whatever is installed, and not of a working tree that happens to lie around it.
INSTALLED = (*PACKAGES, "python{}.{}".format(*sys.version_info[:2]))
ADVICE = 'only committed files are in a revision; to build and install it: --base-setup "pip install -e ."'


class Checkout(object):
    """Another checkout in the place of the working tree, of which nothing is imported; or none."""

    def __init__(self, folder=None, instead_of=None):
        self._tops = folder and [os.path.realpath(one) + os.sep for one in (folder, instead_of)]
        self._seen = set(sys.modules)

    def is_foreign(self, path):
        """Whether it lies in the working tree, and is no installed package's nor this interpreter's."""
        if self._tops is None:
            return False
        path = os.path.realpath(path) + os.sep
        is_there = path.startswith(self._tops[1]) and not path.startswith(self._tops[0])
        return is_there and not set(INSTALLED).intersection(path.split(os.sep))

    def leave_out(self):
        """Of the path, what lies in the working tree: an editable install may have put it there."""
        sys.path[:] = [entry for entry in sys.path if not self.is_foreign(entry or ".")]

    def problem(self, **files):
        """What was imported from the working tree by now, by whatever means, or is one of `files` and lies
        there, in words; None: nothing."""
        for name in set(sys.modules) - self._seen:
            files[name] = getattr(sys.modules[name], "__file__", None)
        self._seen.update(sys.modules)
        for name, file in sorted(files.items()):
            if file and self.is_foreign(file):
                words = "'{}' was imported from the working tree ({}), not from {}; {}"
                return words.format(name, file, self._tops[0], ADVICE)
        return None

    def hint(self, error):
        """What to think of where something is missing."""
        is_missing = isinstance(error, (ImportError, FileNotFoundError))
        return "; {}".format(ADVICE) if self._tops and is_missing else ""


def leave_the_path():
    """Frameworks and the user's code must not find our modules under such plain names."""
    own = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != own]


def add_folders(folders, first):
    """`folders` before this interpreter's own, or behind them."""
    rest = [entry for entry in sys.path if entry not in folders]
    new = [folder for folder in folders if first or folder not in sys.path]
    sys.path[:] = new + rest if first else sys.path + new
