"""Streams of batches: mapped files, and the arrays that the C loop fills.

Syntax and modules of Python 3.6.
"""

from collections import OrderedDict

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
    filled up from the beginning. arrays: name of the input -> all samples, mapped; inference has no masks.
    drawn: names of those whose rows belong to no sample."""

    def __init__(self, files, job):
        self.arrays = OrderedDict()
        self.samples = None
        self.drawn = files.get("drawn", {})
        learns = job.task != "forward" and "order" in files
        for name, node in job.inputs.items():
            if name in self.drawn:
                self.arrays[name] = _map(self.drawn[name], node.dtype, (None, *node.batch_shape[1:]))
                continue
            if name not in files["tensors"]:
                if node.role == "mask" and not learns:
                    continue
                raise ContenderError("crash", "the stream has nothing for the input '{}'".format(name))
            shape = (self.samples, *node.batch_shape[1:])
            self.arrays[name] = _map(files["tensors"][name], node.dtype, shape)
            self.samples = self.arrays[name].shape[0]
        if "order" in files:
            self.order = _map(files["order"], np.int64, (None, job.batch_size))
        else:
            batches = -(-self.samples // job.batch_size)
            self.order = (
                np.arange(batches * job.batch_size, dtype=np.int64).reshape(batches, -1) % self.samples
            )
        self.batches = self.order.shape[0]
        self.next = 0
        if self.arrays[job.target].dtype == np.int64:
            labels, place = self.arrays[job.target], files["tensors"][job.target]
            _check_range(labels, job.classes, place, "label", least=-1 if labels.ndim > 1 else 0)
        _check_range(self.order, self.samples, files.get("order", "the data's own order"), "index")


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


def _check_range(array, limit, path, what, least=0):
    low, high = int(array.min()), int(array.max())
    if low < least or high >= limit:
        number = low if low < least else high
        raise ContenderError(
            "crash", "{}: {} {} is not in {} to {}".format(path, what, number, least, limit - 1)
        )
