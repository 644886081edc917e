"""The kinds of normalization of the framework `planted`, and what stands beside them, with their own defects.

Syntax and modules of Python 3.6.
"""

import numpy as np

# In this order: no gradient through mean and variance; the unbiased variance kept; nothing kept; the
# statistics of the batch in inference; running values that inference moves; momentum as the weight of the
# old; alpha instead of alpha / n; no edge at 6; a slope of 0.
DEFECTS = (
    "norm_gradient", "unbiased_running", "running_unmoved", "batch_in_inference", "moved_in_inference",
    "momentum_of_the_old", "lrn_whole_alpha", "relu6_open", "slope_ignored",
)  # fmt: skip
LAYERS = ("batch_norm", "local_response_norm", "leaky_relu", "relu6", "global_avg_pool2d")


class Normalization:
    """Forward and backward by kind, for the adapter. `moved`: the states behind the step under way."""

    def _batch_norm(self, node, x, p):
        axes = (0,) if x.ndim == 2 else (0, 2, 3)
        shape = (1, -1) + (1,) * (x.ndim - 2)
        names = [node.name + ".running_mean", node.name + ".running_var"]
        wide, count = x.astype(np.float64), x.size // x.shape[1]
        now = [wide.mean(axis=axes), wide.var(axis=axes)]
        share = node.attributes["momentum"]
        if self.defect == "momentum_of_the_old":
            share = 1 - share
        for k, name in enumerate(names):
            value = now[k]
            if self.defect == "unbiased_running" and name == names[1]:
                value = value * count / (count - 1)
            self.moved[name] = ((1 - share) * self.states[name] + share * value).astype(np.float32)
        if not self.learns and self.defect != "batch_in_inference":
            now = [self.states[name].astype(np.float64) for name in names]
        slope = 1 / np.sqrt(now[1] + node.attributes["epsilon"]).reshape(shape)
        weight = p[node.name + ".weight"].reshape(shape)
        normalized = (wide - now[0].reshape(shape)) * slope
        self._saved[node.name] = (normalized, weight * slope, axes)
        return weight * normalized + p[node.name + ".bias"].reshape(shape)

    def _back_batch_norm(self, node, dy):
        normalized, slope, axes = self._saved[node.name]
        self.gradients[node.name + ".weight"] = (dy * normalized).sum(axis=axes)
        self.gradients[node.name + ".bias"] = dy.sum(axis=axes)
        if self.defect == "norm_gradient":
            return slope * dy
        means = [part.mean(axis=axes, keepdims=True) for part in (dy, dy * normalized)]
        return slope * (dy - means[0] - normalized * means[1])

    def _local_response_norm(self, node, x, _):
        a = node.attributes
        over = a["size"] if a["alpha_over_size"] and self.defect != "lrn_whole_alpha" else 1
        alpha, wide = a["alpha"] / over, x.astype(np.float64)
        sums = a["k"] + alpha * self._window(wide**2, a["size"])
        self._saved[node.name] = (wide, sums, alpha)
        return wide * sums ** -a["beta"]

    def _back_local_response_norm(self, node, dy):
        x, sums, alpha = self._saved[node.name]
        beta, size = node.attributes["beta"], node.attributes["size"]
        shared = self._window(dy * x * sums ** (-beta - 1), size)
        return dy * sums**-beta - 2 * alpha * beta * x * shared

    @staticmethod
    def _window(values, size):
        """Sums over the channels around each."""
        half, channels = size // 2, values.shape[1]
        padded = np.pad(values, ((0, 0), (half, half), (0, 0), (0, 0)), "constant")
        return sum(padded[:, first : first + channels] for first in range(size))

    def _leaky_relu(self, node, x, _):
        slope = 0.0 if self.defect == "slope_ignored" else node.attributes["slope"]
        self._saved[node.name] = np.where(x > 0, 1.0, slope)
        return x * self._saved[node.name]

    def _back_leaky_relu(self, node, dy):
        return dy * self._saved[node.name]

    def _relu6(self, node, x, _):
        upper = np.inf if self.defect == "relu6_open" else 6
        self._saved[node.name] = (x > 0) & (x < upper)
        return np.clip(x, 0, upper)

    def _back_relu6(self, node, dy):
        return dy * self._saved[node.name]

    def _global_avg_pool2d(self, node, x, _):
        self._saved[node.name] = x.shape
        return x.mean(axis=(2, 3), dtype=np.float64)

    def _back_global_avg_pool2d(self, node, dy):
        shape = self._saved[node.name]
        return np.broadcast_to(dy[:, :, None, None] / (shape[2] * shape[3]), shape)
