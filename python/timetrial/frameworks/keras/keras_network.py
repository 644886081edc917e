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
        if node.kind in ("conv2d", "max_pool2d", "avg_pool2d") and any(pair(node, "padding")):
            height, width = pair(node, "padding")
            if _is_same(node):
                padding = "same"
            elif node.kind == "max_pool2d":
                shape = _padded_shape(job, node, data_format)
                x = keras.layers.Lambda(lowest_padding(height, width), output_shape=shape)(x)
            else:
                x = keras.layers.ZeroPadding2D((height, width), data_format=data_format)(x)
        layers[node.name] = _layer(keras, node, padding, data_format)
        values[node.name] = layers[node.name](x)
    return keras.models.Model(images, values[job.output]), layers


def _layer(keras, node, padding, data_format):
    kind, layers = node.kind, keras.layers
    if kind == "dense":
        return layers.Dense(node.attributes["units"], use_bias=bool(node.attributes["bias"]), name=node.name)
    if kind == "conv2d":
        return layers.Conv2D(
            node.attributes["channels"],
            pair(node, "kernel"),
            strides=pair(node, "stride"),
            padding=padding,
            use_bias=bool(node.attributes["bias"]),
            data_format=data_format,
            name=node.name,
        )
    if kind in ("max_pool2d", "avg_pool2d"):
        make = layers.MaxPooling2D if kind == "max_pool2d" else layers.AveragePooling2D
        return make(
            pair(node, "kernel"),
            strides=pair(node, "stride"),
            padding=padding,
            data_format=data_format,
            name=node.name,
        )
    if kind == "flatten":
        # With "channels_first" it would transpose; without, it takes a sample's values as they lie.
        return layers.Flatten(data_format="channels_last", name=node.name)
    return layers.Activation(kind, name=node.name)


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
