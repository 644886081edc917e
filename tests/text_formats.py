"""Small files in the true forms of texts and series."""

from __future__ import annotations

import io
import struct
import tarfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

TS_HEADER = """#A comment
@problemName Small
@timeStamps false
@missing false
@univariate false
@dimensions 2
@equalLength false
@classLabel true a b
@data
"""
TS_TRAIN = ("1,2,3:4,5,6:a", "1.5,-2e-3:0.25,8:b", "7:8:a")
TS_TEST = ("9,9:1,1:b",)


def write_ts(folder: Path, train: Sequence[str] = TS_TRAIN, test: Sequence[str] = TS_TEST) -> None:
    """Series of two channels in 1 to 3 steps."""
    for part, lines in (("TRAIN", train), ("TEST", test)):
        text = TS_HEADER + "\n".join(lines) + "\n"
        (folder / f"Small_{part}.ts").write_text(text, encoding="utf-8")


def write_tree(folder: Path, texts: Mapping[str, str | bytes]) -> None:
    """Files by their path."""
    for name, text in texts.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())


def write_mails(folder: Path, mails: Mapping[str, str | bytes]) -> Path:
    """mails.tar, as it is installed."""
    file = folder / "mails.tar"
    with tarfile.open(file, "w") as archive:
        for name, mail in mails.items():
            content = mail if isinstance(mail, bytes) else mail.encode()
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return file


def write_imdb_numbers(folder: Path, train: Sequence[Sequence[int]], test: Sequence[Sequence[int]]) -> Path:
    """imdb.npz of Keras: arrays of lists, every second text for the film."""

    def lists(texts: Sequence[Sequence[int]]) -> np.ndarray:
        array = np.empty(len(texts), object)
        array[:] = [list(one) for one in texts]
        return array

    file = folder / "imdb.npz"
    np.savez(
        file,
        x_train=lists(train),
        y_train=np.arange(len(train)) % 2,
        x_test=lists(test),
        y_test=np.arange(len(test)) % 2,
    )
    return file


def r_strings(lines: Sequence[str]) -> bytes:
    """R's serialization of a list of strings, version 3."""
    content = b"X\n" + struct.pack(">iiii5s", 3, 0x40201, 0x30500, 5, b"UTF-8")
    content += struct.pack(">ii", 16, len(lines))
    for line in lines:
        content += struct.pack(">ii", 0x40009, len(line.encode())) + line.encode()
    return content


def write_rdb(file: Path, objects: Sequence[bytes]) -> None:
    """Rdata.rdb of an R package."""
    file.write_bytes(b"".join(struct.pack(">I", len(one)) + zlib.compress(one) for one in objects))


def mo(messages: Mapping[str, str], order: str = "<") -> bytes:
    """gettext's file of messages and their translations."""
    count = len(messages)
    strings = [one.encode() for one in (*messages, *messages.values())]
    place, table, body = 28 + 16 * count, b"", b""
    for one in strings:
        table += struct.pack(f"{order}2I", len(one), place + len(body))
        body += one + b"\0"
    header = struct.pack(f"{order}7I", 0x950412DE, 0, count, 28, 28 + 8 * count, 0, 0)
    return header + table + body
