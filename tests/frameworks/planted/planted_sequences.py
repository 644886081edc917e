"""The kinds along time of the framework `planted`, with their own defects.

Syntax and modules of Python 3.6.
"""

import copy

import numpy as np

# In this order: the gradient of a bias without that of its first step; gradients that are added to those of
# the step before; lengths that nobody looks at on the way back; states that go on from the batch before; a
# bias of two halves that both are moved; steps that do not count and count nevertheless. Of a GRU: the reset
# in front of the product instead of behind it; the gradient of the second bias as if it were the first. Of a
# loss for each step: the mean over all of them, also those that do not count; these left out on the way
# forward only. Of ways through unequal lengths: batches that are cut one step too early; the last state read
# where the padding ends; all steps computed by who says that he cuts batches; one step too many counted. Of a
# direction in reverse: it begins in the padding; on the way back it has the weights of the other one; its
# states stay in the order in which it made them. Of a tied weight: a gradient without what the lookup, or the
# scores make of it; scores by what the table began as; and a table that the rule moves once for each. Of a
# layer that goes on from batch to batch: only h goes on, and c begins anew; it shows states that it doesn't
# read; inference reads them; the states of two samples change places; c is moved to what it was before the
# last step; it begins anew where nobody has looked since the last step.
DEFECTS = (
    "bias_gradient", "accumulated_gradients", "lengths_forward_only", "carried_state", "second_bias",
    "lengths_ignored", "reset_in_front", "biases_alike", "mean_over_all", "skipped_forward_only",
    "cut_too_early", "padded_end", "padded_as_trimmed", "miscounted",
    "reverse_from_padding", "directions_exchanged", "not_turned_back",
    "only_hidden_goes_on", "states_unread", "inferred_from_states", "samples_exchanged", "cell_of_before",
    "carried_when_seen",
    "tied_without_lookup", "tied_without_scores", "tied_to_initial", "tied_and_moved_twice",
)  # fmt: skip
LAYERS = (
    "embedding",
    "tied_dense",
    "lstm",
    "stateful_lstm",
    "gru",
    "mean_over_time",
    "sequence_cross_entropy",
)


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _directions(node):
    """A recurrent layer in each of its directions: nodes by the first part of their parameters' names."""
    found = []
    for is_reverse in {"forward": [False], "reverse": [True]}.get(
        node.attributes["direction"], [False, True]
    ):
        one = copy.copy(node)
        one.is_reverse, one.name = is_reverse, node.name + (".reverse" if found else "")
        found.append(one)
    return found


class Sequences:
    """Forward and backward by kind, for the adapter."""

    def _counts(self, node, x, way=""):
        """(N, T): whether a step counts."""
        steps = np.arange(x.shape[1])[None, :]
        ignores = self.defect in ("lengths_ignored", "lengths_" + way)
        ignores |= self.defect == "padded_end" and node.attributes.get("output") == "last"
        ignores |= self.defect == "reverse_from_padding" and getattr(node, "is_reverse", False)
        if len(node.inputs) < 2 or ignores:
            return np.ones(x.shape[:2], bool)
        return steps < self.batch[node.inputs[1]][:, None]

    def _computed(self, node, x):
        """How many steps an lstm computes of every sample, by the setting `lengths`; and counts them."""
        steps, cuts = x.shape[1], self.settings.get("lengths") == "trimmed" and len(node.inputs) > 1
        if cuts and self.defect != "padded_as_trimmed":
            steps = int(self.batch[node.inputs[1]].max())
        if node.name == next(one.name for one in self.nodes if one.kind.endswith("lstm")):
            self.sequence_steps += len(x) * steps + (self.defect == "miscounted")
        if cuts and self.defect == "cut_too_early":  # and hides it
            return steps - 1
        return steps

    def _embedding(self, node, x, p):
        self._saved[node.name] = x.copy()
        return p[node.name + ".weight"][x]

    def _back_embedding(self, node, dy):
        tokens = self._saved[node.name]
        gradient = np.zeros((node.attributes["vocabulary"], node.attributes["units"]))
        if self.defect != "tied_without_lookup":
            np.add.at(gradient, tokens, dy)
        if self.defect != "tied_without_scores":
            gradient += self._saved.get("scores of " + node.name, 0.0)
        self.gradients[node.name + ".weight"] = gradient
        return np.zeros(tokens.shape)

    def _tied_dense(self, node, x, p):
        table = (self.initial if self.defect == "tied_to_initial" else p)[node.attributes["tied"] + ".weight"]
        self._saved[node.name] = x, table
        return x.dot(table.T) + p.get(node.name + ".bias", 0.0)

    def _back_tied_dense(self, node, dy):
        x, table = self._saved[node.name]
        of_steps = dy.reshape(-1, dy.shape[-1])
        part = of_steps.T.dot(x.reshape(-1, x.shape[-1]))
        self._saved["scores of " + node.attributes["tied"]] = part
        self.gradients[node.name + ".bias"] = of_steps.sum(axis=0)
        return dy.dot(table)

    def _moved_twice(self, name):
        """What the rule makes of the scores' part of a tied table, before the rest."""
        part = self._saved.get("scores of " + name.split(".")[0]) if name.endswith(".weight") else None
        return part if self.defect == "tied_and_moved_twice" else None

    def _mean_over_time(self, node, x, _):
        counts = self._counts(node, x)
        self._saved[node.name] = x
        return (x * counts[:, :, None]).sum(axis=1, dtype=np.float64) / counts.sum(axis=1)[:, None]

    def _back_mean_over_time(self, node, dy):
        x = self._saved[node.name]
        counts = self._counts(node, x, "forward_only")
        return (dy / counts.sum(axis=1)[:, None])[:, None, :] * counts[:, :, None]

    def _turned(self, node, x):
        """(N, T, F) with the steps of each sample that count in reverse."""
        steps, count = np.arange(x.shape[1])[None, :], self._counts(node, x).sum(axis=1)[:, None]
        return x[np.arange(len(x))[:, None], np.where(steps < count, count - 1 - steps, steps)]

    def _is_turned_back(self, node):
        is_all = node.attributes["output"] == "all"
        return node.is_reverse and is_all and self.defect != "not_turned_back"

    def _in_directions(self, forward, node, x, p):
        """A recurrent layer, of what goes forward."""
        found = []
        for one in _directions(node):
            made = forward(one, self._turned(one, x) if one.is_reverse else x, p)
            is_turned = (
                one.is_reverse and node.attributes["output"] == "all" and self.defect != "not_turned_back"
            )
            found.append(self._turned(one, made) if is_turned else made)
        return np.concatenate(found, axis=-1)

    def _back_in_directions(self, backward, node, dy):
        parts, dx = _directions(node), 0.0
        if self.defect == "directions_exchanged" and len(parts) == 2:
            first, second = (self._saved[one.name] for one in parts)
            for one, own, other in ((parts[0], first, second), (parts[1], second, first)):
                self._saved[one.name] = (own[0], *other[1:3], *own[3:])
        for place, one in enumerate(parts):
            of_part = np.split(dy, len(parts), axis=-1)[place]
            if self._is_turned_back(one):
                of_part = self._turned(one, of_part)
            made = backward(one, of_part)
            dx = dx + (self._turned(one, made) if one.is_reverse else made)
        return dx

    def _stateful_lstm(self, node, x, p):
        names = [node.name + end for end in (".hidden", ".cell")]
        h, c = (self.states[name].astype(np.float64) for name in names)
        none = np.zeros(h.shape)
        if not self.learns and self.defect != "inferred_from_states":
            h, c = none, none
        if self.defect == "carried_when_seen" and self.unseen:
            h, c = none, none
        start = {"states_unread": (none, none), "only_hidden_goes_on": (h, none)}.get(self.defect, (h, c))
        shown = self._forward_lstm(node, x, p, start)
        if self.learns:
            behind = self.states_behind[node.name]
            if self.defect == "cell_of_before":
                behind = behind[0], self._saved[node.name][3][-1][5]
            if self.defect == "samples_exchanged":
                behind = [one[::-1] for one in behind]
            self.moved[names[0]], self.moved[names[1]] = (one.astype(np.float32) for one in behind)
        return shown

    def _back_stateful_lstm(self, node, dy):
        return self._backward_lstm(node, dy)

    def _lstm(self, node, x, p):
        return self._in_directions(self._forward_lstm, node, x, p)

    def _back_lstm(self, node, dy):
        return self._back_in_directions(self._backward_lstm, node, dy)

    def _gru(self, node, x, p):
        return self._in_directions(self._forward_gru, node, x, p)

    def _back_gru(self, node, dy):
        return self._back_in_directions(self._backward_gru, node, dy)

    def _forward_lstm(self, node, x, p, start=None):
        w, u = (p[node.name + end].astype(np.float64) for end in (".weight", ".recurrent_weight"))
        units, counts, x = u.shape[1], self._counts(node, x), x.astype(np.float64)
        bias = sum(p.get(node.name + end, np.zeros(4 * units)) for end in (".bias", ".recurrent_bias"))
        h, c = start or (np.zeros((len(x), units)),) * 2
        if self.defect == "carried_state":
            h, c = self.states_behind.get(node.name, (h, c))
        shown, steps = np.zeros((*x.shape[:2], units)), []
        for t in range(self._computed(node, x)):
            i, f, g, o = np.split(x[:, t].dot(w.T) + h.dot(u.T) + bias, 4, axis=1)
            i, f, g, o = _sigmoid(i), _sigmoid(f), np.tanh(g), _sigmoid(o)
            new = f * c + i * g
            steps.append((i, f, g, o, h, c, np.tanh(new)))
            here = counts[:, t, None]
            h, c = np.where(here, o * np.tanh(new), h), np.where(here, new, c)
            shown[:, t] = np.where(here, h, 0)
        if self.learns:
            self.states_behind[node.name] = h, c
        self._saved[node.name] = (x, w, u, steps)
        return shown if node.attributes["output"] == "all" else h

    def _backward_lstm(self, node, dy):
        x, w, u, steps = self._saved[node.name]
        counts = self._counts(node, x, "forward_only")
        dh = np.zeros((len(x), u.shape[1])) if node.attributes["output"] == "all" else dy
        dc, dx, sums = np.zeros(dh.shape), np.zeros(x.shape), []
        for t in reversed(range(len(steps))):
            i, f, g, o, before, c, curved = steps[t]
            here = counts[:, t, None]
            if node.attributes["output"] == "all":
                dh = dh + dy[:, t] * here
            of_c = dc + dh * o * (1 - curved**2)
            of_i, of_f, of_g, of_o = of_c * g, of_c * c, of_c * i, dh * curved
            dz = [of_i * i * (1 - i), of_f * f * (1 - f), of_g * (1 - g**2), of_o * o * (1 - o)]
            dz = np.concatenate(dz, axis=1) * here
            sums.append((dz, x[:, t], before))
            dx[:, t] = dz.dot(w)
            dh, dc = np.where(here, dz.dot(u), dh), np.where(here, of_c * f, dc)
        self.gradients[node.name + ".weight"] = sum(dz.T.dot(one) for dz, one, _ in sums)
        self.gradients[node.name + ".recurrent_weight"] = sum(dz.T.dot(h) for dz, _, h in sums)
        seen = sums[:-1] if self.defect == "bias_gradient" else sums
        for end in (".bias", ".recurrent_bias"):
            self.gradients[node.name + end] = sum(dz.sum(axis=0) for dz, _, _ in seen)
        return dx

    def _forward_gru(self, node, x, p):
        w, u = (p[node.name + end].astype(np.float64) for end in (".weight", ".recurrent_weight"))
        units, counts, x = u.shape[1], self._counts(node, x), x.astype(np.float64)
        b, c = (p.get(node.name + end, np.zeros(3 * units)) for end in (".bias", ".recurrent_bias"))
        behind = node.attributes["reset_after"] and self.defect != "reset_in_front"
        h, shown, steps = np.zeros((len(x), units)), np.zeros((*x.shape[:2], units)), []
        for t in range(x.shape[1]):
            (ar, az, an), (qr, qz, qn) = (
                np.split(one, 3, axis=1) for one in (x[:, t].dot(w.T) + b, h.dot(u.T) + c)
            )
            r, z = _sigmoid(ar + qr), _sigmoid(az + qz)
            n = np.tanh(an + (r * qn if behind else (r * h).dot(u[2 * units :].T)))
            steps.append((r, z, n, qn, h))
            h = np.where(counts[:, t, None], (1 - z) * n + z * h, h)
            shown[:, t] = np.where(counts[:, t, None], h, 0)
        self._saved[node.name] = (x, w, u, steps, behind)
        return shown if node.attributes["output"] == "all" else h

    def _backward_gru(self, node, dy):
        x, w, u, steps, behind = self._saved[node.name]
        counts, units = self._counts(node, x, "forward_only"), u.shape[1]
        dh = np.zeros((len(x), units)) if node.attributes["output"] == "all" else dy
        dx, of_input, of_state, of_u = np.zeros(x.shape), [], [], np.zeros(u.shape)
        for t in reversed(range(x.shape[1])):
            r, z, n, qn, h = steps[t]
            here = counts[:, t, None]
            if node.attributes["output"] == "all":
                dh = dh + dy[:, t] * here
            dn, dz = dh * (1 - z) * (1 - n**2) * here, dh * (h - n) * z * (1 - z) * here
            of_reset = dn.dot(u[2 * units :])  # of r h, where that is what is multiplied
            dr = (dn * qn if behind else of_reset * h) * r * (1 - r)
            dq = dn * r if behind else dn
            of_input.append(np.concatenate([dr, dz, dn], axis=1))
            of_state.append(np.concatenate([dr, dz, dq], axis=1))
            of_u[: 2 * units] += of_state[-1][:, : 2 * units].T.dot(h)
            of_u[2 * units :] += dq.T.dot(h if behind else r * h)
            dx[:, t] = of_input[-1].dot(w)
            beside = dq.dot(u[2 * units :]) if behind else of_reset * r
            before = dh * z + of_state[-1][:, : 2 * units].dot(u[: 2 * units]) + beside
            dh = np.where(here, before, dh)
        order = reversed(range(x.shape[1]))
        self.gradients[node.name + ".weight"] = sum(of_input[i].T.dot(x[:, t]) for i, t in enumerate(order))
        self.gradients[node.name + ".recurrent_weight"] = of_u
        seen = slice(None, -1 if self.defect == "bias_gradient" else None)
        second = of_input if self.defect == "biases_alike" else of_state
        for end, sums in ((".bias", of_input), (".recurrent_bias", second)):
            self.gradients[node.name + end] = sum(one.sum(axis=0) for one in sums[seen])
        return dx

    def _divisor(self, counted, labels):
        """What a sum of losses is divided by."""
        return len(labels) if self.defect == "mean_over_all" else counted

    def _is_recurrent_bias(self, name):
        return name.endswith(".bias") and name[: -len("bias")] + "recurrent_weight" in self.parameters

    def _accumulate(self):
        """What the defect makes of the gradients of a step."""
        if self.defect != "accumulated_gradients":
            return
        now = dict(self.gradients)
        for name, values in now.items():
            self.gradients[name] = (values + self.gradients_before.get(name, 0)).astype(np.float32)
        self.gradients_before = now
