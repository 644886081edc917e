"""The model in the words that Keras 2.3.1 and Keras 3 have in common."""

import numpy as np
from timetrial_adapter import borders, keeps_order, pair, same_borders, source_shape


class Network(object):
    """The job's network as Keras' layers, each made once.

    model: of the inputs that layers read, `given`, with masks where layers drop values. inferring: the same
    layers without masks, of the inputs `read`. layers: name -> layer, of the nodes that are one. outputs:
    name -> what a node gives in `model`, of every node but the loss.

    `kinds` are makers like LAYERS; `lowest_padding(rows, columns)` is a function of a tensor that pads it
    with values that never win.
    """

    def __init__(self, keras, job, kinds, data_format, lowest_padding):
        self._keras, self._job, self._kinds = keras, job, kinds
        self._format, self._lowest_padding = data_format, lowest_padding
        self.layers, self._before = {}, {}
        self.given = list(job.sources)
        self.read = [name for name in job.sources if name not in job.masks]
        inputs = {name: self._input(name) for name in self.given}
        self.outputs = self._connect(inputs)
        self.model = self._model(inputs, self.outputs)
        self.inferring = self.model
        if job.masks:
            read = {name: self._input(name, "") for name in self.read}
            self.inferring = self._model(read, self._connect(read))

    def _model(self, inputs, outputs):
        given = list(inputs.values())
        return self._keras.models.Model(given if len(given) > 1 else given[0], outputs[self._job.output])

    def _input(self, name, prefix="input_"):
        node = self._job.inputs[name]
        shape = tuple(node.shape[1:])
        if len(shape) == 3 and self._format == "channels_last":
            shape = shape[1:] + shape[:1]
        # Whole numbers as all backends have them.
        dtype = "int32" if node.dtype == np.int64 else "float32"
        return self._keras.layers.Input(shape=shape, dtype=dtype, name=prefix + name.replace(".", "_"))

    def _connect(self, values):
        values = dict(values)
        for node in self._job.nodes:
            if node.name == self._job.loss:
                continue
            read = [values[name] for name in node.inputs if name in values]
            if node.kind == "dropout" and len(read) == 1:  # in inference
                values[node.name] = read[0]
                continue
            if node.name not in self.layers:
                self._make(node)
            for layer in self._before[node.name]:
                read = [layer(one) for one in read]
            values[node.name] = self.layers[node.name](read if len(read) > 1 else read[0])
        return {name: value for name, value in values.items() if name not in self._job.inputs}

    def _make(self, node):
        """The layer, and those that prepare its input."""
        layers, before, padding = self._keras.layers, [], "valid"
        shape = source_shape(self._job, node)
        if "padding_h" in node.attributes and node.kind != "conv_transpose2d":
            if _is_same(node, shape, self._format):
                padding = "same"
            elif borders(node) == ((0, 0), (0, 0)):
                pass
            elif node.kind == "max_pool2d":
                padded = _padded_shape(node, shape, self._format)
                before = [layers.Lambda(self._lowest_padding(*borders(node)), output_shape=padded)]
            else:
                before = [layers.ZeroPadding2D(borders(node), data_format=self._format)]
        elif node.kind == "flatten" and self._format == "channels_last" and len(shape) == 4:
            before = [layers.Permute((3, 1, 2))] if keeps_order(self._job, node.name) else []
        elif node.kind == "map_to_sequence":
            before = [layers.Permute((1, 3, 2) if self._format == "channels_last" else (2, 1, 3))]
        self._before[node.name] = before
        self.layers[node.name] = self._kinds[node.kind](layers, node, padding, self._format)


def _dense(layers, node, _padding, _format):
    return layers.Dense(node.attributes["units"], use_bias=bool(node.attributes["bias"]), name=node.name)


def _conv2d(layers, node, padding, data_format):
    channels, bias = node.attributes["channels"], bool(node.attributes["bias"])
    given = window(node, padding, data_format)
    return layers.Conv2D(channels, pair(node, "kernel"), use_bias=bias, **given)


def _max_pool2d(layers, node, padding, data_format):
    return layers.MaxPooling2D(pair(node, "kernel"), **window(node, padding, data_format))


def _avg_pool2d(layers, node, padding, data_format):
    return layers.AveragePooling2D(pair(node, "kernel"), **window(node, padding, data_format))


def window(node, padding, data_format):
    """What layers with a window are told of it beside its extents."""
    strides = pair(node, "stride")
    return {"strides": strides, "padding": padding, "data_format": data_format, "name": node.name}


def _global_avg_pool2d(layers, node, _padding, data_format):
    return layers.GlobalAveragePooling2D(data_format=data_format, name=node.name)


def _upsample2d(layers, node, _padding, data_format):
    return layers.UpSampling2D(pair(node, "scale"), data_format=data_format, name=node.name)


def _concat(layers, node, _padding, data_format):
    return layers.Concatenate(axis=1 if data_format == "channels_first" else -1, name=node.name)


def _activation(layers, node, _padding, _format):
    return layers.Activation(node.kind, name=node.name)


def _flatten(layers, node, _padding, _format):
    # With "channels_first" it would transpose; without, it takes a sample's values as they lie.
    return layers.Flatten(data_format="channels_last", name=node.name)


# Functions of (keras.layers, node, padding in Keras' word, data format) that make a layer.
LAYERS = {
    "dense": _dense,
    "conv2d": _conv2d,
    "max_pool2d": _max_pool2d,
    "avg_pool2d": _avg_pool2d,
    "global_avg_pool2d": _global_avg_pool2d,
    "upsample2d": _upsample2d,
    "relu": _activation,
    "tanh": _activation,
    "sigmoid": _activation,
    "leaky_relu": lambda layers, node, *_: layers.LeakyReLU(node.attributes["slope"], name=node.name),
    "relu6": lambda layers, node, *_: layers.ReLU(6.0, name=node.name),
    "flatten": _flatten,
    "map_to_sequence": lambda layers, node, *_: layers.Reshape(tuple(node.shape[1:]), name=node.name),
    "dropout": lambda layers, node, *_: layers.Multiply(name=node.name),  # of values and mask
    "add": lambda layers, node, *_: layers.Add(name=node.name),
    "concat": _concat,
}


def _padded_shape(node, shape, data_format):
    """Of one sample: Theano cannot find out by itself."""
    extents = tuple(extent + sum(border) for extent, border in zip(shape[2:], borders(node)))
    return (shape[1], *extents) if data_format == "channels_first" else (*extents, shape[1])


def _is_same(node, shape, data_format):
    """Whether Keras' own word for this padding is "same". Its averages leave padded cells out, so for those
    it never is where there are any. On Theano, the only one with "channels_first", it pads both ends alike,
    and pools of 2 and 5 rows are moved by one."""
    wanted = borders(node)
    if wanted == ((0, 0), (0, 0)) or node.kind == "avg_pool2d" or wanted != same_borders(node, shape):
        return False
    is_even = all(first == last for first, last in wanted)
    return data_format != "channels_first" or (is_even and node.kind != "max_pool2d")
