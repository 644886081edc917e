"""The network in MXNet's operators: `ops` is mx.nd or mx.sym, which have the same for arrays and symbols."""

from timetrial_adapter import bias_name, pair, weight_name


def layer_values(ops, job, images, parameters):
    """Name of a layer -> what it gives, up to the loss."""
    values = {job.sources[0]: images}
    for node in job.nodes:
        if node.name != job.loss:
            given = [parameters[n] for n in (weight_name(node), bias_name(node)) if n in parameters]
            values[node.name] = _layer(ops, node, [values[name] for name in node.inputs] + given)
    return values


def _layer(ops, node, inputs):
    if node.kind == "dense":
        units = node.attributes["units"]
        return ops.FullyConnected(*inputs, num_hidden=units, no_bias=len(inputs) == 2, flatten=False)
    if node.kind == "flatten":
        return ops.Flatten(*inputs)
    if node.kind == "add":
        return ops.add_n(*inputs)
    if node.kind == "concat":
        return ops.concat(*inputs, dim=1)
    if node.kind in ("relu", "tanh", "sigmoid"):
        return ops.Activation(*inputs, act_type=node.kind)
    window = {"kernel": pair(node, "kernel"), "stride": pair(node, "stride"), "pad": pair(node, "padding")}
    if node.kind == "conv2d":
        channels = node.attributes["channels"]
        return ops.Convolution(*inputs, num_filter=channels, no_bias=len(inputs) == 2, **window)
    return ops.Pooling(*inputs, pool_type=node.kind[:3], pooling_convention="valid", **window)


def mean_loss(ops, job, prediction, labels):
    """Over the batch, as the job's loss node asks."""
    if job.node(job.loss).kind == "softmax_cross_entropy":
        return ops.mean(-ops.pick(ops.log_softmax(prediction), labels))
    return ops.mean(ops.square(prediction - ops.one_hot(labels, depth=job.classes)))
