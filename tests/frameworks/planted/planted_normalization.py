"""The kinds of normalization of the framework `planted`, and what stands beside them, with their own defects.

Syntax and modules of Python 3.6.
"""

import numpy as np

# In this order: no gradient through mean and variance, through one of them; the unbiased variance kept, or
# used; a mean that is off by some last places of what it is the mean of; nothing kept, nothing more kept
# after 50 steps, twice as much, by a momentum that is off by a tenth; the statistics of the batch in
# inference, or the running ones of the step before; running values that inference moves; momentum as the
# weight of the old; another epsilon; no bias; the weights of the step before in the backward pass; the
# statistics of the step before, or those of half a batch; alpha instead of alpha / n; no edge at 6; a slope
# of 0.
DEFECTS = (
    "norm_gradient", "mean_without_gradient", "variance_without_gradient", "unbiased_running",
    "unbiased_variance", "mean_off", "running_unmoved", "running_unmoved_later", "running_twice",
    "momentum_off",
    "batch_in_inference", "running_of_before", "moved_in_inference", "momentum_of_the_old", "other_epsilon",
    "norm_bias_ignored", "stale_norm_weight", "statistics_of_before", "statistics_of_half",
    "lrn_whole_alpha", "relu6_open", "slope_ignored",
)  # fmt: skip
LAYERS = ("batch_norm", "local_response_norm", "leaky_relu", "relu6", "global_avg_pool2d")


class Normalization:
    """Forward and backward by kind, for the adapter. `moved`: the states behind the step under way."""

    def _batch_norm(self, node, x, p):
        axes = (0,) if x.ndim == 2 else (0, 2, 3)
        shape = (1, -1) + (1,) * (x.ndim - 2)
        names = [node.name + ".running_mean", node.name + ".running_var"]
        wide, count = x.astype(np.float64), x.size // x.shape[1]
        now = self._statistics(node, wide, axes)
        share = node.attributes["momentum"] * (1.1 if self.defect == "momentum_off" else 1)
        if self.defect == "momentum_of_the_old":
            share = 1 - share
        if self.defect == "running_twice":
            share = 1 - (1 - share) ** 2
        for k, name in enumerate(names):
            value = now[k]
            if self.defect == "unbiased_running" and name == names[1]:
                value = value * count / (count - 1)
            if self.defect == "mean_off" and name == names[0]:
                value = value + 3e-5 * np.sqrt(now[1])
            self.moved[name] = ((1 - share) * self.states[name] + share * value).astype(np.float32)
        if not self.learns and self.defect != "batch_in_inference":
            states = self.states_before if self.defect == "running_of_before" else self.states
            now = [states[name].astype(np.float64) for name in names]
        if self.defect == "unbiased_variance" and self.learns:
            now[1] = now[1] * count / (count - 1)
        epsilon = 1e-3 + 1e-5 - node.attributes["epsilon"] if self.defect == "other_epsilon" else None
        slope = 1 / np.sqrt(now[1] + (epsilon or node.attributes["epsilon"])).reshape(shape)
        weight = p[node.name + ".weight"].reshape(shape)
        normalized = (wide - now[0].reshape(shape)) * slope
        stale = self.defect == "stale_norm_weight"
        behind = self.previous[node.name + ".weight"].reshape(shape) if stale else weight
        self._saved[node.name] = (normalized, behind * slope, axes)
        bias = p[node.name + ".bias"].reshape(shape)
        return weight * normalized + (0 if self.defect == "norm_bias_ignored" else bias)

    def _statistics(self, node, x, axes):
        """Mean and variance of a batch."""
        if self.defect == "statistics_of_half":
            x = x[: max(1, len(x) // 2)]
        now = [x.mean(axis=axes), x.var(axis=axes)]
        if self.defect == "statistics_of_before" and self.learns:
            before = self.statistics.get(node.name, now)
            self.statistics[node.name] = now
            return list(before)
        return now

    def _back_batch_norm(self, node, dy):
        normalized, slope, axes = self._saved[node.name]
        self.gradients[node.name + ".weight"] = (dy * normalized).sum(axis=axes)
        self.gradients[node.name + ".bias"] = dy.sum(axis=axes)
        if self.defect == "norm_gradient":
            return slope * dy
        means = [part.mean(axis=axes, keepdims=True) for part in (dy, dy * normalized)]
        if self.defect == "mean_without_gradient":
            means[0] = 0
        if self.defect == "variance_without_gradient":
            means[1] = 0
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
