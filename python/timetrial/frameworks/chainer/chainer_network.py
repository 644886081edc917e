"""The network in Chainer's links and functions: what computes each kind of layer, and each loss."""

import chainer_sequences
import numpy as np
from timetrial_adapter import bias_name, biased_variance, borders, one_hot, pair, response_alpha, weight_name


def make_chain(chainer, job):
    """The layers that have parameters, as links with their initial values."""
    chain = chainer.Chain()
    with chain.init_scope():
        for node in job.nodes:
            if node.kind in OWN_LINKS:
                setattr(chain, node.name, OWN_LINKS[node.kind](chainer, node, job))
            elif node.states:
                setattr(chain, node.name, _batch_normalization(chainer, node, job))
            if node.states or not node.parameters or node.kind in OWN_LINKS:
                continue
            weight = np.array(job.parameters[weight_name(node)])
            bias = bias_name(node)
            given = {"nobias": bias is None, "initialW": weight}
            if bias is not None:
                given["initial_bias"] = np.array(job.parameters[bias])
            setattr(chain, node.name, LINKS[node.kind](chainer.links, node, weight.shape, given))
    return chain


def _tied_bias(chainer, node, job):
    """What a tied layer has of its own."""
    if not node.parameters:
        return chainer.Link()
    bias = chainer.links.Bias(shape=(node.attributes["units"],))
    bias.b.array[...] = job.parameters[bias_name(node)]
    return bias


def _batch_normalization(chainer, node, job):
    initial = {name.split(".")[-1]: np.array(job.states[name]) for name, _ in node.states}

    class BatchNormalization(chainer.links.BatchNormalization):
        """It trains as Chainer's, which keeps unbiased variances; it infers with the biased ones."""

        taken = 0

        def forward(self, x):
            if chainer.config.train:
                self.taken += 1
                return super(BatchNormalization, self).forward(x)
            shown, fixed = self.shown(), chainer.functions.fixed_batch_normalization
            return fixed(x, self.gamma, self.beta, shown["running_mean"], shown["running_var"], self.eps)

        def shown(self):
            """The states, as the job has them."""
            variance = biased_variance(node, self.avg_var, initial["running_var"], self.taken)
            return {"running_mean": np.array(self.avg_mean), "running_var": variance}

    return BatchNormalization(
        node.shape[1],
        decay=1 - node.attributes["momentum"],
        eps=node.attributes["epsilon"],
        initial_gamma=np.array(job.parameters[weight_name(node)]),
        initial_beta=np.array(job.parameters[node.name + ".bias"]),
        initial_avg_mean=initial["running_mean"],
        initial_avg_var=initial["running_var"],
    )


def _convolution(links, node, shape, given):
    groups = node.attributes["groups"]
    kernel, stride, padding = _window(node)
    padding = padding if _is_even(node) else 0
    given = dict(given, groups=groups, dilate=pair(node, "dilation"))
    return links.Convolution2D(shape[1] * groups, shape[0], kernel, stride, padding, **given)


def _deconvolution(links, node, shape, given):
    return links.Deconvolution2D(shape[0], shape[1], *_window(node), outsize=node.shape[2:], **given)


# Functions of (chainer, node, job) that make a link with the parameters of the job.
OWN_LINKS = dict(chainer_sequences.LINKS, tied_dense=_tied_bias)

# Of the layers with parameters: functions of (chainer.links, node, shape of the weight, what else is given).
LINKS = {
    "dense": lambda links, _, shape, given: links.Linear(shape[1], shape[0], **given),
    "conv2d": _convolution,
    "conv_transpose2d": _deconvolution,
}


def _is_even(node):
    """Whether the padding is the same before and after, as Chainer's own is."""
    return all(before == after for before, after in borders(node))


def _window(node):
    return pair(node, "kernel"), pair(node, "stride"), pair(node, "padding")


def _linked(_, chain, node, x):
    return getattr(chain, node.name)(x)


def _dense(_, chain, node, x):
    """Of a sequence, of each step of each sample."""
    return getattr(chain, node.name)(x, n_batch_axes=len(node.shape) - 1)


def _tied_dense(functions, chain, node, x):
    bias = getattr(chain, node.name).b if bias_name(node) else None
    table = getattr(chain, node.attributes["tied"]).W
    return functions.linear(x, table, bias, n_batch_axes=len(node.shape) - 1)


def _conv2d(functions, chain, node, x):
    if not _is_even(node):
        x = functions.pad(x, ((0, 0), (0, 0), *borders(node)), "constant")
    return getattr(chain, node.name)(x)


def _upsample2d(functions, _, node, x):
    scale = pair(node, "scale")
    return functions.unpooling_2d(x, scale, scale, 0, node.shape[2:])


def _local_response_norm(functions, _, node, x):
    size, beta, k = (node.attributes[key] for key in ("size", "beta", "k"))
    return functions.local_response_normalization(x, size, k, response_alpha(node, over_size=False), beta)


def _max_pool2d(functions, _, node, x):
    return functions.max_pooling_2d(x, *_window(node), cover_all=False)


def _avg_pool2d(functions, _, node, x):
    return functions.average_pooling_2d(x, *_window(node))


# Functions of (chainer.functions, chain, node, the layer's inputs).
LAYERS = {
    **dict.fromkeys(LINKS, _linked),
    **chainer_sequences.LAYERS,
    "dense": _dense,
    "tied_dense": _tied_dense,
    "conv2d": _conv2d,
    "batch_norm": _linked,
    "max_pool2d": _max_pool2d,
    "avg_pool2d": _avg_pool2d,
    "global_avg_pool2d": lambda functions, _chain, _node, x: functions.mean(x, axis=(2, 3)),
    "upsample2d": _upsample2d,
    "local_response_norm": _local_response_norm,
    "relu": lambda functions, _chain, _node, x: functions.relu(x),
    "leaky_relu": lambda functions, _chain, node, x: functions.leaky_relu(x, node.attributes["slope"]),
    "relu6": lambda functions, _chain, _node, x: functions.clipped_relu(x, 6.0),
    "tanh": lambda functions, _chain, _node, x: functions.tanh(x),
    "sigmoid": lambda functions, _chain, _node, x: functions.sigmoid(x),
    "map_to_sequence": lambda functions, _chain, node, x: functions.reshape(
        functions.transpose(x, (0, 2, 1, 3)), node.shape
    ),
    "flatten": lambda functions, _chain, _node, x: functions.reshape(x, (len(x), -1)),
    "dropout": lambda _functions, _chain, _node, x, mask=None: x if mask is None else x * mask,
    "add": lambda functions, _chain, _node, *inputs: functions.add(*inputs),
    "concat": lambda functions, _chain, _node, *inputs: functions.concat(inputs, axis=1),
}


def _squared_error(functions, prediction, labels):
    return functions.mean_squared_error(prediction, one_hot(labels, prediction.shape[1]))


def _mean_squared_error(functions, prediction, target):
    return functions.mean_squared_error(prediction, target.reshape(prediction.shape))


def _sequence_cross_entropy(functions, prediction, labels):
    rows = functions.reshape(prediction, (-1, prediction.shape[-1]))
    return functions.softmax_cross_entropy(rows, labels.reshape(-1))  # which leaves out -1


# Functions of (chainer.functions, prediction, labels or the numbers wanted).
LOSSES = {
    "softmax_cross_entropy": lambda functions, *given: functions.softmax_cross_entropy(*given),
    "sequence_cross_entropy": _sequence_cross_entropy,
    "squared_error": _squared_error,
    "mean_squared_error": _mean_squared_error,
}
