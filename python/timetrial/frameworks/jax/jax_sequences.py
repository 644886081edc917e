"""Layers along time, in JAX's functions: a recurrent layer is a scan over the steps."""

import numpy as np
from timetrial_adapter import (
    directions,
    goes_on,
    in_directions,
    is_all,
    is_recurrent,
    jax_operations,
    path_facts,
)


def _counted(jax, x, lengths):
    """f32 (N, T, 1): 1 at the steps that count."""
    steps = jax.numpy.arange(x.shape[1])[None, :]
    return (steps < lengths[:, None]).astype(x.dtype)[:, :, None]


def _embedding(jax, node, values, tokens):
    return jax.numpy.take(values[node.name + ".weight"], tokens, axis=0)


def _bias(node, values, name):
    """0 where the layer has none."""
    name = "{}.{}".format(node.name, name)
    return values.get(name, 0.0)


def _reversed(jax, x, lengths):
    """(N, T, F) with the steps of each sample that count in reverse; the others stay where they are."""
    if lengths is None:
        return x[:, ::-1]
    steps, lengths = jax.numpy.arange(x.shape[1])[None, :], lengths[:, None]
    place = jax.numpy.where(steps < lengths, lengths - 1 - steps, steps)
    return x[jax.numpy.arange(x.shape[0])[:, None], place]


def _directed(layer):
    """The layer in its directions, of one that goes forward."""

    def make(jax, node, values, x, lengths=None):
        return in_directions(
            directions(node),
            x,
            lambda part, x: layer(jax, part, values, x, lengths),
            lambda x: _reversed(jax, x, lengths),
            lambda found: jax.numpy.concatenate(found, -1),
        )

    return make


def _inputs_part(node, values, x):
    """Of the gates of all steps, with the bias."""
    return x @ values[node.name + ".weight"].T + _bias(node, values, "bias")


def _recurrent(jax, node, x, lengths, sums, step, start):
    """What the layer gives, and the states behind the last step. `sums` (N, T, ...): the inputs' part of the
    gates; one step after the other, `step` makes of the states, `start` in front of the first one, and of the
    sums the states behind it, of which the first is shown."""

    def scanned(before, z):
        behind = step(*before, z)
        return behind, behind[0]

    last, shown = jax.lax.scan(scanned, tuple(start), sums.swapaxes(0, 1))
    if lengths is None:
        return shown.swapaxes(0, 1) if is_all(node) else last[0], last
    if is_all(node):
        return shown.swapaxes(0, 1) * _counted(jax, x, lengths), last
    return shown[lengths - 1, jax.numpy.arange(x.shape[0])], last


def _zeros(jax, node, x):
    return jax.numpy.zeros((x.shape[0], node.attributes["units"]), x.dtype)


def _lstm(jax, node, values, x, lengths):
    jnp, sigmoid = jax.numpy, jax.nn.sigmoid
    recurrent = values[node.name + ".recurrent_weight"].T

    def step(h, c, z):
        i, f, g, o = jnp.split(z + h @ recurrent, 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * jnp.tanh(g)
        return sigmoid(o) * jnp.tanh(c), c

    sums = _inputs_part(node, values, x) + _bias(node, values, "recurrent_bias")
    start = [_zeros(jax, node, x)] * 2
    if goes_on(node, values):
        start = [jax.lax.stop_gradient(values[name]) for name, _ in node.states]
    found, last = _recurrent(jax, node, x, lengths, sums, step, start)
    if goes_on(node, values):
        values.moved.update((name, jax.lax.stop_gradient(one)) for (name, _), one in zip(node.states, last))
    return found


def _gru(jax, node, values, x, lengths, state=None):
    """In both of its forms: the reset behind the product of h, or in front of it. `state`: in front of the
    first step, if it isn't 0."""
    jnp, sigmoid, both = jax.numpy, jax.nn.sigmoid, 2 * node.attributes["units"]
    recurrent, bias = values[node.name + ".recurrent_weight"].T, _bias(node, values, "recurrent_bias")

    def behind(h, a):
        q = h @ recurrent + bias
        r, z = jnp.split(sigmoid(a[:, :both] + q[:, :both]), 2, axis=1)
        return z, a[:, both:] + r * q[:, both:]

    def in_front(h, a):
        r, z = jnp.split(sigmoid(a[:, :both] + h @ recurrent[:, :both]), 2, axis=1)
        return z, a[:, both:] + (r * h) @ recurrent[:, both:]

    gates = behind if node.attributes["reset_after"] else in_front

    def step(h, a):
        z, n = gates(h, a)
        return ((1 - z) * jnp.tanh(n) + z * h,)

    start = [_zeros(jax, node, x) if state is None else state]
    return _recurrent(jax, node, x, lengths, _inputs_part(node, values, x), step, start)[0]


def _continued_gru(jax, node, values, x, state):
    return _gru(jax, node, values, x, None, state)


def _rnn(jax, node, values, x, lengths):
    recurrent = values[node.name + ".recurrent_weight"].T

    def step(h, z):
        return (jax.numpy.tanh(z + h @ recurrent),)

    sums = _inputs_part(node, values, x) + _bias(node, values, "recurrent_bias")
    return _recurrent(jax, node, x, lengths, sums, step, [_zeros(jax, node, x)])[0]


def _mean_over_time(jax, _node, _values, x, lengths=None):
    if lengths is None:
        return x.mean(1)
    return (x * _counted(jax, x, lengths)).sum(1) / lengths[:, None].astype(x.dtype)


# Functions of (jax, node, values of parameters and states by the job's names, the layer's inputs).
RECURRENT = {
    "lstm": _directed(_lstm),
    "stateful_lstm": _directed(_lstm),
    "gru": _directed(_gru),
    "rnn": _directed(_rnn),
}
LAYERS = {
    "embedding": _embedding,
    **RECURRENT,
    "continued_gru": _continued_gru,
    "mean_over_time": _mean_over_time,
}


def facts_of(jax, job, layers, values):
    """Of every recurrent layer which way JAX goes. `layers`: kind -> function, as above."""
    found = {}
    for node in job.layers:
        if not is_recurrent(node):
            continue
        given = job.inputs
        read = [given[name] if name in given else job.node(name) for name in node.inputs]
        inputs = [np.zeros(one.shape, one.dtype or np.float32) for one in read]

        def layer(*read, node=node):
            return layers[node.kind](jax, node, values, *read)

        loops = sorted(jax_operations(jax, layer, *inputs) & {"scan", "while"})
        path = "loop over the steps ({})".format(loops[0] if loops else "unrolled")
        found.update(path_facts(job, node, path, way=job.settings.get("lengths", "padded")))
    return found
