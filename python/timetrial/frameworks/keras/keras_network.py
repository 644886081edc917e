"""The model in the words that Keras 2.3.1 and Keras 3 have in common."""

from timetrial_adapter import pair


def build_model(keras, job, data_format, lowest_padding):
    """(the model, name -> its layer, for every layer of the job but the loss).

    `lowest_padding(height, width)` is a function of a tensor that pads it with values that never win."""
    shape = tuple(job.inputs[job.sources[0]].shape[1:])
    if len(shape) == 3 and data_format == "channels_last":
        shape = shape[1:] + shape[:1]
    images = keras.layers.Input(shape=shape, name=job.sources[0])
    values, layers = {job.sources[0]: images}, {}
    for node in job.nodes:
        if node.name == job.loss:
            continue
        x = values[node.inputs[0]]
        padding = "valid"
        if "padding_h" in node.attributes and any(pair(node, "padding")):
            height, width = pair(node, "padding")
            if _is_same(node):
                padding = "same"
            elif node.kind == "max_pool2d":
                shape = _padded_shape(job, node, data_format)
                x = keras.layers.Lambda(lowest_padding(height, width), output_shape=shape)(x)
            else:
                x = keras.layers.ZeroPadding2D((height, width), data_format=data_format)(x)
        layers[node.name] = LAYERS[node.kind](keras.layers, node, padding, data_format)
        values[node.name] = layers[node.name](x)
    return keras.models.Model(images, values[job.output]), layers


def _dense(layers, node, _padding, _format):
    return layers.Dense(node.attributes["units"], use_bias=bool(node.attributes["bias"]), name=node.name)


def _conv2d(layers, node, padding, data_format):
    channels, bias = node.attributes["channels"], bool(node.attributes["bias"])
    given = _window(node, padding, data_format)
    return layers.Conv2D(channels, pair(node, "kernel"), use_bias=bias, **given)


def _max_pool2d(layers, node, padding, data_format):
    return layers.MaxPooling2D(pair(node, "kernel"), **_window(node, padding, data_format))


def _avg_pool2d(layers, node, padding, data_format):
    return layers.AveragePooling2D(pair(node, "kernel"), **_window(node, padding, data_format))


def _window(node, padding, data_format):
    strides = pair(node, "stride")
    return {"strides": strides, "padding": padding, "data_format": data_format, "name": node.name}


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
    "relu": _activation,
    "tanh": _activation,
    "sigmoid": _activation,
    "flatten": _flatten,
}


def _padded_shape(job, node, data_format):
    """Of one sample: Theano cannot find out by itself."""
    source = node.inputs[0]
    _, channels, height, width = (job.inputs[source] if source in job.inputs else job.node(source)).shape
    down, right = pair(node, "padding")
    extents = (height + 2 * down, width + 2 * right)
    return (channels, *extents) if data_format == "channels_first" else (*extents, channels)


def _is_same(node):
    """Whether Keras' own word for this padding is "same". Its averages leave padded cells out, so for those
    it never is."""
    kernel = pair(node, "kernel")
    odd = all(extent % 2 == 1 for extent in kernel)
    centered = pair(node, "padding") == tuple(extent // 2 for extent in kernel)
    return node.kind != "avg_pool2d" and odd and centered and pair(node, "stride") == (1, 1)
