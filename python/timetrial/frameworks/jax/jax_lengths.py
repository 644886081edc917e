"""The setting lengths=rounded in JAX, whose compiled functions have fixed shapes: a recurrent layer is there
for each of up to eight numbers of steps, and a batch takes the smallest that has room for its longest."""

from jax_sequences import RECURRENT
from timetrial_adapter import is_all, rounded_steps

WAYS = ("padded", "rounded")


def _rounded(layer):
    def make(jax, node, values, x, lengths=None):
        if lengths is None:
            return layer(jax, node, values, x)
        whole = x.shape[1]
        sizes = sorted({rounded_steps(longest, whole) for longest in range(1, whole + 1)})

        def over(steps):
            def branch(x, lengths):
                shown = layer(jax, node, values, x[:, :steps], lengths)
                missing = ((0, 0), (0, whole - steps), (0, 0))
                return jax.numpy.pad(shown, missing) if is_all(node) else shown

            return branch

        which = jax.numpy.searchsorted(jax.numpy.array(sizes), lengths.max())
        return jax.lax.switch(which, [over(steps) for steps in sizes], x, lengths)

    return make


def kinds_of(layers, way):
    """All kinds, those along time as the setting wants them."""
    if way == WAYS[0]:
        return layers
    return dict(layers, **{kind: _rounded(layer) for kind, layer in RECURRENT.items()})
