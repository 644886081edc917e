"""What this interpreter has, without importing it: look.py MODULE=DISTRIBUTION[,DISTRIBUTION] ...

Prints one JSON object. Syntax and modules of Python 3.6, which has no importlib.metadata: distributions are
read from their folders.
"""

import io
import json
import os
import platform
import re
import sys
from importlib.util import find_spec


def canonical(name):
    """The name by which pip compares: Theano_PyMC is theano-pymc."""
    return re.sub(r"[-_.]+", "-", name).lower()


def information_folders():
    """Every *.dist-info and *.egg-info on the path; what comes first on the path wins, as in an import."""
    for entry in sys.path:
        try:
            names = sorted(os.listdir(entry or "."))
        except OSError:
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info")):
                yield os.path.join(entry, name)


def header(folder, key):
    """A field of a distribution's metadata; None where it has none."""
    for name in ("METADATA", "PKG-INFO", ""):
        path = os.path.join(folder, name) if name else folder  # a .egg-info may be one file
        try:
            with io.open(path, encoding="utf-8", errors="replace") as lines:
                for line in lines:
                    if line.startswith(key + ":"):
                        return line.partition(":")[2].strip()
                    if not line.strip():
                        break
        except OSError:
            continue
    return None


def distributions():
    """Canonical name -> (version, folder)."""
    found = {}
    for folder in information_folders():
        name, version = header(folder, "Name"), header(folder, "Version")
        if name and version:
            found.setdefault(canonical(name), (version, folder))
    return found


def owner(module, found):
    """The version of the distribution that brought a module, whatever that one is called."""
    for version, folder in found.values():
        try:
            with io.open(os.path.join(folder, "RECORD"), encoding="utf-8", errors="replace") as lines:
                if any(line.startswith((module + "/__init__.", module + ".")) for line in lines):
                    return version
        except OSError:
            continue
    return None


def has_module(name):
    """Whether an import would find it. A folder without __init__ is found too, and is no framework."""
    try:
        spec = find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return False
    return spec is not None and spec.origin is not None


def main():
    """What the arguments ask."""
    sys.path.pop(0)  # this file's folder: a contender leaves it too
    found = distributions()
    versions = {}
    for word in sys.argv[1:]:
        module, _, names = word.partition("=")
        if not has_module(module):
            versions[word] = None
            continue
        known = [found[canonical(name)][0] for name in names.split(",") if canonical(name) in found]
        versions[word] = known[0] if known else owner(module, found) or "unknown"
    answer = {
        "version": platform.python_version(),
        "implementation": platform.python_implementation(),
        "modules": versions,
        "distributions": {name: version for name, (version, _) in sorted(found.items())},
        "base": os.path.join(getattr(sys, "base_prefix", sys.prefix), "bin"),
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
