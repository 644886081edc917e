"""In a real kernel: functions of cells are measured, and each result is displayed once."""

from __future__ import annotations

from typing import Any

import pytest

CELLS = [
    "import timetrial as tt\nscale = 2.0",
    "def make_before():\n    return lambda: scale\n\ndef make_after():\n    return lambda: 2 * scale",
    "results = tt.run(callable=[make_before, make_after], threads=1, launches=1)\nresults",
    "results.sel(callable=make_after)",
    "results.rows[0]",
    "tt.doctor()",
    "tt.race(lambda: print, open)",
]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> list[list[Any]]:
    """Of each cell."""
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in CELLS])
    folder = tmp_path_factory.mktemp("notebook")
    where: dict[str, Any] = {"metadata": {"path": str(folder)}}
    client = nbclient.NotebookClient(notebook, timeout=120, resources=where, allow_errors=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIMETRIAL_LOCK", str(folder / "lock"))  # whoever else measures on this machine
        client.execute()
    return [cell.outputs for cell in notebook.cells]


def displayed(cell: list[Any]) -> list[Any]:
    """Without the line of progress that is gone."""
    shown = [one for one in cell if one.output_type in ("display_data", "execute_result")]
    return [one for one in shown if any(one["data"].values())]


def test_functions_of_cells_are_measured(outputs: list[list[Any]]) -> None:
    [shown] = displayed(outputs[2])
    assert "make_before" in shown["data"]["text/plain"]
    assert "make_after" in shown["data"]["text/html"]
    assert "carried_" not in shown["data"]["text/html"].split("again:")[0]


@pytest.mark.parametrize("cell", [2, 3, 4, 5])
def test_each_result_is_displayed_once(outputs: list[list[Any]], cell: int) -> None:
    [shown] = displayed(outputs[cell])
    assert shown["data"]["text/plain"].strip()


def test_progress_is_one_line_that_goes(outputs: list[list[Any]]) -> None:
    assert not [one for one in outputs[2] if one.output_type == "stream" and one.name == "stderr"]
    shown = [one["data"] for one in outputs[2] if one.output_type == "display_data"]
    assert {"text/plain": "", "text/html": ""} in shown


def test_what_cannot_be_carried_is_an_error_in_words(outputs: list[list[Any]]) -> None:
    [error] = [one for one in outputs[6] if one.output_type == "error"]
    assert error["ename"] == "InputError"
    assert "'open' needs file" in error["evalue"]


def test_results_lie_beside_the_notebook(outputs: list[list[Any]]) -> None:
    [shown] = displayed(outputs[2])
    assert "records: results/" in shown["data"]["text/plain"]
