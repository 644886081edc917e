"""The network in the words that TensorFlow 1.4 and 2.21 have in common; tensorflow_layers.py has the layers.
Images are (N, H, W, C)."""

from timetrial_adapter import keeps_order


def predict(tf, job, kinds, values, inputs):
    """name -> output of every layer but the loss; `kinds` makes them, `values` (Values) has the variables by
    the job's names. `inputs` are those of the batch by name: without masks, in inference."""
    found = dict(inputs)
    for node in job.layers:
        x, *more = [found[name] for name in node.inputs if name in found]
        if node.kind == "flatten" and len(x.shape) == 4 and keeps_order(job, node.name):
            x = tf.transpose(x, [0, 3, 1, 2])
        found[node.name] = kinds[node.kind](tf, node, values, x, *more)
    return {name: value for name, value in found.items() if name not in job.inputs}


def mean_loss(tf, job, prediction, labels):
    """The mean loss of the batch."""
    return LOSSES[job.node(job.loss).kind](tf, prediction, labels)


def _softmax_cross_entropy(tf, prediction, labels):
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=prediction)
    return tf.reduce_mean(losses)


def _sequence_cross_entropy(tf, prediction, labels):
    counted = tf.cast(tf.greater_equal(labels, 0), prediction.dtype)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.maximum(labels, 0), logits=prediction)
    return tf.reduce_sum(losses * counted) / tf.reduce_sum(counted)


def _squared_error(tf, prediction, labels):
    return tf.reduce_mean(tf.square(prediction - tf.one_hot(labels, int(prediction.shape[-1]))))


def _mean_squared_error(tf, prediction, target):
    if len(target.shape) == 4:  # images, channels last; what is predicted of them is in the job's order
        target = tf.transpose(target, [0, 3, 1, 2])
    return tf.reduce_mean(tf.square(prediction - tf.reshape(target, prediction.shape)))


# Functions of (tf, prediction, labels or the numbers wanted).
LOSSES = {
    "softmax_cross_entropy": _softmax_cross_entropy,
    "sequence_cross_entropy": _sequence_cross_entropy,
    "squared_error": _squared_error,
    "mean_squared_error": _mean_squared_error,
}
