"""Which way a recurrent layer of Keras 3 goes, as its backend shows it: what the layer does is traced, or
seen done on one sample."""

import re

from timetrial_adapter import jax_operations, torch_operations


def path_of(backend, layer, shapes):
    """(words, whether all steps' inputs are multiplied at once or by one kernel; None: it does not show) of a
    layer, a function of a sequence, or of [sequence, lengths or state], for inputs of these shapes."""
    return {"tensorflow": _tensorflow, "jax": _jax, "torch": _torch}[backend](layer, shapes)


def _fused(operations):
    kernels = sorted({one for one in operations if re.search("rnn|lstm|gru", one.lower())})
    return ("fused kernel ({})".format(", ".join(kernels)), True) if kernels else None


def _traced_loop(loops):
    return "loop over the steps ({})".format(min(loops) if loops else "unrolled"), None


def _is_lengths(shape):
    return len(shape) == 1


def _given(inputs):
    return inputs[0] if len(inputs) == 1 else list(inputs)


def _tensorflow(layer, shapes):
    import tensorflow as tf

    specs = [tf.TensorSpec(shape, tf.int32 if _is_lengths(shape) else tf.float32) for shape in shapes]
    made = tf.function(lambda *inputs: layer(_given(inputs)), autograph=False).get_concrete_function(*specs)
    operations = {one.type for one in made.graph.get_operations()}
    return _fused(operations) or _traced_loop(operations & {"While", "StatelessWhile"})


def _jax(layer, shapes):
    import jax
    import numpy as np

    inputs = [np.zeros(shape, np.int32 if _is_lengths(shape) else np.float32) for shape in shapes]
    found = jax_operations(jax, lambda *inputs: layer(_given(inputs)), *inputs)
    return _fused(found) or _traced_loop(found & {"scan", "while"})


def _torch(layer, shapes):
    import torch

    inputs = [
        torch.ones((1, *shape[1:]), dtype=torch.int32 if _is_lengths(shape) else torch.float32)
        for shape in shapes
    ]
    with torch.no_grad():
        seen = torch_operations(torch, lambda: layer(_given(inputs)))
    fused = _fused(seen)
    if fused:
        return fused
    products = sum(one in ("mm", "addmm", "bmm", "baddbmm") for one in seen)
    most = len(layer.first) * (shapes[0][1] + 1)
    return "loop over the steps ({} matrix products)".format(products), products <= most
