"""Everything that reads what somebody else has written: each with a document that it takes."""

from __future__ import annotations

import gzip
import json
import pickle
import shlex
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from launching import SMALL_NETWORK
from text_formats import TS_HEADER, TS_TRAIN, mo, r_strings, write_imdb_numbers, write_mails, write_rdb

import timetrial
from timetrial.datasets.cifar import CIFAR10, _read
from timetrial.datasets.idx import IMAGES, read_idx
from timetrial.environments import marker
from timetrial.environments.catalog import framework_in
from timetrial.experiment.experiment import load, load_words
from timetrial.processes.events import Asked, Ready, read_event
from timetrial.records.samples import COLUMNS, SAMPLES_FILE, read_samples
from timetrial.records.store import read_launch
from timetrial.results.results import Results
from timetrial.texts.imdb_numbers import load_numbers
from timetrial.texts.mails import mail_words
from timetrial.texts.pair_files import read_messages
from timetrial.texts.r_strings import read_string_lists
from timetrial.texts.spam import _mails
from timetrial.texts.ts_files import read_ts
from timetrial.workloads import load_network

PACKAGE = Path(timetrial.__file__).parent
HERE = Path(__file__).parent
RECORDS = HERE.parent / "records" / "1"


@dataclass(frozen=True)
class Reader:
    """`read` takes the path of a file with `document`, or something like it."""

    document: bytes
    read: Callable[[Path], object]
    name: str = "file"
    others: Path | None = None  # a folder that the file is put into a copy of


def _words(path: Path) -> object:
    try:
        words = shlex.split(path.read_bytes().decode("utf-8", "surrogateescape"))
    except ValueError:
        return None
    return load_words(words)


def _python(folder: Path) -> object:
    found = marker.read_marker(folder)
    return found and marker.python_of(folder, found)


def _whole(folder: Path) -> str:
    return repr(Results(folder))


def _images(count: int) -> bytes:
    return np.random.default_rng(1).integers(0, 256, (count, 3072), np.uint8).tobytes()


def _made(write: Callable[[Path], object], name: str = "file") -> bytes:
    """The content of a file that something writes."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / name
        write(file)
        return file.read_bytes()


MAIL = (
    b'Subject: x\nContent-Type: multipart/mixed; boundary="x"\n\n--x\nContent-Transfer-Encoding: base64\n\n'
    b"YnV5\n--x\nContent-Type: text/html; charset=utf-8\n\n<p>two &amp; <b>more</b>\n--x--\n"
)
MAILS = {"ham/1": "a: b\n\nc", "spam/2": "d: e\n\nf"}
NOVELS = [r_strings(["EMMA", "", "It was."])] * 2
TS = TS_HEADER + "\n".join(TS_TRAIN)
_READY = {
    "event": "ready",
    "phases": [{"name": "start", "ns": 1, "rss_bytes": 5}],
    "settings": {"threads": {"effective": "1", "how_read": "said"}},
    "facts": {"kernel": "Haswell"},
    "libraries": [{"path": "/lib/libopenblas.so", "kind": "blas", "threads": 1}],
    "backend": {"name": "null", "flags": ["reads_no_data"]},
}
_MARKER = {"python": "/usr/bin/python3", "pins": ["a==1"], "installed": {"a": "1"}, "size_mb": 3}
_RUN = RECORDS / "null-eigen"
_LAUNCH = _RUN / "launches" / "000"
_PYTORCH = PACKAGE / "frameworks" / "pytorch"
READERS: dict[str, Reader] = {
    "experiment": Reader(
        (HERE.parents[1] / "benchmarks" / "first-look.toml").read_bytes(),
        lambda path: load(str(path), {}),
        "first-look.toml",
    ),
    "words": Reader(b"network=mlp backend=eigen,null threads=1,2 optimizer.momentum=0.9 seed=3", _words),
    "network": Reader(SMALL_NETWORK.encode(), lambda path: load_network(str(path)), "small.toml"),
    "framework": Reader(
        (_PYTORCH / "environment.toml").read_bytes(),
        lambda path: framework_in(path.parent),
        "environment.toml",
        _PYTORCH,
    ),
    "event": Reader(
        json.dumps(_READY).encode(), lambda path: read_event(path.read_bytes(), Asked("start", Ready))
    ),
    "launch": Reader(
        (_LAUNCH / "record.json").read_bytes(), lambda path: read_launch(path.parent), "record.json", _LAUNCH
    ),
    "run": Reader(
        (_RUN / "experiment.json").read_bytes(), lambda path: _whole(path.parent), "experiment.json", _RUN
    ),
    "launch of a run": Reader(
        (_LAUNCH / "record.json").read_bytes(),
        lambda path: _whole(path.parents[2]),
        "launches/000/record.json",
        _RUN,
    ),
    "looks": Reader(
        ("\t".join(COLUMNS) + "\n" + "\t".join("1" * len(COLUMNS)) + "\n").encode(),
        lambda path: read_samples(path.parent),
        SAMPLES_FILE,
    ),
    "stamps of a run": Reader(
        (_LAUNCH / "stamps.bin").read_bytes(),
        lambda path: _whole(path.parents[2]),
        "launches/000/stamps.bin",
        _RUN,
    ),
    "images": Reader(
        b"\x00\x00\x08\x03" + b"".join(n.to_bytes(4, "big") for n in (2, 3, 3)) + bytes(18),
        lambda path: read_idx(path, IMAGES),
    ),
    "packed images": Reader(
        gzip.compress(b"\x00\x00\x08\x03" + b"".join(n.to_bytes(4, "big") for n in (2, 3, 3)) + bytes(18)),
        lambda path: read_idx(path, IMAGES),
        "file.gz",
    ),
    "binary CIFAR": Reader(
        b"".join(b"\x03" + _images(1) for _ in range(2)),
        lambda path: _read(CIFAR10, path),
        "data_batch_1.bin",
    ),
    "pickled CIFAR": Reader(
        pickle.dumps(
            {b"data": np.frombuffer(_images(2), np.uint8).reshape(2, 3072), b"labels": [1, 2]}, protocol=2
        ),
        lambda path: _read(CIFAR10, path),
        "data_batch_1",
    ),
    "series": Reader(TS.encode(), read_ts, "Small_TRAIN.ts"),
    "novels": Reader(_made(lambda file: write_rdb(file, NOVELS)), read_string_lists),
    "messages": Reader(mo({"": "x", "a": "b", "long one": "other"}), read_messages),
    "mails": Reader(_made(lambda file: write_mails(file.parent, MAILS), "mails.tar"), _mails),
    "mail": Reader(MAIL, lambda path: mail_words(path.read_bytes())),
    "numbers of reviews": Reader(
        _made(lambda file: write_imdb_numbers(file.parent, [[1, 2]], [[3]]), "imdb.npz"),
        lambda path: load_numbers("imdb", path.parent, 9, 4),
        "imdb.npz",
    ),
    "marker": Reader(json.dumps(_MARKER).encode(), lambda path: _python(path.parent), marker.FILE),
}
