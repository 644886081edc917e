"""Ways to show something else than was computed: nothing; the layers of another batch, or of the step
before; of a pass in f32 by whoever trains in bfloat16; what is not finite, transposed, or half of the
samples."""

import numpy as np

DEFECTS = (
    "shown_nothing", "shown_other_batch", "shown_step_before", "shown_in_f32", "shown_nan", "shown_infinity",
    "shown_transposed", "shown_half",
)  # fmt: skip


class Shown:
    def shown(self):
        """Name of a layer -> what it gives, as somebody is told."""
        if self.defect == "shown_nothing":
            return {}
        images = self.images
        if self.defect == "shown_other_batch":
            self.images = images[::-1].copy()
        self.is_showing = True
        found = {name: v for name, v in self._forward(self.parameters).items() if name != self.source}
        self.is_showing, self.images = False, images
        if self.defect == "shown_step_before":
            found, self.known_shown = self.known_shown or found, found
        first = self.nodes[0].name
        values = found[first].copy()
        if self.defect in ("shown_nan", "shown_infinity"):
            values.flat[0] = np.nan if self.defect == "shown_nan" else np.inf
        if self.defect == "shown_transposed" and values.ndim == 4:
            values = values.transpose(0, 1, 3, 2)
        if self.defect == "shown_half":
            values = values[: len(values) // 2]
        return dict(found, **{first: values})
