from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from timetrial.core import random
from timetrial.errors import InputError


def philox_words(seed: int, stream: str, blocks: int) -> list[int]:
    """Philox4x32-10 and FNV-1a once more, in plain Python from the papers: the judge of the C++ ones."""
    hashed = 0xCBF29CE484222325
    for byte in stream.encode():
        hashed = (hashed ^ byte) * 0x100000001B3 % 2**64
    words: list[int] = []
    for block in range(blocks):
        c = [block % 2**32, block >> 32, hashed % 2**32, hashed >> 32]
        k = [seed % 2**32, seed >> 32]
        for _ in range(10):
            p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [q >> 32 ^ c[1] ^ k[0], q % 2**32, p >> 32 ^ c[3] ^ k[1], p % 2**32]
            k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
        words += c
    return words


def test_uniform_is_the_documented_stream() -> None:
    words = np.array(philox_words(2**40 + 5, "conv1.weight", 25))
    expected = (-0.5 + (words >> 8) * 2.0**-24).astype(np.float32).reshape(4, 25)
    drawn = random.uniform(2**40 + 5, "conv1.weight", (4, 25), -0.5, 0.5)
    assert drawn.dtype == np.float32
    np.testing.assert_array_equal(drawn, expected)


def test_permutation_is_the_documented_shuffle() -> None:
    words = philox_words(9, "order", 50)
    numbers = iter([low | high << 32 for low, high in zip(words[::2], words[1::2], strict=True)])
    order = list(range(60))
    for last in range(60, 1, -1):
        number = next(n for n in numbers if n >= 2**64 % last)
        order[last - 1], order[number % last] = order[number % last], order[last - 1]
    assert random.permutation(9, "order", 60).tolist() == order


def initial(shape: tuple[int, ...], initializer: str, fan_in: int, fan_out: int) -> NDArray[np.float32]:
    parameter = {"name": "w", "shape": shape, "initializer": initializer}
    return random.initial_values(1, {**parameter, "fan_in": fan_in, "fan_out": fan_out})


def test_initial_values_have_the_limit_of_their_fans() -> None:
    for shape, fan_in, fan_out in (((500, 800), 800, 500), ((50, 20, 5, 5), 20 * 25, 50 * 25)):
        weight = initial(shape, "glorot_uniform", fan_in, fan_out)
        limit = np.sqrt(6 / (fan_in + fan_out))
        assert weight.shape == shape
        assert 0.99 * limit < np.abs(weight).max() <= np.float32(limit)
        assert abs(float(weight.mean())) < 0.02 * limit


def test_streams_and_seeds_differ() -> None:
    draws = [random.uniform(seed, name, (8,)).tobytes() for seed in (0, 1, 2**63) for name in ("a", "b", "")]
    assert len(set(draws)) == len(draws)
    assert random.uniform(0, "a", (8,)).tobytes() == draws[0]


def test_bad_arguments_are_named() -> None:
    with pytest.raises(InputError, match="seed = -1"):
        random.permutation(-1, "x", 3)
    with pytest.raises(InputError, match="n >= 0; got -3"):
        random.permutation(1, "x", -3)
    with pytest.raises(InputError, match="low < high"):
        random.uniform(1, "x", (3,), 1.0, 1.0)
    with pytest.raises(InputError, match="negative extent"):
        random.uniform(1, "x", (3, -1))
    with pytest.raises(InputError, match="glorot_uniform needs to know its fans; fan_in = 0"):
        initial((3,), "glorot_uniform", 0, 0)
    with pytest.raises(InputError, match="no initializer 'glorot_unifrom'"):
        initial((3,), "glorot_unifrom", 1, 1)
