"""Machines that show less of themselves: /proc with hidepid or without what tells of the machine, no
/dev/shm. Made for real, in a mount namespace of the test's own, which takes root."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from timetrial.errors import MeasurementError
from timetrial.proc import read_proc

pytestmark = pytest.mark.attempt

# Root without capabilities is hidden from like anybody else.
PLAIN = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
DEVICES = ("null", "zero", "full", "random", "urandom")
WITHOUT_SHM = f"""
mkdir dev && mount -t tmpfs tmpfs dev
for name in {" ".join(DEVICES)}; do touch dev/$name && mount --bind /dev/$name dev/$name; done
ln -s /proc/self/fd dev/fd
mount --rbind dev /dev
test ! -e /dev/shm
"""
RUN = """
import dataclasses, sys
from timetrial.experiment import experiment, runner
sizes, engine = experiment.sizes, runner.real_engine
experiment.sizes = lambda *words, **named: dataclasses.replace(
    sizes(*words, **named), rounds=2, turns_ns=10**7, turns_warmup_ns=10**7
)
runner.real_engine = lambda: dataclasses.replace(engine(), peak_flops=lambda threads: 1e11)
from timetrial.cli.main import main
main()
"""
WORDS = ["network=mlp", "dataset=synthetic", "threads=1", "launches=1", "effort=quick"]


def _run(folder: Path, script: str, *words: str) -> subprocess.CompletedProcess[str]:
    """`timetrial run` behind `script`, as root without capabilities. Skips where no mounts can be made."""
    tried = subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False)
    if os.getuid() != 0 or shutil.which("setpriv") is None or tried.returncode != 0:
        pytest.skip("machine: mounts of its own take root, CAP_SYS_ADMIN and setpriv")
    command = ["run", *WORDS, *words, "--results", str(folder / "results")]
    whole = f'set -e\n{script}\nexec {" ".join(PLAIN)} "$@"'
    return subprocess.run(
        ["unshare", "--mount", "bash", "-c", whole, "bash", sys.executable, "-c", RUN, *command],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_processes_of_others_are_hidden_and_there_is_no_shared_memory(tmp_path: Path) -> None:
    """Two contenders, so that one waits stopped; curves, so that the sampler looks."""
    script = f"mount -t proc -o hidepid=2 proc /proc\n{WITHOUT_SHM}"
    done = _run(tmp_path, script, "backend=null,null", "samples.hz=100")
    assert done.returncode == 0, done.stderr
    samples = [*tmp_path.glob("results/*/launches/*/samples.tsv")]
    assert len(samples) == 2
    assert all(len(file.read_text().splitlines()) > 1 for file in samples)
    assert "Traceback" not in done.stderr


def test_what_tells_of_the_machine_is_hidden(tmp_path: Path) -> None:
    done = _run(tmp_path, "mount -t proc -o subset=pid proc /proc", "backend=null")
    assert done.returncode == 1
    assert "'/proc/meminfo' cannot be read: No such file or directory" in done.stderr
    assert "mount /proc without subset=pid" in done.stderr
    assert "Traceback" not in done.stderr
    assert not [*tmp_path.glob("results/*")]


def test_a_file_of_proc_that_is_not_there(tmp_path: Path) -> None:
    assert "processor" in read_proc("cpuinfo")
    with pytest.raises(MeasurementError, match=r"cpuinfo' cannot be read: No such file.*mount /proc without"):
        read_proc("cpuinfo", tmp_path)
