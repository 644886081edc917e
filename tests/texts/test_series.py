"""Series of unequal lengths, from .ts files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from text_formats import TS_HEADER, TS_TEST, TS_TRAIN, write_ts

from timetrial.datasets import load_dataset
from timetrial.errors import InputError, Unavailable


def test_lengths_lie_beside_the_padded_series(tmp_path: Path) -> None:
    write_ts(tmp_path)
    data = load_dataset("series", str(tmp_path))
    assert [(one.name, one.shape, one.dtype, one.role) for one in data.inputs] == [
        ("series", (3, 2), "f32", "input"),
        ("lengths", (), "i64", "lengths"),
        ("labels", (), "i64", "target"),
    ]
    assert data.train["lengths"].tolist() == [3, 2, 1]
    assert data.train["series"][0].tolist() == [[1, 4], [2, 5], [3, 6]]
    np.testing.assert_array_equal(
        data.train["series"][1], np.array([[1.5, 0.25], [-2e-3, 8], [0, 0]], np.float32)
    )
    assert data.train["labels"].tolist() == [0, 1, 0]
    assert data.test["labels"].tolist() == [1]
    assert data.description["lengths"] == "1 to 3, in the mean 2.0: 67 % of 3 steps"


def test_a_size_in_the_name_cuts_or_widens(tmp_path: Path) -> None:
    write_ts(tmp_path)
    short, wide = (load_dataset(f"series@{steps}", str(tmp_path)) for steps in (2, 100_000))
    assert short.train["series"].shape == (3, 2, 2)
    assert short.train["lengths"].tolist() == [2, 2, 1]
    assert short.description["cut"] == "1 of 4 to their first 2 steps"
    assert wide.train["series"].shape == (3, 100_000, 2)
    assert wide.train["lengths"].tolist() == [3, 2, 1]


@pytest.mark.attempt
@pytest.mark.parametrize("size", ["0", "100001", "many", "-1"])
def test_a_size_that_is_none(size: str) -> None:
    with pytest.raises(InputError, match=r"expected the steps, 1 to 100000: series@64"):
        load_dataset(f"series@{size}")


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("1,2:3,4:c", r"_TRAIN\.ts, line 13: the label 'c'; expected one of a, b"),
        ("1,?:3,4:a", "line 13: a missing value; expected numbers"),
        ("1,NaN:3,4:a", "line 13: a value that is no finite number"),
        ("1,x:3,4:a", "line 13: 'x'; expected numbers"),
        ("1,2:3:a", "line 13: channels of 2, 1 values; expected as many in each"),
        ("1,2:3,4:5,6:a", "line 13: 3 channels; expected 2, as the series before have"),
        ("::a", "line 13: ''; expected numbers"),
    ],
)
def test_a_line_that_is_no_series(tmp_path: Path, line: str, words: str) -> None:
    write_ts(tmp_path, train=(*TS_TRAIN, line))
    with pytest.raises(InputError, match=words):
        load_dataset("series", str(tmp_path))


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no line @data behind its keywords"),
        ("1,2:a", "has no line @data behind its keywords"),
        (TS_HEADER, "has no series after @data"),
        (TS_HEADER.replace("@timeStamps false", "@timeStamps true"), "has @timeStamps"),
        (TS_HEADER.replace("@classLabel true a b", "@classLabel false"), "has no @classLabel true"),
    ],
)
def test_a_file_that_is_none_of_series(tmp_path: Path, text: str, words: str) -> None:
    write_ts(tmp_path)
    (tmp_path / "Small_TEST.ts").write_text(text)
    with pytest.raises(InputError, match=rf"Small_TEST\.ts {words}"):
        load_dataset("series", str(tmp_path))


@pytest.mark.attempt
def test_two_files_that_do_not_fit(tmp_path: Path) -> None:
    write_ts(tmp_path, test=("1:2:3:a",))
    with pytest.raises(InputError, match=r"Small_TEST\.ts has 3 channels; expected 2"):
        load_dataset("series", str(tmp_path))
    write_ts(tmp_path, train=TS_TRAIN[:1], test=TS_TEST)
    with pytest.raises(InputError, match=r"has the label 'b', which no series of .* has; expected one of a"):
        load_dataset("series", str(tmp_path))
    (tmp_path / "Other_TEST.ts").write_text(TS_HEADER)
    with pytest.raises(InputError, match=r"has Other_TEST\.ts, Small_TEST\.ts for \*_TEST\.ts; expected one"):
        load_dataset("series", str(tmp_path))


def test_japanese_vowels_are_in_that_form(tmp_path: Path) -> None:
    write_ts(tmp_path)
    for part in ("TRAIN", "TEST"):
        (tmp_path / f"Small_{part}.ts").rename(tmp_path / f"JapaneseVowels_{part}.ts")
    data, own = (load_dataset(name, str(tmp_path)) for name in ("japanese-vowels", "series"))
    assert data.train["lengths"].tolist() == [3, 2, 1]
    # In units of the scatter of the steps to train on; what is behind the end stays 0.
    counts = [np.arange(3) < steps for steps in (3, 2, 1)]
    values, raw = (np.asarray(one.train["series"], np.float64)[np.array(counts)] for one in (data, own))
    np.testing.assert_allclose(values.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(values.std(axis=0), 1, rtol=1e-6)
    assert not np.any(data.train["series"][1][2:])
    first = (own.test["series"][0, 0] - raw.mean(axis=0)) / raw.std(axis=0)
    np.testing.assert_allclose(data.test["series"][0, 0], first, rtol=1e-6)
    assert "scatter 1" in data.description["scaled"]
    assert "scaled" not in own.description
    with pytest.raises(Unavailable, match="timetrial datasets install japanese-vowels"):
        load_dataset("japanese-vowels")


def test_a_channel_that_is_always_the_same_stays_finite(tmp_path: Path) -> None:
    write_ts(tmp_path, ["1,2,3:7,7,7:a", "4,5:7,7:b"], ["2:7:b"])
    for part in ("TRAIN", "TEST"):
        (tmp_path / f"Small_{part}.ts").rename(tmp_path / f"JapaneseVowels_{part}.ts")
    data = load_dataset("japanese-vowels", str(tmp_path))
    assert not np.any(data.train["series"][:, :, 1])
    assert np.all(np.isfinite(data.train["series"]))
