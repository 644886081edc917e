"""The network in PyTorch's modules, and what makes each loss; pytorch_layers.py has the layers."""

from collections import OrderedDict

from pytorch_layers import LAYERS


def make_model(torch, job):
    """A module with the layers by name in `.layers`: a Sequential where the network is a chain."""
    nodes, outputs = job.layers, list(OrderedDict.fromkeys(node.inputs[0] for node, _ in job.losses))
    before = {node.name: previous for node, previous in zip(nodes, job.sources[:1] + [n.name for n in nodes])}
    layers = {node.name: LAYERS[node.kind](torch, node) for node in nodes}
    for node in nodes:
        if "tied" in node.attributes:
            layers[node.name].weight = layers[node.attributes["tied"]].weight
    if all(node.inputs == [before[node.name]] for node in nodes) and [nodes[-1].name] == outputs:
        model = torch.nn.Sequential(*layers.values())
    else:
        order = [(node.name, node.inputs) for node in nodes]
        model = _graph_module(torch, job.sources, order, layers, outputs)
    model.layers = layers
    return model


def _graph_module(torch, sources, order, layers, outputs):
    """A network that is no chain. With several outputs it gives a list of them."""

    class Graph(torch.nn.Module):
        def __init__(self):
            super(Graph, self).__init__()
            self._all = torch.nn.ModuleList(list(layers.values()))

        def forward(self, *batch):
            values = dict(zip(sources, batch))
            for name, inputs in order:
                values[name] = layers[name](*[values[i] for i in inputs])
            found = [values[name] for name in outputs]
            return found if len(found) > 1 else found[0]

    return Graph()


def _squared_error(torch):
    """Mean over N and F of (prediction - one-hot)^2."""

    def loss(prediction, labels):
        target = torch.nn.functional.one_hot(labels, prediction.shape[1]).to(prediction.dtype)
        return torch.nn.functional.mse_loss(prediction, target)

    return loss


def _mean_squared_error(torch):
    """Mean over N and F of (prediction - target)^2."""

    def loss(prediction, target):
        return torch.nn.functional.mse_loss(prediction, target.reshape(prediction.shape))

    return loss


def _loss_sum(values, weights):
    return sum(weight * value for value, weight in zip(values, weights))


def _sequence_cross_entropy(torch):
    def loss(prediction, labels):
        rows = prediction.reshape(-1, prediction.shape[-1])
        return torch.nn.functional.cross_entropy(rows, labels.reshape(-1), ignore_index=-1)

    return loss


def make_loss(torch, job):
    """Of what the model gives and a list of targets: what is minimized."""
    parts = [LOSSES[node.kind](torch) for node, _ in job.losses]
    if len(parts) == 1:
        return lambda prediction, targets: parts[0](prediction, targets[0])
    weights, add_up = [weight for _, weight in job.losses], LOSSES["loss_sum"](torch)
    outputs = list(OrderedDict.fromkeys(node.inputs[0] for node, _ in job.losses))
    places = [outputs.index(node.inputs[0]) for node, _ in job.losses]

    def loss(predictions, targets):
        given = predictions if len(outputs) > 1 else [predictions]
        values = [part(given[place], target) for part, place, target in zip(parts, places, targets)]
        return add_up(values, weights)

    return loss


# Functions of torch that make one of (prediction, labels or the numbers wanted); that of the sum: of (losses,
# weights).
LOSSES = {
    "softmax_cross_entropy": lambda torch: torch.nn.functional.cross_entropy,
    "sequence_cross_entropy": _sequence_cross_entropy,
    "squared_error": _squared_error,
    "mean_squared_error": _mean_squared_error,
    "loss_sum": lambda _: _loss_sum,
}
