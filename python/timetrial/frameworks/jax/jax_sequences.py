"""Layers along time, in JAX's functions: a recurrent layer is a scan over the steps."""

import numpy as np
from timetrial_adapter import is_all, jax_operations, path_facts


def _counted(jax, x, lengths):
    """f32 (N, T, 1): 1 at the steps that count."""
    steps = jax.numpy.arange(x.shape[1])[None, :]
    return (steps < lengths[:, None]).astype(x.dtype)[:, :, None]


def _embedding(jax, node, values, tokens):
    return jax.numpy.take(values[node.name + ".weight"], tokens, axis=0)


def _lstm(jax, node, values, x, lengths=None):
    """The inputs' part of the gates for all steps at once; then one step after the other."""
    jnp, units, gives_all = jax.numpy, node.attributes["units"], is_all(node)
    recurrent = values[node.name + ".recurrent_weight"].T
    sums = x @ values[node.name + ".weight"].T
    for bias in ("bias", "recurrent_bias"):
        if "{}.{}".format(node.name, bias) in values:
            sums = sums + values["{}.{}".format(node.name, bias)]

    def step(state, z):
        h, c = state
        i, f, g, o = jnp.split(z + h @ recurrent, 4, axis=1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zeros = jnp.zeros((x.shape[0], units), x.dtype)
    (last, _), states = jax.lax.scan(step, (zeros, zeros), sums.swapaxes(0, 1))
    if lengths is None:
        return states.swapaxes(0, 1) if gives_all else last
    if gives_all:
        return states.swapaxes(0, 1) * _counted(jax, x, lengths)
    return states[lengths - 1, jnp.arange(x.shape[0])]


def _mean_over_time(jax, _node, _values, x, lengths=None):
    if lengths is None:
        return x.mean(1)
    return (x * _counted(jax, x, lengths)).sum(1) / lengths[:, None].astype(x.dtype)


# Functions of (jax, node, values of parameters and states by the job's names, the layer's inputs).
LAYERS = {"embedding": _embedding, "lstm": _lstm, "mean_over_time": _mean_over_time}


def facts_of(jax, job, layers, values):
    """Of every recurrent layer which way JAX goes. `layers`: kind -> function, as above."""
    found = {}
    for node in job.layers:
        if node.kind != "lstm":
            continue
        given = job.inputs
        read = [given[name] if name in given else job.node(name) for name in node.inputs]
        inputs = [np.zeros(one.shape, one.dtype or np.float32) for one in read]

        def layer(*read, node=node):
            return layers[node.kind](jax, node, values, *read)

        loops = sorted(jax_operations(jax, layer, *inputs) & {"scan", "while"})
        path = "loop over the steps ({})".format(loops[0] if loops else "unrolled")
        found.update(path_facts(job, node, path))
    return found
