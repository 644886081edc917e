"""Loads adapters and the C module by their paths. Syntax and modules of Python 3.6."""

import importlib.machinery
import importlib.util
import os
import sys

from failures import ContenderError

MODULE = "_timetrial_runtime"


def load_runtime_module(folder):
    """The recorder and the timed loop, from the folder that the job names."""
    path = os.path.join(folder, MODULE + ".abi3.so")
    loader = importlib.machinery.ExtensionFileLoader(MODULE, path)
    spec = importlib.util.spec_from_loader(MODULE, loader, origin=path)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def load_adapter(path):
    """An instance of the class Adapter in the file."""
    spec = importlib.util.spec_from_file_location("timetrial_loaded_adapter", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    # An adapter may be split into several files, imported by name from its own folder.
    sys.path.insert(0, os.path.dirname(path))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(os.path.dirname(path))
    adapter = getattr(module, "Adapter", None)
    if adapter is None:
        raise ContenderError("crash", "{}: there is no class 'Adapter' in it".format(path))
    return adapter()
