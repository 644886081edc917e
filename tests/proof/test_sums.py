"""What sums in f32 may be off by: as NumPy's own ones are, added one after the other, and no hundred times
that."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from timetrial.agreement.sizes import norm
from timetrial.agreement.sums import of_gradient, of_normalization, of_products, of_terms

F32 = np.float32


def one_by_one(terms: NDArray[np.float32]) -> NDArray[np.float32]:
    """Sums along the last axis, each addition rounded."""
    total = np.zeros(terms.shape[:-1], F32)
    for place in range(terms.shape[-1]):
        total += terms[..., place]
    return total


@pytest.mark.parametrize("count", [25, 400, 10_000])
@pytest.mark.parametrize("mean", [0.0, 1.0])
def test_a_dense_layer(count: int, mean: float) -> None:
    """Also where all terms have one sign."""
    rng = np.random.default_rng(count)
    x, weight = rng.normal(mean, 1, (4, count)).astype(F32), rng.normal(mean, 1, (6, count)).astype(F32)
    made = one_by_one((x[:, None] * weight).astype(F32))
    exact = x.astype(float) @ weight.astype(float).T
    limit = of_terms(count) * max(of_products(x, weight, None, 1), norm(exact))
    assert norm(made - exact) < limit
    assert limit < 100 * max(norm(made - exact), 2.0**-24 * norm(exact))


def test_the_size_of_terms_is_that_of_outputs_where_signs_are_chance() -> None:
    rng = np.random.default_rng(0)
    x, weight = rng.normal(0, 1, (8, 6, 12, 12)), rng.normal(0, 1, (10, 3, 1, 1))
    made = np.stack([np.einsum("nchw,oc->nohw", x[:, 3 * g : 3 * g + 3], weight[5 * g : 5 * g + 5, :, 0, 0])
                     for g in range(2)])  # fmt: skip
    assert of_products(x, weight, None, 1) == pytest.approx(norm(made), rel=0.05)
    bias = np.full(10, 7.0)
    expected = math.hypot(norm(made), norm(bias) * math.sqrt(8 * 12 * 12))
    assert of_products(x, weight, bias, 1) == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize(("mean", "deviation"), [(0.0, 1.0), (3.0, 1.0), (1.0, 0.01), (0.5, 0.0)])
@pytest.mark.parametrize("squares", [False, True], ids=["distances", "squares"])
def test_a_normalization(mean: float, deviation: float, *, squares: bool) -> None:
    """Of either formula of the variance, and where nothing varies: then the epsilon is what it divides by."""
    rng = np.random.default_rng(1)
    x = rng.normal(mean, deviation, (16, 3, 12, 12)).astype(F32)
    weight, bias = np.array([1.0, 0.5, 2.0], F32), np.array([0.0, 1.0, -1.0], F32)
    rows = np.moveaxis(x, 1, 0).reshape(3, -1)
    count = F32(rows.shape[1])
    means = one_by_one(rows) / count
    if squares:
        variance = one_by_one(rows * rows) / count - means * means
    else:
        variance = one_by_one((rows - means[:, None]) ** 2) / count
    made = (rows - means[:, None]) / np.sqrt(np.maximum(variance, 0) + F32(1e-5))[:, None]
    made = made * weight[:, None] + bias[:, None]
    wide = rows.astype(float)
    exact = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    exact = exact * weight[:, None] + bias[:, None]
    limits = of_normalization(x, weight, bias, 1e-5, 1)
    errors = np.sqrt(np.sum((made - exact) ** 2, axis=1))
    assert np.all(errors < limits)
    assert norm(limits) < 1e-3 * norm(exact) or deviation <= 0.01


def test_a_gradient_grows_with_the_values_of_a_channel() -> None:
    assert of_gradient(2e-5, 0) == 2e-5
    assert of_gradient(2e-5, 4 * 112 * 112) < 1.01e-4
