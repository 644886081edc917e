"""Layers along time, in the words that TensorFlow 1.4 and 2.21 have in common: a recurrent layer is
TensorFlow's fused kernel, which goes over all steps of the padded batch; what does not count is left out
behind it.

The gates lie in that kernel's order, i, g, f, o. TensorFlow's BlockLSTMV2 has the job's order, but its
gradient is registered as that of the older kernel (2.21, python/ops/rnn_grad.py), which is wrong for it.
"""

from timetrial_adapter import is_all

GATES = (0, 2, 1, 3)


def _counted(tf, node_steps, lengths):
    """f32 (N, T, 1): 1 at the steps that count."""
    return tf.expand_dims(tf.sequence_mask(lengths, node_steps, dtype=tf.float32), 2)


def _extents(x):
    return [int(extent) for extent in x.shape]


def _embedding(tf, node, values, tokens):
    return tf.nn.embedding_lookup(values[node.name + ".weight"], tokens)


def _sum_of_biases(tf, node, values):
    """(4 units), of the gates."""
    found = ["{}.{}".format(node.name, one) for one in ("bias", "recurrent_bias")]
    found = [values[name] for name in found if name in values]
    return sum(found[1:], found[0] + 0.0) if found else tf.zeros([4 * node.attributes["units"]])


def _fused(tf, node, values, x):
    """Of steps (T, N, F) the states (T, N, units), by one operation."""
    (steps, count, _), units = _extents(x), node.attributes["units"]
    start, peephole = tf.zeros([count, units]), tf.zeros([units])
    kernels = [values["{}.{}".format(node.name, one)] for one in ("weight", "recurrent_weight")]
    return _block_lstm(tf)(
        seq_len_max=tf.constant(steps, tf.int64),
        x=x,
        cs_prev=start,
        h_prev=start,
        w=tf.concat(kernels, 0),
        wci=peephole,
        wcf=peephole,
        wco=peephole,
        b=_sum_of_biases(tf, node, values),
        forget_bias=0.0,
        cell_clip=0.0,
        use_peephole=False,
    )[-1]


def _block_lstm(tf):
    if hasattr(tf, "raw_ops"):
        return tf.raw_ops.BlockLSTM
    from tensorflow.contrib.rnn.python.ops import lstm_ops

    return lstm_ops.gen_lstm_ops.block_lstm


def _loop(tf, node, values, x):
    """The same where no compiler knows that operation: the inputs' part of the gates for all steps at once;
    then one step after the other."""
    (steps, count, features), units = _extents(x), node.attributes["units"]
    recurrent = values[node.name + ".recurrent_weight"]
    sums = tf.matmul(tf.reshape(x, [-1, features]), values[node.name + ".weight"])
    sums = tf.reshape(sums + _sum_of_biases(tf, node, values), [steps, count, 4 * units])
    given = tf.TensorArray(tf.float32, steps, element_shape=[count, 4 * units]).unstack(sums)
    found = tf.TensorArray(tf.float32, steps, element_shape=[count, units])

    def step(t, h, c, found):
        i, g, f, o = tf.split(given.read(t) + tf.matmul(h, recurrent), 4, axis=1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        h = tf.sigmoid(o) * tf.tanh(c)
        return t + 1, h, c, found.write(t, h)

    start = tf.zeros([count, units])
    given_first = (tf.constant(0), start, start, found)
    end = tf.while_loop(lambda t, *_: t < steps, step, given_first, maximum_iterations=steps)
    return end[-1].stack()


def _recurrent(states_of):
    """The layer around what computes all states."""

    def make(tf, node, values, x, lengths=None):
        states = states_of(tf, node, values, tf.transpose(x, [1, 0, 2]))
        count, steps, _ = _extents(x)
        if is_all(node):
            states = tf.transpose(states, [1, 0, 2])
            return states if lengths is None else states * _counted(tf, steps, lengths)
        if lengths is None:
            return states[-1]
        places = tf.stack([lengths - 1, tf.range(count, dtype=tf.int64)], axis=1)
        return tf.gather_nd(states, places)

    return make


def _mean_over_time(tf, _node, _values, x, lengths=None):
    if lengths is None:
        return tf.reduce_mean(x, 1)
    count = tf.cast(tf.expand_dims(lengths, 1), tf.float32)
    return tf.reduce_sum(x * _counted(tf, _extents(x)[1], lengths), 1) / count


# Functions of (tf, node, variables by the job's names as Values, the layer's inputs).
LAYERS = {"embedding": _embedding, "lstm": _recurrent(_fused), "mean_over_time": _mean_over_time}
# What is otherwise where XLA compiles.
COMPILED = {"lstm": _recurrent(_loop)}


def path_of(operations):
    """The words for a recurrent layer, of the types of the operations that it is made of."""
    if "BlockLSTM" in operations:
        return "fused kernel (BlockLSTM)"
    loops = sorted(operations & {"While", "StatelessWhile", "Enter"})
    return "loop over the steps ({})".format(loops[0] if loops else "unrolled")
