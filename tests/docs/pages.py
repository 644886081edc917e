"""What is written for readers: README, CONTRIBUTING, the pages of the site, pages in the package."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = [
    README,
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "python" / "timetrial").rglob("*.md")),
    *sorted((ROOT / "cpp").rglob("*.md")),
]
_BLOCK = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_INCLUDE = "{include}"


def name_of(page: Path) -> str:
    """For ids of tests."""
    return str(page.relative_to(ROOT))


def blocks(text: str, *languages: str) -> Iterator[str]:
    """Fenced code in one of these languages; '' is none."""
    for language, code in _BLOCK.findall(text):
        if language in languages:
            yield code


def without_code(text: str) -> str:
    """Prose: no fenced code, no code in a line."""
    return re.sub(r"`[^`\n]*`", "", _BLOCK.sub("", text))


def commands(text: str) -> Iterator[str]:
    """Command lines of timetrial to type: 'timetrial run network=mlp', without comment."""
    for code in blocks(text, "", "sh", "bash"):
        for line in code.replace("\\\n", " ").splitlines():
            line = re.sub(r"^\$ ", "", line).split(" #")[0].rstrip()
            if line.startswith("timetrial "):
                yield from (part.strip() for part in re.split(r"\s{2,}(?=timetrial )", line))


def mentioned(text: str) -> Iterator[str]:
    """Commands within prose, often without what they need: 'timetrial show --json'."""
    for code in re.findall(r"`(timetrial [^`]+)`", _BLOCK.sub("", text)):
        yield " ".join(code.split())


def headings(text: str) -> set[str]:
    """What `#...` may name, as code hosts and MyST make it from headings."""
    titles = re.findall(r"^#{1,6} +(.+?)\s*$", _BLOCK.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
