"""What makes each kind of layer, in PyTorch's modules."""

import numpy as np
import pytorch_sequences
from timetrial_adapter import bias_name, biased_variance, borders, pair, response_alpha


def _join(torch, function):
    """A module of several inputs."""

    class Join(torch.nn.Module):
        def forward(self, *inputs):
            return function(inputs)

    return Join()


def _dropout(torch):
    """By the mask that the batch brings."""

    class Dropout(torch.nn.Module):
        def forward(self, x, mask):
            return x * mask if self.training else x

    return Dropout()


def _dense(torch, node):
    units, inputs = node.parameters[0][1]
    return torch.nn.Linear(inputs, units, bias=bias_name(node) is not None)


def _tied_dense(torch, node):
    class Tied(torch.nn.Module):
        """What a Linear computes, with the embedding's own parameter: make_model() sets `weight`."""

        def __init__(self):
            super(Tied, self).__init__()
            has_bias = bias_name(node) is not None
            self.bias = torch.nn.Parameter(torch.zeros(node.attributes["units"])) if has_bias else None

        def forward(self, x):
            return torch.nn.functional.linear(x, self.weight, self.bias)

    return Tied()


def _conv2d(torch, node):
    out, into = node.parameters[0][1][:2]
    groups, ((top, bottom), (left, right)) = node.attributes["groups"], borders(node)
    given = {key: pair(node, key) for key in ("stride", "dilation")}
    given.update(groups=groups, bias=bias_name(node) is not None)
    if (top, left) == (bottom, right):
        return torch.nn.Conv2d(into * groups, out, pair(node, "kernel"), padding=(top, left), **given)

    class PaddedConv2d(torch.nn.Conv2d):
        """Torch's own padding is the same before and after."""

        def forward(self, x):
            return torch.nn.Conv2d.forward(self, torch.nn.functional.pad(x, (left, right, top, bottom)))

    return PaddedConv2d(into * groups, out, pair(node, "kernel"), **given)


def _conv_transpose2d(torch, node):
    into, out = node.parameters[0][1][:2]
    window = {key: pair(node, key) for key in ("stride", "padding", "output_padding")}
    bias = bias_name(node) is not None
    return torch.nn.ConvTranspose2d(into, out, pair(node, "kernel"), bias=bias, **window)


def _batch_norm(torch, node):
    own = torch.nn.BatchNorm2d if len(node.shape) == 4 else torch.nn.BatchNorm1d

    class BatchNorm(own):
        """It trains as torch's, which keeps unbiased variances; it infers with the biased ones."""

        def begin(self, states):
            """From these values on: arrays by the last part of their names."""
            with torch.no_grad():
                for name, value in states.items():
                    getattr(self, name).copy_(torch.from_numpy(np.array(value)))
                self.num_batches_tracked.zero_()
            self._initial = np.array(states["running_var"])

        def shown(self):
            """The states, as the job has them."""
            taken, kept = int(self.num_batches_tracked), self.running_var.numpy()
            return {
                "running_mean": self.running_mean.numpy().copy(),
                "running_var": biased_variance(node, kept, self._initial, taken),
            }

        def train(self, mode=True):
            if not mode:
                self._inferred = torch.from_numpy(self.shown()["running_var"])
            return own.train(self, mode)

        def forward(self, x):
            if self.training:
                return own.forward(self, x)
            given = self.running_mean, self._inferred, self.weight, self.bias
            return torch.nn.functional.batch_norm(x, *given, eps=self.eps)

    return BatchNorm(node.shape[1], eps=node.attributes["epsilon"], momentum=node.attributes["momentum"])


def _map_to_sequence(torch):
    class MapToSequence(torch.nn.Module):
        def forward(self, x):
            return x.permute(0, 2, 1, 3).flatten(2)

    return MapToSequence()


def _local_response_norm(torch, node):
    size, beta, k = (node.attributes[key] for key in ("size", "beta", "k"))
    return torch.nn.LocalResponseNorm(size, alpha=response_alpha(node, over_size=True), beta=beta, k=k)


def _global_avg_pool2d(torch, _):
    return torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten())


def _window(node):
    return [pair(node, key) for key in ("kernel", "stride", "padding")]


# Functions of (torch, node) that make a module.
LAYERS = {
    "dense": _dense,
    "tied_dense": _tied_dense,
    "conv2d": _conv2d,
    "max_pool2d": lambda torch, node: torch.nn.MaxPool2d(*_window(node)),
    "avg_pool2d": lambda torch, node: torch.nn.AvgPool2d(*_window(node)),  # padded zeros count
    "conv_transpose2d": _conv_transpose2d,
    "upsample2d": lambda torch, node: torch.nn.Upsample(scale_factor=pair(node, "scale"), mode="nearest"),
    "global_avg_pool2d": _global_avg_pool2d,
    "batch_norm": _batch_norm,
    "local_response_norm": _local_response_norm,
    "relu": lambda torch, _: torch.nn.ReLU(),
    "leaky_relu": lambda torch, node: torch.nn.LeakyReLU(node.attributes["slope"]),
    "relu6": lambda torch, _: torch.nn.ReLU6(),
    "tanh": lambda torch, _: torch.nn.Tanh(),
    "sigmoid": lambda torch, _: torch.nn.Sigmoid(),
    "flatten": lambda torch, _: torch.nn.Flatten(),
    "map_to_sequence": lambda torch, _: _map_to_sequence(torch),
    "dropout": lambda torch, _: _dropout(torch),
    "add": lambda torch, _: _join(torch, lambda inputs: sum(inputs[1:], inputs[0])),
    "concat": lambda torch, _: _join(torch, lambda inputs: torch.cat(inputs, 1)),
    **pytorch_sequences.LAYERS,
}
