"""What Keras 3 has beyond the words of keras_network.py. No layer of it is a local response normalization."""

import keras_network
import keras_sequences
from keras_network import window
from timetrial_adapter import pair


def _conv2d(layers, node, padding, data_format):
    """With a kernel for each channel it is a layer of its own."""
    if max(pair(node, "stride")) > 1 and max(pair(node, "dilation")) > 1:
        words = "Keras has no convolution with a stride and a dilation at once ('{}')"
        raise ImportError(words.format(node.name))
    given = dict(window(node, padding, data_format), use_bias=bool(node.attributes["bias"]))
    given["dilation_rate"] = pair(node, "dilation")
    groups, channels = node.attributes["groups"], node.attributes["channels"]
    (_, (_, inputs, _, _)) = node.parameters[0]
    if groups > 1 and inputs == 1 and pair(node, "stride")[0] == pair(node, "stride")[1]:
        return layers.DepthwiseConv2D(pair(node, "kernel"), depth_multiplier=channels // groups, **given)
    return layers.Conv2D(channels, pair(node, "kernel"), groups=groups, **given)


def _conv_transpose2d(layers, node, _padding, data_format):
    """The whole of it; then what the padding takes away."""
    bias, channels = bool(node.attributes["bias"]), node.attributes["channels"]
    given = dict(window(node, "valid", data_format), output_padding=pair(node, "output_padding"))
    whole = layers.Conv2DTranspose(channels, pair(node, "kernel"), use_bias=bias, **given)
    if pair(node, "padding") == (0, 0):
        return whole
    cropping = layers.Cropping2D(pair(node, "padding"), data_format=data_format)
    return Chain(whole, cropping)


class Chain(object):
    """A layer with weights, `first`, and one behind it."""

    def __init__(self, first, second):
        self.first, self._second = first, second

    def __call__(self, x):
        """Through both."""
        return self._second(self.first(x))


def _batch_norm(layers, node, _padding, data_format):
    is_first = data_format == "channels_first"
    momentum, epsilon = 1 - node.attributes["momentum"], node.attributes["epsilon"]
    return layers.BatchNormalization(1 if is_first else -1, momentum, epsilon, name=node.name)


LAYERS = {
    **keras_network.LAYERS,
    "conv2d": _conv2d,
    "conv_transpose2d": _conv_transpose2d,
    "batch_norm": _batch_norm,
    **keras_sequences.LAYERS,
}


def tensors_of(node, layer):
    """(parameters, states) of a layer in the job's order."""
    kept, layer = getattr(layer, "kept", []), getattr(layer, "first", layer)
    found = keras_sequences.parameters_of(node, layer)
    if found is not None:
        return found, kept
    if node.states:
        return [layer.gamma, layer.beta], [layer.moving_mean, layer.moving_variance]
    return [layer.kernel] + ([layer.bias] if len(node.parameters) > 1 else []), []
