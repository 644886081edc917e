"""SVHN's loader: reads the true form, and says no to what is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io

from timetrial.datasets import load_dataset
from timetrial.errors import InputError


def write_svhn(folder: Path, part: str, count: int, **changed: Any) -> dict[str, Any]:
    rng = np.random.default_rng(count)
    content = {
        "X": rng.integers(0, 256, (32, 32, 3, count), np.uint8),
        "y": (np.arange(count) % 10 + 1).astype(np.uint8)[:, None],
        **changed,
    }
    content = {name: value for name, value in content.items() if value is not None}
    scipy.io.savemat(folder / f"{part}_32x32.mat", content, do_compression=True)
    return content


def both(folder: Path, **changed: Any) -> dict[str, Any]:
    write_svhn(folder, "test", 10)
    return write_svhn(folder, "train", 20, **changed)


def test_reads_the_true_form(tmp_path: Path) -> None:
    content = both(tmp_path)
    data = load_dataset("svhn", str(tmp_path))
    assert data.train["images"].shape == (20, 3, 32, 32)
    assert data.test["images"].shape == (10, 3, 32, 32)
    np.testing.assert_array_equal(
        data.train["images"][3, 1], content["X"][:, :, 1, 3].astype(np.float32) / np.float32(255)
    )
    assert list(data.train["labels"][:10]) == [1, 2, 3, 4, 5, 6, 7, 8, 9, 0]  # 10 means 0
    assert data.classes == 10


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"y": np.zeros((20, 1), np.uint8)}, "labels from 1 on: label -1 at position 0; expected 0 to 9"),
        ({"y": np.full((20, 1), 11, np.uint8)}, "label 10 at position 0; expected 0 to 9"),
        ({"y": np.ones((19, 1), np.uint8)}, "has 20 images and 19 labels"),
        ({"y": np.ones((20, 1))}, "y is float64; expected whole numbers"),
        ({"y": None}, "has no y: it is no file of SVHN"),
        ({"X": np.zeros((32, 32, 3, 20))}, r"X is float64 \(32, 32, 3, 20\); expected bytes"),
        ({"X": np.zeros((16, 16, 3, 20), np.uint8)}, r"X is uint8 \(16, 16, 3, 20\); expected bytes"),
        (
            {"X": np.zeros((32, 32, 3, 0), np.uint8), "y": np.zeros((0, 1), np.uint8)},
            "no images",
        ),
    ],
)
def test_what_is_none(tmp_path: Path, changed: dict[str, Any], words: str) -> None:
    both(tmp_path, **changed)
    with pytest.raises(InputError, match=words):
        load_dataset("svhn", str(tmp_path))


@pytest.mark.attempt
@pytest.mark.parametrize("damage", ["cut", "empty", "text", "version 7.3"])
def test_damaged(tmp_path: Path, damage: str) -> None:
    both(tmp_path)
    file = tmp_path / "train_32x32.mat"
    whole = file.read_bytes()
    file.write_bytes(
        {
            "cut": whole[: len(whole) // 2],
            "empty": b"",
            "text": b"<html>moved</html>" * 20,
            "version 7.3": b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + bytes(512),
        }[damage]
    )
    with pytest.raises(InputError, match=r"train_32x32\.mat is truncated or no MATLAB file of version 5"):
        load_dataset("svhn", str(tmp_path))


@pytest.mark.attempt
def test_swapped(tmp_path: Path) -> None:
    write_svhn(tmp_path, "train", 10)
    write_svhn(tmp_path, "test", 20)
    with pytest.raises(InputError, match=r"10 images and .* has 20; expected more for training"):
        load_dataset("svhn", str(tmp_path))


def test_no_folder() -> None:
    with pytest.raises(InputError, match=r"train_32x32\.mat, test_32x32\.mat .*svhn --from FOLDER"):
        load_dataset("svhn")
