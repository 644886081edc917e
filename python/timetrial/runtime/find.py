"""Where a module lies and what it defines, without running any of it: find.py MODULE FOLDERS first|behind
[CHECKOUT WORKING_TREE].

FOLDERS is a JSON list, put before or behind this interpreter's own. Prints one JSON object. Syntax and
modules of Python 3.6.
"""

import ast
import json
import os
import pkgutil
import sys
import tokenize

import importing


def find_spec(name, path):
    """As an import would find it below `path`."""
    for finder in sys.meta_path:
        if hasattr(finder, "find_spec"):
            spec = finder.find_spec(name, path)
            if spec is not None:
                return spec
    return None


def locate(module):
    """The spec of a dotted name; or what is missing, and what is there instead."""
    path, spec, parts = None, None, module.split(".")
    for depth in range(len(parts)):
        name = ".".join(parts[: depth + 1])
        if depth and path is None:
            return None, {"missing": name, "near": [], "plain": ".".join(parts[:depth])}
        spec = find_spec(name, path)
        if spec is None:
            return None, {"missing": name, "near": sorted({one.name for one in pkgutil.iter_modules(path)})}
        path = spec.submodule_search_locations
    return spec, {}


def required_of(arguments):
    """Names of the arguments that a call must give."""
    plain = list(getattr(arguments, "posonlyargs", [])) + list(arguments.args)
    needed = [one.arg for one in plain[: len(plain) - len(arguments.defaults)]]
    return needed + [
        one.arg for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults) if default is None
    ]


def kind_of(node):
    """What a definition makes of its name."""
    if isinstance(node, ast.ClassDef):
        return {"kind": "class"}
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        if node.decorator_list:  # which may have made anything of it
            return {"kind": "value"}
        if isinstance(node, ast.AsyncFunctionDef):
            return {"kind": "coroutine"}
        return {"kind": "function", "required": required_of(node.args)}
    try:
        ast.literal_eval(node.value)
        return {"kind": "constant"}
    except (ValueError, TypeError, AttributeError):
        return {"kind": "value"}


def bound_names(target):
    """Names that an assignment, a loop or a `with` binds."""
    return [
        node.id for node in ast.walk(target) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]


def makes_names(tree):
    """Whether names may come into being that no statement shows."""
    return any(
        isinstance(node, ast.Name) and node.id in ("globals", "exec", "vars") for node in ast.walk(tree)
    )


class Names(object):
    """The names that a module's own level binds. `dynamic`: there may be others."""

    def __init__(self):
        self.found = {}
        self.dynamic = False

    def add(self, name, what):
        """A second binding leaves open which one holds."""
        self.found[name] = {"kind": "value"} if name in self.found else what

    def read(self, statements):
        """Into branches, but not into functions and classes."""
        for node in statements:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                self.dynamic |= node.name == "__getattr__"
                self.add(node.name, kind_of(node))
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    plain = isinstance(target, ast.Name)
                    for name in bound_names(target):
                        self.add(name, kind_of(node) if plain else {"kind": "value"})
            elif isinstance(node, ast.AnnAssign):
                for name in bound_names(node.target):
                    self.add(name, kind_of(node))
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                for alias in node.names:
                    self.dynamic |= alias.name == "*"
                    self.add((alias.asname or alias.name).split(".")[0], {"kind": "import"})
            else:
                for name in bound_names(node):
                    self.add(name, {"kind": "value"})
                for part in ("body", "orelse", "finalbody"):
                    self.read(getattr(node, part, []))
                for inner in getattr(node, "handlers", []) + getattr(node, "cases", []):
                    self.read(inner.body)


def names_of(path):
    """{"names", "dynamic"} of a source file, or {"syntax"}."""
    try:
        with tokenize.open(path) as file:
            tree = ast.parse(file.read(), path)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        place = "{}:{}".format(path, line) if line else path
        return {"syntax": "{}: {}".format(place, getattr(error, "msg", None) or error)}
    names = Names()
    names.read(tree.body)
    return {"names": names.found, "dynamic": names.dynamic or makes_names(tree)}


def main():
    """One module."""
    importing.leave_the_path()
    importing.Checkout(*sys.argv[4:]).leave_out()
    importing.add_folders(json.loads(sys.argv[2]), sys.argv[3] == "first")
    spec, answer = locate(sys.argv[1])
    if spec is not None:
        file = spec.origin if spec.has_location else None
        answer = {"file": file}
        if file and file.endswith(".py") and os.path.isfile(file):
            answer.update(names_of(file))
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
