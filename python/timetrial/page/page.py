"""The page: a section per result, under a table of contents where there are several."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import timetrial
from timetrial.errors import InputError, MeasurementError, Unavailable
from timetrial.page.figures import figures_available
from timetrial.page.parts import Block, Section
from timetrial.page.race_section import race_section
from timetrial.page.run_section import run_section
from timetrial.page.together import Found, machines_block, over_time_block
from timetrial.paths import user_path
from timetrial.records import store
from timetrial.results.loading import load
from timetrial.results.race import Race

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup

_TEMPLATE = "template.html.jinja"
_CODE = re.compile(r"`([^`\n]+)`")


def write_report(
    records: Sequence[str | Path], output: str | Path, *, title: str = "", results: Path = Path("results")
) -> Path:
    """Writes the page of these records (folders, ids under `results`, `last`) and says where it is. A record
    that is damaged or unfinished is said to be so in its section.

    InputError: there is no such record, or no such folder for the page; Unavailable: Jinja or matplotlib is
    missing; both before anything is computed.
    """
    path = _checked(user_path(output))
    folders = list(dict.fromkeys(store.find(one, results) for one in records))
    _write(path, page(folders, title))
    return path


def page(folders: Sequence[Path], title: str = "") -> str:
    """The HTML of the records in these folders."""
    template = _template()
    figures_available()
    sections, whole = [], []
    for number, folder in enumerate(folders, 1):
        section, found = _section(folder, f"r{number}")
        sections.append(section)
        whole += [found] if found is not None else []
    shared = [machines_block(whole), over_time_block(whole)]
    title = title or (sections[0].title if len(sections) == 1 else f"{len(sections)} results")
    return _rendered(template, title, sections, [block for block in shared if block])


def rendered(title: str, sections: Sequence[Section], shared: Sequence[Block]) -> str:
    """The HTML of these sections. Unavailable: there is no Jinja."""
    return _rendered(_template(), title, sections, shared)


def _rendered(template: Template, title: str, sections: Sequence[Section], shared: Sequence[Block]) -> str:
    return template.render(title=title, sections=sections, shared=shared, version=timetrial.__version__)


def _section(folder: Path, anchor: str) -> tuple[Section, Found | None]:
    try:
        found = load(folder)
        if isinstance(found, Race):
            return race_section(found, anchor), found
        return run_section(found, anchor), found
    except InputError as error:
        said = ["This record cannot be read.", str(error)]
        return Section(anchor, folder.name, "", "", said, [], []), None


def _template() -> Template:
    try:
        from jinja2 import Environment, StrictUndefined
    except ModuleNotFoundError:
        raise Unavailable("reports need Jinja: pip install 'timetrial[report]'") from None
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["code"] = _code
    text = resources.files(__package__).joinpath(_TEMPLATE).read_text(encoding="utf-8")
    return environment.from_string(text)


def _code(text: str) -> Markup:
    """What stands in backticks is set as code; all of it is escaped."""
    from markupsafe import Markup, escape

    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))


def _checked(path: Path) -> Path:
    if path.is_dir():
        raise InputError(f"--output is '{path}', which is a folder: give the name of a file in it.")
    if path.exists() and not path.is_file():
        raise InputError(f"--output is '{path}', which is no file but a device or the like.")
    folder = path.resolve().parent
    if not folder.is_dir():
        raise InputError(f"--output is '{path}': there is no folder '{folder}'.")
    if not os.access(folder, os.W_OK):
        raise InputError(f"--output is '{path}': the folder '{folder}' cannot be written.")
    return path


def _write(path: Path, text: str) -> None:
    """All of it or nothing: a page of before stays until the new one is whole."""
    path = path.resolve()
    temporary = None
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            temporary = Path(file.name)
            file.write(text.encode(errors="replace"))
        temporary.chmod(0o644)
        os.replace(temporary, path)
    except OSError as error:
        raise MeasurementError(f"'{path}' cannot be written: {error.strerror}.") from None
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
