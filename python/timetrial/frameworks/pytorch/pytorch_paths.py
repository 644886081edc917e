"""Which way torch goes through a recurrent layer, as torch shows it: the operations that two steps of two
samples take."""

from pytorch_lengths import WAYS
from timetrial_adapter import is_recurrent, path_facts, reads_lengths, torch_operations

# An LSTM's: torch calls no kernel of oneDNN's for other cells.
_FASTER = "{} gives it to oneDNN's kernel, in PyTorch 2.1 and later"


def facts_of(torch, job, layers):
    """Of every recurrent layer. `layers`: node -> module."""
    found = {}
    for node in job.layers:
        if is_recurrent(node):
            rnn = layers[node.name].rnn
            way = job.settings.get("lengths", WAYS[0])
            packs = way == "packed" and reads_lengths(node)
            path, faster = _path(torch, rnn, learns=job.task != "forward", packs=packs)
            faster = faster if node.kind.endswith("lstm") else None
            found.update(path_facts(job, node, path, faster, way))
    return found


def _path(torch, rnn, learns, packs):
    with torch.set_grad_enabled(learns):
        sample = torch.zeros(2, 2, rnn.input_size)
        if packs:  # of equal lengths torch might go another way
            sample = torch.nn.utils.rnn.pack_padded_sequence(sample, torch.tensor([2, 1]), batch_first=True)
        seen = torch_operations(torch, lambda: rnn(sample))
    if seen is None:
        return "torch does not show which way", None
    kernels = sorted({one for one in seen if "mkldnn" in one or "onednn" in one})
    if kernels:
        return "oneDNN's kernel ({})".format(", ".join(kernels)), None
    if packs:
        return "native loop over packed steps", _FASTER.format("lengths=trimmed (with torch.mkldnn=true)")
    return "native loop over the steps", _FASTER.format("torch.mkldnn=true")
