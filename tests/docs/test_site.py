"""The site is built without a warning, asks no network, and refuses what leads nowhere."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pages import ROOT

from code_tables import python_names

pytestmark = pytest.mark.full  # each build takes ten seconds


def build(docs: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """What `make docs` does."""
    pytest.importorskip("sphinx")
    command = [sys.executable, "-m", "sphinx", "-E", "-W", "--keep-going", "-q", "-b", "html"]
    places = ["-d", str(site.with_name("trees")), str(docs), str(site)]
    return subprocess.run([*command, *places], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("built") / "site"
    done = build(ROOT / "docs", place)
    assert done.stderr == ""
    assert done.returncode == 0
    return place


def test_pages_fetch_nothing(site: Path) -> None:
    """Links to other sites are for readers; what a page needs lies beside it."""
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        needed = re.findall(r"<(?:script|img|iframe)[^>]* src=\"([^\"]*)\"", text)
        needed += re.findall(r"<link[^>]* rel=\"(?:stylesheet|preload|icon)\"[^>]*>", text)
        assert [one for one in needed if "//" in one] == [], page.name
    for style in site.rglob("*.css"):
        assert not re.search(r"@import|url\([\"']?(?:https?:)?//", style.read_text(encoding="utf-8")), (
            style.name
        )


def test_every_public_name_can_be_linked(site: Path) -> None:
    text = (site / "reference" / "python.html").read_text(encoding="utf-8")
    anchors = set(re.findall(r"id=\"(timetrial[^\"]*)\"", text))
    names = {one.path for one in (*python_names.public(), *python_names.handed_out())}
    assert names - anchors == set()


def test_no_placeholder_is_left(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert not re.search(r"(?:<|&lt;)!-- (?:table|text): ", page.read_text(encoding="utf-8")), page.name


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("[a](nowhere.md)", "nowhere.md"),
        ("[a](statistics.md#no-such-heading)", "no-such-heading"),
        ("{py:func}`timetrial.rase`", "timetrial.rase"),
        ("<!-- table: colors -->", "there is no table 'colors'"),
    ],
)
def test_what_leads_nowhere_is_refused(tmp_path: Path, line: str, complaint: str) -> None:
    """Of a site of two pages, with the configuration of the real one."""
    docs = tmp_path / "docs"
    shutil.copytree(ROOT / "docs", docs, ignore=shutil.ignore_patterns("*.md", "__pycache__"))
    (docs / "statistics.md").write_text("# Statistics\n")
    (docs / "index.md").write_text(f"# Index\n\n```{{toctree}}\nstatistics\n```\n\n{line}\n")
    done = build(docs, tmp_path / "site")
    assert done.returncode != 0
    assert complaint in done.stderr
