"""The BLAS and OpenMP copies of this process, as facts. Syntax and modules of Python 3.6."""

import sys


def facts_of(libraries):
    """Name -> words for the record: 'blas.<file>' with version, kernel and threads. `libraries`: what the
    runtime module's libraries() found."""
    facts = {}
    for one in libraries:
        words = [one["version"] or one["vendor"]]
        if one["kernel"]:
            words.append("kernel {} ({})".format(one["kernel"], one["kernel_getter"]))
        if one["threads"] is not None:
            words.append("threads {} ({})".format(one["threads"], one["threads_getter"]))
        name = "{}.{}".format(one["kind"], place(one["path"]))
        facts[name] = ", ".join(word for word in words if word) or "it tells nothing of itself"
    return facts


def cuda_of(modules=None):
    """{'torch.cuda': '12.8'} where the torch of this process was built for CUDA: its libraries for GPUs are
    loaded with it, whether there is a GPU or not."""
    torch = (sys.modules if modules is None else modules).get("torch")
    cuda = getattr(getattr(torch, "version", None), "cuda", None)
    return {"torch.cuda": str(cuda)} if cuda else {}


# What a library keeps for all of a process, besides threads: where it is read, what is there in a fresh
# process, and the call that sets it.
_STATE = (
    ("torch.get_default_dtype", "torch.float32", "torch.set_default_dtype({})"),
    ("torch.are_deterministic_algorithms_enabled", "False", "torch.use_deterministic_algorithms({})"),
    ("torch.get_float32_matmul_precision", "highest", "torch.set_float32_matmul_precision('{}')"),
)


def state_of(modules=None):
    """Where it is read -> the call that sets it, of what is not as in a fresh process; of libraries that are
    imported already."""
    found = {}
    for where, fresh, call in _STATE:
        package, _, names = where.partition(".")
        value = (sys.modules if modules is None else modules).get(package)
        for name in names.split("."):
            value = getattr(value, name, None)
        value = value() if callable(value) else value
        if value is not None and str(value) != fresh:
            found[where] = call.format(value)
    return found


def place(path):
    """'numpy.libs/libopenblas.so' of a file in site-packages, others in full."""
    for folder in ("/site-packages/", "/dist-packages/"):
        if folder in path:
            return path.split(folder, 1)[1]
    return path


def changes(before, after):
    """How a framework changed its own environment, in words: 'OMP_NUM_THREADS 2 -> 1'; '' if it did not."""
    names = sorted(name for name in set(before) | set(after) if before.get(name) != after.get(name))
    return ", ".join(
        "{} {} -> {}".format(name, before.get(name, "unset"), after.get(name, "unset")) for name in names
    )
