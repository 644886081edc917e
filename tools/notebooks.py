"""Notebooks with their outputs: `check` says what is wrong with them, `run` executes them and keeps those.

`run` measures for real, which takes as long as the notebooks say; folders of earlier runs are taken from the
variables that they name. What differs from run to run and tells nobody anything is left out: times of cells,
progress, paths of this machine. TIMETRIAL_NOTEBOOK_QUICK=1 tries it out: such outputs do not pass the check.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import io
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

MOST_BYTES = 300_000  # of a notebook: a code host still shows it
KEY = "timetrial"  # in a notebook's metadata: which code its outputs are of
QUICK = "TIMETRIAL_NOTEBOOK_QUICK"
CELL_TIMEOUT_S = 4 * 3600  # thirty frameworks in one cell
_MACHINE = re.compile(r"(?<![\w.~])/(?:home|root|tmp|work|mnt|srv|opt|Users|usr/local)/[\w.-]+")
_MARKS = {"execution", "collapsed", "scrolled"}  # what a program of notebooks writes into a cell

Notebook = dict[str, Any]


def code_cells(notebook: Notebook) -> list[Notebook]:
    """Those that hold something."""
    return [
        cell for cell in notebook["cells"] if cell["cell_type"] == "code" and "".join(cell["source"]).strip()
    ]


def code_hash(notebook: Notebook) -> str:
    """Of the code, whatever came out of it."""
    code = "\0".join("".join(cell["source"]) for cell in code_cells(notebook))
    return hashlib.sha256(code.encode()).hexdigest()[:16]


def faults(notebook: Notebook, size: int = 0) -> list[str]:
    """Why its outputs are not those that a reader should see; `size`: of the file, in bytes."""
    found = []
    cells = code_cells(notebook)
    ran = [cell.get("execution_count") for cell in cells]
    if ran != [*range(1, len(cells) + 1)]:
        found.append("its cells were not executed once each, from the first to the last")
    known = notebook["metadata"].get(KEY, {})
    if known.get("code") != code_hash(notebook):
        found.append("its outputs are of other code")
    if known.get("quick"):
        found.append("its outputs are of a quick run, which measures nothing worth reading")
    outputs = [one for cell in cells for one in cell.get("outputs", [])]
    if not any("image/png" in one.get("data", {}) for one in outputs):
        found.append("it has no figure")
    found += [
        f"an error: {one['ename']}: {one['evalue']}" for one in outputs if one["output_type"] == "error"
    ]
    found += ["a line of progress or a warning" for one in outputs if one.get("name") == "stderr"]
    for path in sorted({*_MACHINE.findall(_text(outputs))}):
        found.append(f"a path of a machine: {path}")
    marks = {mark for cell in notebook["cells"] for mark in cell["metadata"]} & _MARKS
    found += [f"metadata of a cell: {mark}" for mark in sorted(marks)]
    if size > MOST_BYTES:
        found.append(f"{size // 1000} kB; a code host shows up to {MOST_BYTES // 1000} kB")
    return found


def _text(outputs: list[Notebook]) -> str:
    """Everything in outputs that is read, without figures."""
    readable = [
        {
            **one,
            "data": {
                kind: said for kind, said in one.get("data", {}).items() if not kind.startswith("image/")
            },
        }
        for one in outputs
    ]
    return json.dumps(readable)


def cleaned(notebook: Notebook, *, root: Path, quick: bool) -> Notebook:
    """An executed notebook as it is kept. `root`: of the repository, which outputs name as `..`."""
    names = {str(root): "..", str(Path.home()): "~"}
    for cell in notebook["cells"]:
        cell["metadata"] = {key: said for key, said in cell["metadata"].items() if key not in _MARKS}
        if cell["cell_type"] == "code":
            outputs = [one for one in cell["outputs"] if not _is_progress(one)]
            cell["outputs"] = [_plain(one, names) for one in outputs]
    language = {"name": "python"}
    notebook["metadata"] = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": language,
        KEY: {"code": code_hash(notebook), **({"quick": True} if quick else {})},
    }
    return notebook


def _is_progress(output: Notebook) -> bool:
    """Whatever came to standard error, and the line that was emptied when all was done."""
    data = output.get("data")
    return output.get("name") == "stderr" or (data is not None and not any(data.values()))


def _plain(value: Any, names: dict[str, str]) -> Any:
    """The same, with short names in place of folders; images as they are."""
    if isinstance(value, dict):
        return {key: said if key.startswith("image/") else _plain(said, names) for key, said in value.items()}
    if isinstance(value, list):
        return [_plain(one, names) for one in value]
    if isinstance(value, str):
        for folder, name in names.items():
            value = value.replace(folder, name)
    return value


def smaller(figure: str) -> str:
    """A PNG in base64 with 256 colors, which nobody can tell from more in a figure, if that is smaller."""
    from PIL import Image

    data, kept = base64.b64decode(figure), io.BytesIO()
    picture = Image.open(io.BytesIO(data)).convert("RGB")
    few = picture.quantize(256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(kept, "png", optimize=True)
    return min(base64.b64encode(kept.getvalue()).decode(), figure.strip(), key=len)


def execute(path: Path, kept: Path, root: Path) -> None:
    """Runs it in its folder, in a kernel of this interpreter, and writes it with outputs to `kept`."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    where: Any = {"metadata": {"path": str(path.parent)}}
    client = NotebookClient(
        notebook, timeout=CELL_TIMEOUT_S, kernel_name="python3", resources=where, record_timing=False
    )
    client.execute()
    for cell in notebook.cells:
        for data in (one.data for one in cell.get("outputs", []) if "data" in one):
            data.update({kind: smaller(said) for kind, said in data.items() if kind == "image/png"})
    quick = os.environ.get(QUICK, "") not in ("", "0")
    document = cleaned(json.loads(nbformat.writes(notebook)), root=root, quick=quick)
    kept.write_text(
        json.dumps(document, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8"
    )


def main() -> int:
    """0 if all is well, 1 with the faults named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=("check", "run"))
    parser.add_argument("notebooks", nargs="+", type=Path)
    parser.add_argument("--into", type=Path, help="a folder for the executed ones, instead of where they are")
    asked = parser.parse_args()
    failed = False
    for path in asked.notebooks:
        kept = asked.into / path.name if asked.into else path
        if asked.what == "run":
            print(f"{path}: running", flush=True)
            execute(path, kept, Path(__file__).resolve().parents[1])
        for fault in faults(json.loads(kept.read_text(encoding="utf-8")), kept.stat().st_size):
            failed = True
            print(f"{kept}: {fault}", file=sys.stderr)
    if failed and asked.what == "check":
        print("`make notebooks-outputs` executes them and keeps what comes out.", file=sys.stderr)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
