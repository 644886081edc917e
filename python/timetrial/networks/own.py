"""A network of the user's own: a .toml file, or a function that returns the same content.

    dataset = "digits28"                  # these four are optional
    batch_size = 64
    epochs = 12
    optimizer = { name = "sgd", learning_rate = 0.02, momentum = 0.9 }

    [[nodes]]
    name = "fc1"
    kind = "dense"
    inputs = ["images"]                   # optional: the node before; for the first node, the images
    attributes = { units = "classes" }    # "classes": as many as the dataset has

    [[nodes]]
    name = "loss"
    kind = "softmax_cross_entropy"
    inputs = ["fc1", "labels"]

A function may return such a mapping, a list of nodes, or a NetworkDefinition.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from timetrial.errors import InputError, nearest
from timetrial.networks.definition import NetworkDefinition, Node
from timetrial.optimizers import check_optimizer
from timetrial.paths import user_path
from timetrial.toml import read_toml

KEYS = ("name", "nodes", "dataset", "batch_size", "optimizer", "epochs")
NODE_KEYS = ("name", "kind", "inputs", "attributes")


def network_from_toml(path: str) -> NetworkDefinition:
    """Reads a network file; errors name the file."""
    file = user_path(path)
    content = read_toml(file, "The network file")
    return _definition(content, default_name=file.stem, where=f"The network file {file}")


def network_from_function(source: str) -> NetworkDefinition:
    """Calls "package.module:function"; the working directory is on the import path, as with `python -m`."""
    module_name, _, function_name = source.partition(":")
    if not module_name or not function_name:
        raise InputError(f"'{source}' is not a function: write it as \"package.module:function\".")
    with _working_directory_importable():
        try:
            module = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            raise InputError(
                f"The network '{source}' needs the module '{error.name}', which is not there. Looked in the "
                f"working directory {Path.cwd()} and in the packages of {sys.executable}."
            ) from None
        except Exception as error:
            raise InputError(f"The module of the network '{source}' failed: {_words(error)}.") from error
        function = getattr(module, function_name, None)
        if not callable(function):
            if function is not None:
                raise InputError(f"'{source}' is {function!r}; expected a function.")
            functions = [name for name, value in vars(module).items() if callable(value)]
            raise InputError(
                f"The module '{module_name}' has no '{function_name}'.{nearest(function_name, functions)}"
            )
        try:
            content = function()
        except Exception as error:
            raise InputError(f"The network function '{source}' failed: {_words(error)}.") from error
    return _definition(content, default_name=function_name, where=f"The network function '{source}'")


def _definition(content: object, *, default_name: str, where: str) -> NetworkDefinition:
    if isinstance(content, NetworkDefinition):
        return content
    if isinstance(content, list):
        content = {"nodes": content}
    if not isinstance(content, Mapping):
        raise InputError(
            f"{where} gave a {type(content).__name__}; expected a list of nodes, a mapping with 'nodes', "
            "or a NetworkDefinition."
        )
    for key in content:
        if key not in KEYS:
            raise InputError(f"{where} has the unknown key '{key}'.{nearest(str(key), KEYS)}")
    optional = {key: content[key] for key in ("dataset", "batch_size", "epochs", "name") if key in content}
    for key, kind in (("dataset", str), ("name", str), ("batch_size", int), ("epochs", int)):
        value = optional.get(key)
        if key in optional and (not isinstance(value, kind) or isinstance(value, bool)):
            raise InputError(
                f"{where}: '{key}' is {value!r}; expected {'a word' if kind is str else 'a number'}."
            )
    if "optimizer" in content:
        optional["optimizer"] = check_optimizer(content["optimizer"])
    optional.setdefault("name", default_name)
    return NetworkDefinition(nodes=_nodes(content.get("nodes"), where), **optional)


def _nodes(nodes: object, where: str) -> list[Node]:
    if not isinstance(nodes, list) or not nodes:
        raise InputError(f"{where} has no nodes; expected a list of {{name, kind, inputs, attributes}}.")
    result: list[Node] = []
    for position, node in enumerate(nodes, start=1):
        if not isinstance(node, Mapping):
            raise InputError(
                f"{where}: node {position} is {node!r}; expected {{name, kind, inputs, attributes}}."
            )
        title = (
            f"{where}: node {position} ('{node['name']}')" if "name" in node else f"{where}: node {position}"
        )
        for key in node:
            if key not in NODE_KEYS:
                raise InputError(
                    f"{title} has the unknown key '{key}'.{nearest(str(key), NODE_KEYS)} "
                    "What belongs to the layer goes into 'attributes'."
                )
        for key in ("name", "kind"):
            if not isinstance(node.get(key), str) or not node[key]:
                raise InputError(f"{title}: '{key}' is {node.get(key)!r}; expected a word.")
        result.append(_node(node, title))
    return result


def _node(node: Mapping[str, Any], title: str) -> Node:
    attributes = node.get("attributes", {})
    if not isinstance(attributes, Mapping):
        raise InputError(
            f"{title}: 'attributes' is {attributes!r}; expected a table such as {{ units = 10 }}."
        )
    result: Node = {"name": node["name"], "kind": node["kind"], "attributes": dict(attributes)}
    if "inputs" in node:
        inputs = node["inputs"]
        if not isinstance(inputs, list) or not all(isinstance(name, str) for name in inputs):
            raise InputError(f"{title}: 'inputs' is {inputs!r}; expected a list of names of nodes.")
        result["inputs"] = list(inputs)
    return result


@contextmanager
def _working_directory_importable() -> Iterator[None]:
    folder = os.getcwd()
    if folder in sys.path:
        yield
        return
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        if folder in sys.path:
            sys.path.remove(folder)


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
