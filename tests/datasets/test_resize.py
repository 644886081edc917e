"""Bilinear resizing against SciPy's and by hand."""

from __future__ import annotations

import numpy as np
from scipy import ndimage

from timetrial.datasets.resize import resize_bilinear


def test_by_hand() -> None:
    # Centers of the new pixels lie at -0.25 (the edge), 0.25, 0.75 and 1.25 (the edge) of the old ones.
    row = resize_bilinear(np.array([[[0.0, 4.0]]]), 1, 4)
    np.testing.assert_array_equal(row, [[[0.0, 1.0, 3.0, 4.0]]])


def test_against_scipy() -> None:
    images = np.random.default_rng(0).random((3, 8, 8))
    for size in (5, 8, 28):
        at = (np.arange(size) + 0.5) * 8 / size - 0.5
        expected = [
            ndimage.map_coordinates(image, np.meshgrid(at, at, indexing="ij"), order=1, mode="nearest")
            for image in images
        ]
        np.testing.assert_allclose(resize_bilinear(images, size, size), expected, rtol=0, atol=1e-14)


def test_the_same_size_changes_nothing() -> None:
    images = np.random.default_rng(0).random((2, 8, 6))
    np.testing.assert_array_equal(resize_bilinear(images, 8, 6), images)


def test_a_single_pixel_fills_the_image() -> None:
    np.testing.assert_array_equal(resize_bilinear(np.full((1, 1, 1), 0.5), 3, 2), np.full((1, 3, 2), 0.5))
