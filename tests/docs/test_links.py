"""Links between pages lead somewhere: to a file that is there, and to a heading in it. No network."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import PAGES, ROOT, headings, name_of, without_code

_LINK = re.compile(r"\]\(<?([^)>\s]+)>?(?:\s+\"[^\"]*\")?\)|^\[[^\]]+\]:\s+(\S+)", re.MULTILINE)


def dead_links(page: Path, text: str) -> list[str]:
    """Those of a page with this text."""
    found = []
    for link in (inline or below for inline, below in _LINK.findall(without_code(text))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or not target.is_relative_to(ROOT):
            found.append(f"{link}: there is no such file")
        elif anchor and target.suffix == ".md" and anchor not in headings(_whole(target)):
            found.append(f"{link}: '{path or page.name}' has no such heading")
    return found


def _whole(page: Path) -> str:
    """With what it includes."""
    text = page.read_text(encoding="utf-8")
    for included in re.findall(r"^```\{include\} (\S+)$", text, re.MULTILINE):
        text += (page.parent / included).read_text(encoding="utf-8")
    return text


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_link_is_dead(page: Path) -> None:
    assert dead_links(page, page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("[a](docs/nowhere.md)", "no such file"),
        ("[a](../../outside.md)", "no such file"),
        ("[a](docs/statistics.md#nothing-of-the-kind)", "no such heading"),
        ("[a](#nowhere)", "no such heading"),
        ('[a](nowhere.md "title")', "no such file"),
        ("[a][1]\n\n[1]: nowhere.md", "no such file"),
        ("`code`\n\n```\ncode\n```\n\n![a](nowhere.png)", "no such file"),
    ],
)
def test_a_dead_link_is_found(text: str, word: str) -> None:
    [found] = dead_links(ROOT / "README.md", text)
    assert word in found


@pytest.mark.parametrize(
    "text", ["[a](docs/statistics.md)", "[a](https://example.org/x)", "`[a](nowhere.md)`", "[a](#limits)"]
)
def test_what_is_no_dead_link(text: str) -> None:
    assert dead_links(ROOT / "README.md", text) == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_path_of_a_machine(page: Path) -> None:
    found = re.findall(r"/(?:work|home|tmp|root|Users)/\S*", page.read_text(encoding="utf-8"))
    assert found == []


def test_every_page_of_the_site_is_reached() -> None:
    """From a table of contents: Sphinx warns of it too, and takes longer."""
    docs = ROOT / "docs"
    listed: set[Path] = {docs / "index.md"}
    for page in docs.rglob("*.md"):
        for tree in re.findall(r"^```\{toctree\}\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S):
            names = [line for line in tree.splitlines() if line and not line.startswith(":")]
            listed |= {page.parent / f"{re.sub(r'.*<|>$', '', name)}.md" for name in names}
    assert {page.resolve() for page in docs.rglob("*.md")} == {page.resolve() for page in listed}
