"""No package stands on one that stands on it, and none has become a house of its own."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import timetrial

PACKAGE = Path(timetrial.__file__).parent
# They run in interpreters of their own, with other rules: no import of timetrial at all.
ELSEWHERE = {"runtime", "frameworks"}
# What an object opens when somebody calls it, long after everything is imported: (from, to) -> what for.
DOORS = {
    ("analysis", "report"): "a row's repr has the words of the table",
    (
        "contenders",
        "building",
    ): "a backend that stands on a library of this machine is built when it is first asked for",
    ("in_process", "report"): "what is loaded or in force is shown as a table",
    ("tuning", "report"): "what was found is shown as a table",
    ("results", "exports"): "results.export()",
    ("results", "scaling"): "results.lines()",
}
MOST_LINES = 2_700  # of one package

Edges = Mapping[tuple[str, str], list[str]]


def package_of(module: str) -> str:
    """'launch' of 'timetrial.launch.run'; a module beside the packages stands for itself."""
    return module.split(".")[1] if "." in module else ""


def imported(tree: ast.Module) -> Iterator[tuple[str, bool]]:
    """Modules of ours that a file imports when it runs, and whether only a call of a function does."""

    def walk(node: ast.AST, late: bool) -> Iterator[tuple[str, bool]]:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            return
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("timetrial"):
            if node.module == "timetrial":
                yield from ((f"timetrial.{alias.name}", late) for alias in node.names)
            else:
                yield str(node.module), late
        if isinstance(node, ast.Import):
            yield from ((one.name, late) for one in node.names if one.name.startswith("timetrial."))
        is_late = late or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for child in ast.iter_child_nodes(node):
            yield from walk(child, is_late)

    yield from walk(tree, False)


def edges_of(sources: Mapping[str, str]) -> tuple[Edges, set[tuple[str, str]]]:
    """Which package imports which, by module name and text; the doors that were used are not among them."""
    edges: dict[tuple[str, str], list[str]] = {}
    doors = set()
    for module, text in sources.items():
        for target, late in imported(ast.parse(text)):
            edge = package_of(module), package_of(target)
            if edge[0] == edge[1]:
                continue
            if late and edge in DOORS:
                doors.add(edge)
                continue
            edges.setdefault(edge, []).append(f"{module} imports {target}")
    return edges, doors


def circle_in(edges: Edges) -> list[str]:
    """One circle, as the imports that make it; empty: there is none."""
    onward: dict[str, list[str]] = {}
    for a, b in edges:
        onward.setdefault(a, []).append(b)
    done: set[str] = set()

    def search(here: str, path: list[str]) -> list[str]:
        if here in path:
            around = [*path[path.index(here) :], here]
            return [edges[pair][0] for pair in itertools.pairwise(around)]
        if here in done:
            return []
        for there in onward.get(here, ()):
            if found := search(there, [*path, here]):
                return found
        done.add(here)
        return []

    return next((found for start in onward if (found := search(start, []))), [])


@pytest.fixture(scope="module")
def sources() -> dict[str, str]:
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if (len(parts) > 1 and parts[0] in ELSEWHERE) or (path.parent == PACKAGE and path.stem == "__init__"):
            continue
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        found[".".join(("timetrial", *parts))] = path.read_text(encoding="utf-8")
    return found


def test_no_packages_import_each_other_in_a_circle(sources: dict[str, str]) -> None:
    edges, doors = edges_of(sources)
    assert circle_in(edges) == []
    assert doors == set(DOORS)  # one that nobody uses any more is closed


def test_a_circle_is_found() -> None:
    edges, _ = edges_of(
        {
            "timetrial.cases.case": "from timetrial.launch.run import run_launch",
            "timetrial.launch.run": "from timetrial.proof import judge",
            "timetrial.proof.judge": "def f():\n    import timetrial.cases.case",
            "timetrial.records.model": "from timetrial.errors import InputError",
        }
    )
    assert circle_in(edges) == [
        "timetrial.cases.case imports timetrial.launch.run",
        "timetrial.launch.run imports timetrial.proof",
        "timetrial.proof.judge imports timetrial.cases.case",
    ]


def test_a_door_is_one_only_for_a_call() -> None:
    edges, _ = edges_of({"timetrial.results.results": "from timetrial.exports import export"})
    assert edges
    edges, _ = edges_of({"timetrial.results.results": "def f():\n    from timetrial.exports import export"})
    assert not edges


@pytest.mark.parametrize(
    ("lowest", "may_import"),
    [
        ("statistics", set()),
        ("records", {"cautions", "errors", "npy", "optimizers", "paths"}),
        ("cases", {"errors", "optimizers", "paths", "records", "toml", "workloads"}),
        ("errors", set()),
    ],
)
def test_what_everything_stands_on_stands_on_little(
    sources: dict[str, str], lowest: str, may_import: set[str]
) -> None:
    edges, _ = edges_of(sources)
    assert {b for a, b in edges if a == lowest} <= may_import


def test_no_package_is_too_large(sources: dict[str, str]) -> None:
    lines: dict[str, int] = {}
    for module, text in sources.items():
        lines[package_of(module)] = lines.get(package_of(module), 0) + len(text.splitlines())
    assert {name: count for name, count in lines.items() if count > MOST_LINES} == {}


def test_contributing_says_what_belongs_into_each_package(sources: dict[str, str]) -> None:
    text = (PACKAGE.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    named = {name for line in text.splitlines() if line.startswith("| `python/") for name in _names(line)}
    assert named == folders | ELSEWHERE


def _names(row: str) -> list[str]:
    return [
        name.rpartition("/")[2] for name in row.split("|")[1].replace("`", "").replace(" ", "").split(",")
    ]


def test_no_two_test_files_have_one_name() -> None:
    """pytest imports them by their names alone."""
    names = [path.name for path in Path(__file__).parents[1].rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))
