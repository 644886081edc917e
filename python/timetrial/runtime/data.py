"""Streams of batches: mapped files, and the arrays that the C loop fills.

Syntax and modules of Python 3.6.
"""

import numpy as np
from failures import ContenderError

ALIGNMENT = 64  # bytes: a cache line and the widest vector


def aligned_empty(shape, dtype):
    """An uninitialized array whose data begins at a multiple of ALIGNMENT."""
    dtype = np.dtype(dtype)
    n_bytes = int(np.prod(shape)) * dtype.itemsize
    block = np.empty(n_bytes + ALIGNMENT, np.uint8)
    skip = -block.ctypes.data % ALIGNMENT
    return block[skip : skip + n_bytes].view(dtype).reshape(shape)


class Stream(object):
    """A data set in a given order (i64, batches x batch_size); without an order, in its own, the last batch
    filled up from the beginning. Images are mapped; in the layout "NHWC" they are a copy."""

    def __init__(self, files, job, layout="NCHW"):
        self.images = _map(files["images"], np.float32, (None, *job.image_shape[1:]))
        if layout == "NHWC" and self.images.ndim == 4:
            self.images = np.ascontiguousarray(self.images.transpose(0, 2, 3, 1))
        self.labels = _map(files["labels"], np.int64, (self.images.shape[0],))
        self.samples = self.images.shape[0]
        if "order" in files:
            self.order = _map(files["order"], np.int64, (None, job.batch_size))
        else:
            batches = -(-self.samples // job.batch_size)
            self.order = (
                np.arange(batches * job.batch_size, dtype=np.int64).reshape(batches, -1) % self.samples
            )
        self.batches = self.order.shape[0]
        self.next = 0
        _check_range(self.labels, job.classes, files["labels"], "label")
        _check_range(self.order, self.samples, files.get("order", files["images"]), "index")


def _map(path, dtype, shape):
    array = np.load(path, mmap_mode="r")
    fits = len(array.shape) == len(shape) and all(
        want is None or have == want for have, want in zip(array.shape, shape)
    )
    if array.dtype != dtype or not fits or array.shape[0] == 0 or not array.flags["C_CONTIGUOUS"]:
        raise ContenderError(
            "crash",
            "{}: {} {}, expected {} {}".format(
                path,
                array.dtype,
                array.shape,
                np.dtype(dtype),
                "(" + ", ".join("n" if n is None else str(n) for n in shape) + ")",
            ),
        )
    return array


def _check_range(array, limit, path, what):
    low, high = int(array.min()), int(array.max())
    if low < 0 or high >= limit:
        raise ContenderError(
            "crash", "{}: {} {} is not in 0 to {}".format(path, what, low if low < 0 else high, limit - 1)
        )
