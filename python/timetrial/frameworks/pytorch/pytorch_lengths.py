"""Ways of torch's recurrent layers through sequences of unequal lengths, by the setting `lengths`."""

WAYS = ("padded", "trimmed", "packed")


class Ways(object):
    """One for all layers of a network. `steps`: of each module, how many steps of sequences it has computed;
    a compiled function does not count them, and goes the only way that it was traced for."""

    def __init__(self, torch, way, counts=True):
        self._torch, self.word, self._counts = torch, way, counts
        self.steps = {}

    def most(self):
        """Of the module that computed most of what has lengths."""
        return max(self.steps.values()) if self.steps else 0

    def states(self, rnn, x, lengths):
        """Those behind every step (N, S, units), S up to T, and the last of each sample as torch gives them:
        None where it gives those behind the padding."""
        if lengths is None:
            return rnn(x)
        count, steps = x.shape[0], x.shape[1]
        if self.word == "packed":
            return self._packed(rnn, x, lengths)
        if self.word == "trimmed":
            steps = int(lengths.max())
        self._add(rnn, count * steps)
        states, _ = rnn(x[:, :steps])
        return states, None

    def _packed(self, rnn, x, lengths):
        utils = self._torch.nn.utils.rnn
        packed = utils.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        self._add(rnn, packed.data.shape[0])
        states, last = rnn(packed)
        return utils.pad_packed_sequence(states, batch_first=True)[0], last

    def _add(self, rnn, steps):
        if self._counts:
            self.steps[rnn] = self.steps.get(rnn, 0) + steps
