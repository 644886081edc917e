"""Layers along time, in PyTorch's modules. Sequences are padded: unless the setting `lengths` says otherwise,
torch's recurrent layers compute every step, an LSTM's with oneDNN's kernel, where there is one. What does not
count is left out behind them."""

import numpy as np
from pytorch_lengths import Ways
from timetrial_adapter import directions, in_directions, is_all


def _counted(torch, x, lengths):
    """f32 (N, T, 1): 1 at the steps that count."""
    steps = torch.arange(x.shape[1]).unsqueeze(0)
    return (steps < lengths.unsqueeze(1)).to(x.dtype).unsqueeze(2)


def _embedding(torch, node):
    return torch.nn.Embedding(node.attributes["vocabulary"], node.attributes["units"])


def _reversed(torch, x, lengths):
    """(N, T, F) with the steps of each sample that count in reverse; the others stay where they are."""
    if lengths is None:
        return x.flip(1)
    steps, lengths = torch.arange(x.shape[1]).unsqueeze(0), lengths.unsqueeze(1)
    place = torch.where(steps < lengths, lengths - 1 - steps, steps)
    return x.gather(1, place.unsqueeze(2).expand_as(x))


def _direction(torch, node, kind):
    """The class of a direction of a layer. `kind`: of torch's own modules."""
    gives_all = is_all(node)

    class Direction(torch.nn.Module):
        """Torch has two biases or none; of one, the other stays 0."""

        ways = Ways(torch, "padded", counts=False)  # until the adapter says otherwise

        def __init__(self, part):
            super(Direction, self).__init__()
            features, units, biases = (
                part.parameters[0][1][1],
                node.attributes["units"],
                len(part.parameters) - 2,
            )
            self.rnn = kind(features, units, bias=biases > 0, batch_first=True)
            if biases == 1:
                self.rnn.bias_hh_l0.requires_grad_(False)
                self.rnn.bias_hh_l0.zero_()

        # By the job's names.
        weight = property(lambda self: self.rnn.weight_ih_l0)
        recurrent_weight = property(lambda self: self.rnn.weight_hh_l0)
        bias = property(lambda self: self.rnn.bias_ih_l0)
        recurrent_bias = property(lambda self: self.rnn.bias_hh_l0)

        def shown(self, x, lengths):
            states, last = self.ways.states(self.rnn, x, lengths)
            if gives_all and lengths is not None:
                states = states * _counted(torch, states, lengths)
                return torch.nn.functional.pad(states, (0, 0, 0, x.shape[1] - states.shape[1]))
            if gives_all:
                return states
            if last is not None:
                return last[0][0] if isinstance(last, tuple) else last[0]  # an LSTM has c beside h
            return states[torch.arange(x.shape[0]), lengths - 1]

    return Direction


def _recurrent(torch, node, kind):
    """`kind`: of torch's own modules, whose reverse knows no lengths of padded samples."""
    parts, direction = directions(node), _direction(torch, node, kind)

    class Recurrent(direction):
        """The first direction, and perhaps `reverse` beside it."""

        def __init__(self):
            super(Recurrent, self).__init__(parts[0])
            if len(parts) > 1:
                self.reverse = direction(parts[1])

        def forward(self, x, lengths=None):
            def layer(part, x):
                return (self if part.name == node.name else self.reverse).shown(x, lengths)

            return in_directions(
                parts, x, layer, lambda x: _reversed(torch, x, lengths), lambda found: torch.cat(found, -1)
            )

    return Recurrent()


def _stateful_lstm(torch, node):
    class Stateful(_direction(torch, node, torch.nn.LSTM)):
        """It goes on from `hidden` and `cell` while it learns, and leaves there what it comes to."""

        def __init__(self):
            super(Stateful, self).__init__(directions(node)[0])
            for name, shape in node.states:
                self.register_buffer(_own_name(name), torch.zeros(*shape))

        def begin(self, states):
            """From these on: arrays by the last part of their names."""
            with torch.no_grad():
                for name, value in states.items():
                    getattr(self, name).copy_(torch.from_numpy(np.array(value)))

        def shown(self):
            """The states, as the job has them."""
            return {_own_name(name): getattr(self, _own_name(name)).numpy().copy() for name, _ in node.states}

        def forward(self, x):
            if not self.training:
                states, (last, _) = self.rnn(x)
                return states if is_all(node) else last[0]
            # Copies: the way back reads them when the states have moved.
            start = self.hidden.unsqueeze(0).clone(), self.cell.unsqueeze(0).clone()
            states, (last, cell) = self.rnn(x, start)
            with torch.no_grad():
                self.hidden.copy_(last[0])
                self.cell.copy_(cell[0])
            return states if is_all(node) else last[0]

    return Stateful()


def _continued_gru(torch, node):
    class Continued(_direction(torch, node, torch.nn.GRU)):
        """It reads a sequence, and the state in front of its first step."""

        def __init__(self):
            super(Continued, self).__init__(directions(node)[0])

        def forward(self, x, state):
            states, last = self.rnn(x, state.unsqueeze(0))
            return states if is_all(node) else last[0]

    return Continued()


def _own_name(name):
    return name.rpartition(".")[2]


def _mean_over_time(torch):
    class MeanOverTime(torch.nn.Module):
        def forward(self, x, lengths=None):
            if lengths is None:
                return x.mean(dim=1)
            return (x * _counted(torch, x, lengths)).sum(dim=1) / lengths.unsqueeze(1).to(x.dtype)

    return MeanOverTime()


# Torch's GRU has its reset behind the product.
_BEHIND = {"reset_after": True}
LIMITS = {"gru": _BEHIND, "continued_gru": _BEHIND}

# Functions of (torch, node) that make a module.
LAYERS = {
    "embedding": _embedding,
    "lstm": lambda torch, node: _recurrent(torch, node, torch.nn.LSTM),
    "stateful_lstm": _stateful_lstm,
    "gru": lambda torch, node: _recurrent(torch, node, torch.nn.GRU),
    "continued_gru": _continued_gru,
    "rnn": lambda torch, node: _recurrent(torch, node, torch.nn.RNN),
    "mean_over_time": lambda torch, _: _mean_over_time(torch),
}
