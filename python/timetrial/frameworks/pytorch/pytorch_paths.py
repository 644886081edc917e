"""Which way torch goes through a recurrent layer, as torch shows it: the operations that two steps of a
sample take."""

from timetrial_adapter import is_recurrent, path_facts, torch_operations

# An LSTM's: torch calls no kernel of oneDNN's for other cells.
_FASTER = "torch.mkldnn=true gives it to oneDNN's kernel, in PyTorch 2.1 and later"


def facts_of(torch, job, layers):
    """Of every recurrent layer. `layers`: node -> module."""
    found = {}
    for node in job.layers:
        if is_recurrent(node):
            rnn = layers[node.name].rnn
            path, faster = _path(torch, rnn, learns=job.task != "forward")
            found.update(path_facts(job, node, path, faster if node.kind == "lstm" else None))
    return found


def _path(torch, rnn, learns):
    with torch.set_grad_enabled(learns):
        seen = torch_operations(torch, lambda: rnn(torch.zeros(1, 2, rnn.input_size)))
    if seen is None:
        return "torch does not show which way", None
    kernels = sorted({one for one in seen if "mkldnn" in one or "onednn" in one})
    if kernels:
        return "oneDNN's kernel ({})".format(", ".join(kernels)), None
    return "native loop over the steps", _FASTER
