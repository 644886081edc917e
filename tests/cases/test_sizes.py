"""Sizes as people write them."""

from __future__ import annotations

import pytest

from timetrial.cases.sizes import bytes_of
from timetrial.errors import InputError


def test_sizes() -> None:
    words = ("2GB", "1.5 G", "512MiB", "100k", 7, "536870912")
    assert [bytes_of(one) for one in words] == [2**31, 3 * 2**29, 2**29, 102_400, 7, 2**29]


WRONG = ("", "much", "2TB", "-1GB", "0GB", "0.1", "9" * 19 + "GB", "1e9", "7iB", "\u0661GB")


@pytest.mark.parametrize("word", WRONG)
def test_what_is_none(word: str) -> None:
    with pytest.raises(InputError, match=r"memory.cap=.*: expected a size such as 2GB"):
        bytes_of(word, "memory.cap")
