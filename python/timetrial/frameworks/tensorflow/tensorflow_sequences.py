"""Layers along time, in the words that TensorFlow 1.4 and 2.21 have in common: an LSTM is TensorFlow's fused
kernel, which goes over all steps of the padded batch, a layer of another kind a loop over them; what does not
count is left out behind it.

An LSTM's gates lie in that kernel's order, i, g, f, o. TensorFlow's BlockLSTMV2 has the job's order, but its
gradient is registered as that of the older kernel (2.21, python/ops/rnn_grad.py), which is wrong for it.
"""

from timetrial_adapter import directions, goes_on, in_directions, is_all

_IGFO = (0, 2, 1, 3)
GATES = {"lstm": _IGFO, "stateful_lstm": _IGFO}


def _counted(tf, node_steps, lengths):
    """f32 (N, T, 1): 1 at the steps that count."""
    return tf.expand_dims(tf.sequence_mask(lengths, node_steps, dtype=tf.float32), 2)


def _extents(x):
    return [int(extent) for extent in x.shape]


def _embedding(tf, node, values, tokens):
    return tf.nn.embedding_lookup(values[node.name + ".weight"], tokens)


def _bias(tf, node, values, *which):
    """(gates x units): the sum of these of the layer's biases."""
    found = ["{}.{}".format(node.name, one) for one in which or ("bias", "recurrent_bias")]
    found = [values[name] for name in found if name in values]
    return sum(found[1:], found[0] + 0.0) if found else tf.zeros([node.parameters[0][1][0]])


def _start(tf, node, values, x, states):
    """So many states in front of the first step, of steps (T, N, F). Those of a layer that goes on are read
    here: they move behind the step."""
    if goes_on(node, values):
        return [values[name] + 0.0 for name, _ in node.states]
    return [tf.zeros([_extents(x)[1], node.attributes["units"]])] * states


def _keep(node, values, *last):
    if goes_on(node, values):
        values.moved.update((name, state) for (name, _), state in zip(node.states, last))


def _fused(tf, node, values, x, most):
    """Of steps (T, N, F) the states (T, N, units), by one operation; behind the first `most` zeros."""
    peephole = tf.zeros([node.attributes["units"]])
    hidden, cell = _start(tf, node, values, x, 2)
    kernels = [values["{}.{}".format(node.name, one)] for one in ("weight", "recurrent_weight")]
    found = _block_lstm(tf)(
        seq_len_max=tf.cast(most, tf.int64),
        x=x,
        cs_prev=cell,
        h_prev=hidden,
        w=tf.concat(kernels, 0),
        wci=peephole,
        wcf=peephole,
        wco=peephole,
        b=_bias(tf, node, values),
        forget_bias=0.0,
        cell_clip=0.0,
        use_peephole=False,
    )
    _keep(node, values, found[-1][-1], found[1][-1])
    return found[-1]


def _block_lstm(tf):
    if hasattr(tf, "raw_ops"):
        return tf.raw_ops.BlockLSTM
    from tensorflow.contrib.rnn.python.ops import lstm_ops

    return lstm_ops.gen_lstm_ops.block_lstm


def _loop(tf, node, values, x, most, bias, step, start):
    """The states of a layer from step to step, up to `most` of them. The inputs' part of the gates, with
    `bias`, is computed for all of these at once; `step` makes of that of one step and of the states, `start`
    in front of the first, those behind it, of which the first is shown."""
    (steps, count, features), units = _extents(x), node.attributes["units"]
    sums = tf.matmul(tf.reshape(x[:most], [-1, features]), values[node.name + ".weight"]) + bias
    width = _extents(values[node.name + ".weight"])[1]
    sums = tf.reshape(sums, [-1, count, width])
    given = tf.TensorArray(tf.float32, most, element_shape=[count, width]).unstack(sums)
    found = tf.TensorArray(tf.float32, steps, element_shape=[count, units])

    def go_on(t, found, *before):
        behind = step(given.read(t), *before)
        return (t + 1, found.write(t, behind[0]), *behind)

    begin = (tf.constant(0), found, *start)
    limit = {"maximum_iterations": steps} if hasattr(tf, "raw_ops") else {}  # 1.4 has no word for it
    _, found, *last = tf.while_loop(lambda t, *_: t < most, go_on, begin, **limit)
    _keep(node, values, *last)
    return found.stack()


def _lstm_loop(tf, node, values, x, most):
    """What the fused kernel computes, for compilers that do not know it."""
    recurrent = values[node.name + ".recurrent_weight"]

    def step(z, h, c):
        i, g, f, o = tf.split(z + tf.matmul(h, recurrent), 4, axis=1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        return tf.sigmoid(o) * tf.tanh(c), c

    start = _start(tf, node, values, x, 2)
    return _loop(tf, node, values, x, most, _bias(tf, node, values), step, start)


def _gru_loop(tf, node, values, x, most, state=None):
    """In both of its forms: the reset behind the product of h, or in front of it. `state`: in front of the
    first step, if it isn't 0."""
    units, recurrent = node.attributes["units"], values[node.name + ".recurrent_weight"]
    bias = _bias(tf, node, values, "recurrent_bias")

    def behind(a, h):
        q = tf.matmul(h, recurrent) + bias
        r, z = tf.split(tf.sigmoid(a[:, : 2 * units] + q[:, : 2 * units]), 2, axis=1)
        return z, a[:, 2 * units :] + r * q[:, 2 * units :]

    def in_front(a, h):
        q = tf.matmul(h, recurrent[:, : 2 * units])
        r, z = tf.split(tf.sigmoid(a[:, : 2 * units] + q), 2, axis=1)
        return z, a[:, 2 * units :] + tf.matmul(r * h, recurrent[:, 2 * units :])

    gates = behind if node.attributes["reset_after"] else in_front

    def step(a, h):
        z, n = gates(a, h)
        return ((1 - z) * tf.tanh(n) + z * h,)

    start = _start(tf, node, values, x, 1) if state is None else [state]
    return _loop(tf, node, values, x, most, _bias(tf, node, values, "bias"), step, start)


def _rnn_loop(tf, node, values, x, most):
    recurrent = values[node.name + ".recurrent_weight"]

    def step(z, h):
        return (tf.tanh(z + tf.matmul(h, recurrent)),)

    return _loop(tf, node, values, x, most, _bias(tf, node, values), step, _start(tf, node, values, x, 1))


def _recurrent(states_of, trims=False):
    """The layer around what computes all states, or those up to the last that counts in a batch."""

    def forward(tf, node, values, x, lengths):
        count, steps, _ = _extents(x)
        most = steps
        if trims and lengths is not None:
            most = tf.cast(tf.reduce_max(lengths), tf.int32)
        states = states_of(tf, node, values, tf.transpose(x, [1, 0, 2]), most)
        if is_all(node):
            states = tf.transpose(states, [1, 0, 2])
            return states if lengths is None else states * _counted(tf, steps, lengths)
        if lengths is None:
            return states[-1]
        places = tf.stack([lengths - 1, tf.range(count, dtype=tf.int64)], axis=1)
        return tf.gather_nd(states, places)

    def make(tf, node, values, x, lengths=None):
        def turned(x):
            return tf.reverse(x, [1]) if lengths is None else tf.reverse_sequence(x, lengths, 1, batch_axis=0)

        return in_directions(
            directions(node),
            x,
            lambda part, x: forward(tf, part, values, x, lengths),
            turned,
            lambda found: tf.concat(found, -1),
        )

    return make


def _continued_gru(tf, node, values, x, state):
    states = _gru_loop(tf, node, values, tf.transpose(x, [1, 0, 2]), _extents(x)[1], state)
    return tf.transpose(states, [1, 0, 2]) if is_all(node) else states[-1]


def _mean_over_time(tf, _node, _values, x, lengths=None):
    if lengths is None:
        return tf.reduce_mean(x, 1)
    count = tf.cast(tf.expand_dims(lengths, 1), tf.float32)
    return tf.reduce_sum(x * _counted(tf, _extents(x)[1], lengths), 1) / count


# Functions of (tf, node, variables by the job's names as Values, the layer's inputs).
LAYERS = {
    "embedding": _embedding,
    "lstm": _recurrent(_fused),
    "stateful_lstm": _recurrent(_fused),
    "gru": _recurrent(_gru_loop),
    "continued_gru": _continued_gru,
    "rnn": _recurrent(_rnn_loop),
    "mean_over_time": _mean_over_time,
}
# What is otherwise where XLA compiles, and where batches are cut (`lengths=trimmed`), which XLA cannot.
COMPILED = {"lstm": _recurrent(_lstm_loop), "stateful_lstm": _recurrent(_lstm_loop)}
TRIMMED = {
    "lstm": _recurrent(_fused, trims=True),
    "gru": _recurrent(_gru_loop, trims=True),
    "rnn": _recurrent(_rnn_loop, trims=True),
}
WAYS = ("padded", "trimmed")


def kinds_of(layers, way, compiled=False):
    """All kinds, those along time as the setting `lengths` and the mode want them."""
    return dict(layers, **(COMPILED if compiled else TRIMMED if way == "trimmed" else {}))


def path_of(operations, eager=False):
    """The words for a recurrent layer, of the types of the operations that a graph of it is made of. `eager`:
    there is none, and Python goes from step to step."""
    if "BlockLSTM" in operations:
        return "fused kernel (BlockLSTM)"
    loops = sorted(operations & {"While", "StatelessWhile", "Enter"})
    if eager and loops:
        return "loop over the steps (in Python)"
    return "loop over the steps ({})".format(loops[0] if loops else "unrolled")
