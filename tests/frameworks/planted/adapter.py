"""A framework of a hundred lines of NumPy, to plant defects in: `planted.defect` chooses one.

It is also the example of an adapter with more than one layer kind. Syntax and modules of Python 3.6.
"""

import os
import signal
import sys
import time

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import planted_normalization as normalization
import planted_sequences as along_time
import planted_shown as shown

JOINS = ("add", "concat")
# Those with a colon name a layer behind it: "stale_weight:fc2".
DEFECTS = (
    "none", "ignored_bias:", "stale_weight:", "initial_weight:", "frozen:", "frozen_later:",
    "gradient_off:", "ignored_decay", "doubled_rate",
    "nesterov", "dampened", "decayed_late", "skipped_later", "bf16_later", "constant", "cached_loss",
    "other_order", "stale_batch", "ahead", "wrong_stride", "swapped_padding", "transposed_weight",
    "transposed_square", "missing_bias", "forgotten_mean", "zero_gradient_through_pool", "no_update",
    "evaluation_mode", "reduced_precision", "relu_at_zero", "stale_evaluation", "forgotten_momentum",
    "no_reset", "chance", "gradient_leaves_a_trace", "kept_velocity", "half_batch", "every_eighth",
    "shifted_target", "velocity_lost", "first_inference", "inference_trace",
    "undecayed_bias", "late_rate", "early_rate", "rate_in_velocity",
    "remembers", "forgotten_part", "swapped_parts", "overwritten_part",
    "one_loss", "equal_losses", "loss_without_weight",
    "padding_in_front", "shuffled_groups",
    "mask_ignored", "mask_forward_only", "mask_in_inference", "mask_of_before", "own_mask", "unscaled_mask",
    # In steps that come back to back, with no look at a tensor between them:
    "stale_unseen", "bf16_unseen", "late_loss_unseen",
    *normalization.DEFECTS, *along_time.DEFECTS, *shown.DEFECTS,
)  # fmt: skip


class Adapter(normalization.Normalization, along_time.Sequences, shown.Shown):
    tasks = ("train", "gradient", "forward")
    devices = ("cpu",)
    dtypes = ("f32",)
    optimizers = ("sgd", "schedule")
    layers = (
        "dense", "conv2d", "max_pool2d", "relu", "flatten", "add", "concat", "dropout",
        "softmax_cross_entropy", "mean_squared_error", "loss_sum", *normalization.LAYERS,
        *along_time.LAYERS,
    )  # fmt: skip
    ways = ("padded", "trimmed")
    version = "1"
    library = f"NumPy {np.__version__}"

    def load(self, settings):
        self.settings = dict(settings)
        self.defect, _, self.target = settings.get("planted.defect", "none").partition(":")
        self.hides_states = settings.get("planted.states") == "hidden"
        self.behavior = settings.get("planted.behavior", "none")
        self.steps = 0
        self.sequence_steps = 0
        self.resets = 0
        self.known, self.known_shown, self.is_showing = {}, None, False

    def read_settings(self):
        defect = self.defect + (":" + self.target if self.target else "")
        readings = {"planted.defect": (defect, "own variable")}
        if "planted.states" in self.settings:
            readings["planted.states"] = (self.settings["planted.states"], "own variable")
        if "threads" in self.settings:
            readings["threads"] = (self.settings["threads"], "what was asked")
        return readings

    def build(self, job, batch):
        # What the first layer reads: images, in most networks.
        self.source = job.nodes[0].inputs[0]
        self.job, self.images, self.labels, self.batch = job, batch[self.source], batch["labels"], batch
        self.masks_before = {}
        self.nodes = [node for node in job.nodes if node.shape]
        named = {node.name: node for node in job.nodes}
        whole = named[job.loss]
        # Beside the first loss: of what, against what, with which weight.
        weights = whole.attributes.get("weights", ())
        self.errors = [
            (named[whole.inputs[k]].inputs[0], named[whole.inputs[k]].inputs[1], weights[k])
            for k in range(1, len(weights))
        ]
        self.reset()

    def reset(self):
        if self.defect == "no_reset" and hasattr(self, "parameters"):
            return
        self.resets += 1
        self.parameters = {name: np.array(values) for name, values in self.job.parameters.items()}
        if self.defect != "kept_velocity" or not hasattr(self, "velocity"):
            self.velocity = {name: np.zeros_like(values) for name, values in self.parameters.items()}
        self.states = {name: np.array(values) for name, values in self.job.states.items()}
        self.states_before = dict(self.states)
        self.statistics = {}
        self.moved = {}
        self.gradients = {}
        self.stale = dict(self.parameters)
        self.initial = dict(self.parameters)
        self.states_behind, self.gradients_before = {}, {}
        self.previous = dict(self.parameters)
        self.traced = False
        self.since_reset = 0
        self.predicted = None
        self.known_loss = None
        self.known_images = None
        self.ready = None
        self.unseen = 0  # steps since somebody looked
        self.last_loss = None

    def step(self):
        self._behave()
        self.since_reset += 1
        if self.defect == "remembers":
            return self._remembered()
        if self.defect == "stale_unseen" and self.unseen:
            own, self.parameters = self.parameters, self.previous
            loss = self._forward_backward()
            self.parameters = own
        elif self.ready is None:
            loss = self._forward_backward()
        else:
            loss, self.gradients = self.ready
        if self.defect == "cached_loss":
            self.known_loss = loss = loss if self.known_loss is None else self.known_loss
        if self.defect in ("no_update", "evaluation_mode"):
            return loss
        if self.defect == "skipped_later" and self.since_reset > 5:
            return loss
        if self.defect == "every_eighth" and self.since_reset % 8 == 0:
            return loss
        if self.defect == "velocity_lost" and self.since_reset % 10 == 0:
            self.velocity = {name: np.zeros_like(values) for name, values in self.velocity.items()}
        if self.defect == "late_loss_unseen" and self.unseen:
            loss, self.last_loss = self.last_loss, loss
        else:
            self.last_loss = loss
        self.unseen += 1
        before = dict(self.parameters)
        self._update()
        self.previous = before
        if self.defect == "ahead":
            self._begin_next_step()
        if self.defect == "chance":
            self._nudge(self.resets % 2)  # one run and the next surely differ
        elif self.traced:
            self._nudge(1)
        return loss

    def _remembered(self):
        """Each step is computed once: its batch and the values before it say what comes of it. So much work,
        that also beside a machine's other programs nobody mistakes the one for the other."""
        key = self.images.sum(), self.parameters[min(self.parameters)].sum(), self.since_reset
        if key not in self.known:
            for _ in range(10):
                loss = self._forward_backward()
            self._update()
            self.known[key] = loss, dict(self.parameters), dict(self.velocity), self.gradients
        loss, parameters, velocity, self.gradients = self.known[key]
        self.parameters, self.velocity = dict(parameters), dict(velocity)
        return loss

    def _begin_next_step(self):
        """On the batch that the order of the workload's data says comes next."""
        files = self.job.streams["train"]
        order = np.load(files["order"], mmap_mode="r")
        rows = order[self.since_reset % len(order)]
        own = self.images, self.labels
        self.images, self.labels = (
            np.load(files["tensors"][key], mmap_mode="r")[rows] for key in (self.source, "labels")
        )
        self.ready = self._forward_backward(), self.gradients
        self.images, self.labels = own

    def _update(self):
        late = self.defect == "late_rate"
        rate, momentum = self.job.rate(max(0, self.since_reset - 1 - late)), self.job.optimizer["momentum"]
        decay = self.job.optimizer["weight_decay"]
        if self.defect == "forgotten_momentum":
            momentum = 0.0
        if self.defect == "ignored_decay":
            decay = 0.0
        if self.defect == "doubled_rate" or (self.defect == "early_rate" and self.since_reset == 1):
            rate *= 2
        for name, gradient in self.gradients.items():
            is_named = name == self.target or name.startswith(self.target + ".")
            if is_named and self.defect == "frozen":
                continue
            if is_named and self.defect == "frozen_later" and self.since_reset > 50:
                continue
            weight, velocity = self.parameters[name], self.velocity[name]
            part = self._moved_twice(name)
            if part is not None:
                velocity = momentum * velocity + part + decay * weight
                weight, gradient = weight - rate * velocity, gradient - part
            if self.defect == "second_bias" and self._is_recurrent_bias(name):
                gradient = 2 * gradient
            change = gradient + decay * weight
            if self.defect == "decayed_late" or (self.defect == "undecayed_bias" and weight.ndim == 1):
                change = gradient
            if self.defect == "dampened":
                change = change * 0.9
            if self.defect == "rate_in_velocity":  # the same steps, as long as the rate stays
                self.velocity[name] = momentum * velocity + rate * change
                self.parameters[name] = (weight - self.velocity[name]).astype(np.float32)
                continue
            self.velocity[name] = momentum * velocity + change
            step = self.velocity[name]
            if self.defect == "nesterov":
                step = change + momentum * step
            if self.defect == "decayed_late":
                step = step + decay * weight
            if self.defect == "other_order":  # right: the same rule, rounded elsewhere
                kept = (1 - rate * decay) * weight
                self.parameters[name] = (kept - rate * (momentum * velocity + gradient)).astype(np.float32)
                continue
            self.parameters[name] = (weight - rate * step).astype(np.float32)

    def gradient(self):
        self.traced = self.defect == "gradient_leaves_a_trace"
        return self._forward_backward()

    def _nudge(self, units):
        """One weight by a few units in the last place: far below any tolerance."""
        last = self.parameters[sorted(self.parameters)[-1]].reshape(-1)
        last[0] += units * np.spacing(last[0])

    def forward(self):
        if self.defect == "constant" and self.predicted is not None:
            return self.predicted
        self.since_reset += 1
        self.predicted = self._forward(self.parameters, learns=False)[self.job.output]
        return self.predicted

    def evaluate(self):
        if self.defect == "inference_trace":
            self.velocity = {name: np.zeros_like(values) for name, values in self.velocity.items()}
        if self.defect == "first_inference":
            if not hasattr(self, "frozen"):
                self.frozen = dict(self.parameters)
            return self._forward(self.frozen, learns=False)[self.job.output]
        parameters = self.stale if self.defect == "stale_evaluation" else self.parameters
        output = self._forward(parameters, learns=False)[self.job.output]
        if self.defect == "moved_in_inference":
            self.states.update(self.moved)
        return output

    def wait(self):
        pass

    def tensors(self, role):
        self.unseen = 0
        if role == "activation":
            return self.shown()
        if role == "optimizer" and not self.hides_states:
            return {name + ".velocity": values for name, values in self.velocity.items()}
        known = {"parameter": self.parameters, "gradient": self.gradients, "state": self.states}
        found = known.get(role, {})
        if self.defect == "transposed_weight":
            return {n: (v.T if n == "fc1.weight" else v) for n, v in found.items()}
        return found

    # Ways to misbehave, beside wrong arithmetic.

    def _behave(self):
        self.steps += 1
        if self.behavior == "flush" and self.steps > 1:  # on a busy machine three steps are all that is timed
            sys.modules["timetrial_adapter"].runtime.set_float_mode(3)
        if self.steps < 4:
            return
        if self.behavior == "sleep":
            time.sleep(0.02)
        elif self.behavior == "raise":
            raise RuntimeError("planted: an exception in a step")
        elif self.behavior == "memory":
            raise MemoryError("planted")
        elif self.behavior == "print":
            print('{"event": "done", "steps": 1}')
            sys.stdout.flush()
        elif self.behavior == "exit":
            os._exit(3)
        elif self.behavior == "kill" and self.steps == 12:
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.behavior == "tidy" and self.steps == 4:
            folder = os.path.dirname(os.environ["HOME"])
            for name in ("stamps.bin", "losses.bin"):
                os.unlink(os.path.join(folder, name))
        elif self.behavior == "hang":
            self._wait_for_ever()
        elif self.behavior == "hold" and self.steps == 4:  # in four processes, none of which holds much
            for _ in range(4):
                if os.fork() == 0:
                    os.setsid()
                    self.held = bytearray(80 << 20)
                    time.sleep(1000)
        elif self.behavior == "files" and self.steps == 4:
            self.files = [os.open(os.devnull, os.O_RDONLY) for _ in range(200)]
        elif self.behavior == "segv":
            import ctypes

            ctypes.string_at(8)
        elif self.behavior == "handler":  # asks for memory where nobody expects it
            signal.signal(signal.SIGALRM, lambda *_: bytearray(4 << 30))
            signal.setitimer(signal.ITIMER_REAL, 1e-3)
        elif self.behavior == "children" and self.steps == 4:
            for _ in range(2):
                if os.fork() == 0:
                    os.setsid()
                    time.sleep(1000)

    def _wait_for_ever(self):
        time.sleep(1000)

    # The network.

    def _round(self, values):
        late = self.defect == "bf16_later" and self.since_reset > 50
        late = late or (self.defect == "bf16_unseen" and self.unseen > 0)
        late = late or (self.defect == "shown_in_f32" and not self.is_showing)
        if self.defect != "reduced_precision" and not late:
            return values
        bits = values.astype(np.float32).view(np.uint32)
        return ((bits + 0x8000) & 0xFFFF0000).astype(np.uint32).view(np.float32)  # bfloat16

    def _forward(self, parameters, learns=True):
        self.moved = {}
        images, self.learns = self.images, learns or self.defect == "mask_in_inference"
        if self.defect == "stale_batch":
            # The step before still holds its own.
            images = self.images if self.known_images is None else self.known_images
            self.known_images = self.images.copy()
        values = {self.source: images}
        self._saved = {}
        for node in self.nodes:
            x = [values[name] for name in node.inputs] if node.kind in JOINS else values[node.inputs[0]]
            values[node.name] = getattr(self, "_" + node.kind)(node, x, parameters).astype(np.float32)
        return values

    def _dense(self, node, x, p):
        w = p[node.name + ".weight"]
        if self.defect == "transposed_square" and node.name == "square":
            w = w.T
        self._saved[node.name] = (x, w)
        y = self._round(x).dot(self._round(w).T)
        bias = p.get(node.name + ".bias", 0.0)
        return y if self._is_target("ignored_bias", node) else y + bias

    def _conv2d(self, node, x, p):
        a, w = node.attributes, p[node.name + ".weight"]
        stride, dilation = (a["stride_h"], a["stride_w"]), (a["dilation_h"], a["dilation_w"])
        padding = [(a["padding_h"], a["padding_end_h"]), (a["padding_w"], a["padding_end_w"])]
        if self.defect == "wrong_stride":
            stride = stride[::-1]
        if self.defect == "swapped_padding":
            padding = padding[::-1]
        if self.defect == "padding_in_front":
            padding = [(after, before) for before, after in padding]
        padded = np.pad(x, [(0, 0), (0, 0), *padding], "constant")
        kernel = w.shape[2:]
        reach = [(kernel[i] - 1) * dilation[i] for i in (0, 1)]
        size = [(padded.shape[2 + i] - reach[i] - 1) // stride[i] + 1 for i in (0, 1)]
        places = [(h * dilation[0], v * dilation[1]) for h in range(kernel[0]) for v in range(kernel[1])]
        steps = [slice(None, (size[i] - 1) * stride[i] + 1, stride[i]) for i in (0, 1)]
        columns = [padded[:, :, h:, v:][:, :, steps[0], steps[1]] for h, v in places]
        columns = np.stack(columns, axis=2)  # N, C, K, H, W
        self._saved[node.name] = (x, w, columns, places, stride, padding, padded.shape)
        flat = self._round(self._over_all_channels(node, w))
        y = np.einsum("nckhw,fck->nfhw", self._round(columns), flat, optimize=True)
        if (self.defect == "missing_bias" and node.name == "conv1") or self._is_target("ignored_bias", node):
            return y
        return y + p[node.name + ".bias"][:, None, None] if node.name + ".bias" in p else y

    def _groups(self, node, w):
        """The channels of each group's outputs and inputs, for a weight (O, C / groups, H, W)."""
        groups = node.attributes["groups"]
        outputs, inputs = np.arange(w.shape[0]).reshape(groups, -1), np.arange(w.shape[1] * groups)
        if self.defect == "shuffled_groups":  # every so many channels in place of neighbors
            inputs = inputs.reshape(-1, groups).T
        else:
            inputs = inputs.reshape(groups, -1)
        return [(outputs[group], inputs[group]) for group in range(groups)]

    def _over_all_channels(self, node, w):
        """The weight (O, C, K): 0 where an output does not look."""
        whole = np.zeros((w.shape[0], w.shape[1] * node.attributes["groups"], w.shape[2] * w.shape[3]))
        for outputs, inputs in self._groups(node, w):
            whole[np.ix_(outputs, inputs)] = w[outputs].reshape(len(outputs), len(inputs), -1)
        return whole

    def _max_pool2d(self, node, x, _):
        k = node.attributes["kernel_h"]
        n, c, h, w = x.shape
        blocks = x[:, :, : h // k * k, : w // k * k].reshape(n, c, h // k, k, w // k, k)
        blocks = blocks.transpose(0, 1, 2, 4, 3, 5).reshape(n, c, h // k, w // k, k * k)
        self._saved[node.name] = (x.shape, blocks.argmax(axis=-1), k)
        return blocks.max(axis=-1)

    def _relu(self, node, x, _):
        self._saved[node.name] = x >= 0 if self.defect == "relu_at_zero" else x > 0
        return np.maximum(x, 0)

    def _flatten(self, node, x, _):
        self._saved[node.name] = x.shape
        return x.reshape(x.shape[0], -1)

    def _dropout(self, node, x, _):
        if not self.learns or self.defect == "mask_ignored":
            self._saved[node.name] = 1.0
            return x
        mask = self.batch[node.inputs[1]].copy()
        if self.defect == "own_mask":
            mask = np.random.RandomState(self.since_reset).permutation(mask.ravel()).reshape(mask.shape)
        if self.defect == "unscaled_mask":
            mask = (mask > 0).astype(np.float32)
        if self.defect == "mask_of_before":
            mask, self.masks_before[node.name] = self.masks_before.get(node.name, mask), mask
        self._saved[node.name] = 1.0 if self.defect == "mask_forward_only" else mask
        return mask * x

    def _add(self, node, x, _):
        return sum(x)

    def _concat(self, node, x, _):
        self._saved[node.name] = np.cumsum([one.shape[1] for one in x])[:-1]
        return np.concatenate(x, axis=1)

    def _forward_backward(self):
        values = self._forward(self.parameters)
        if self.defect != "running_unmoved" and not (
            self.defect == "running_unmoved_later" and self.since_reset > 50
        ):
            self.states_before = dict(self.states)
            self.states.update(self.moved)
        prediction = values[self.job.output]
        logits = prediction.reshape(-1, prediction.shape[-1]).astype(np.float64)
        labels = (np.roll(self.labels, 1) if self.defect == "shifted_target" else self.labels).reshape(-1)
        rows = np.flatnonzero(labels >= 0)  # of a sequence: the steps that count
        shifted = logits - logits.max(axis=1, keepdims=True)
        probabilities = np.exp(shifted) / np.exp(shifted).sum(axis=1, keepdims=True)
        counted = len(rows) // 2 if self.defect == "half_batch" else len(rows)
        rows = rows[:counted]
        counted = self._divisor(counted, labels)
        loss = float(-np.log(probabilities[rows, labels[rows]]).sum() / counted)
        if self.defect == "evaluation_mode":
            self.gradients = {name: np.zeros_like(values) for name, values in self.parameters.items()}
            return loss
        probabilities[rows, labels[rows]] -= 1
        if self.defect != "skipped_forward_only":
            probabilities[np.setdiff1d(np.arange(len(labels)), rows)] = 0
        dy = probabilities if self.defect == "forgotten_mean" else probabilities / counted
        dy = dy.reshape(prediction.shape)
        self.gradients = {}
        parts = {self.job.output: dy}
        for of, against, weight in self.errors:
            away = values[of] - self.batch[against].reshape(values[of].shape)
            counts = 1.0 if self.defect == "equal_losses" else weight
            loss += (1.0 if self.defect == "loss_without_weight" else counts) * float((away**2).mean())
            if self.defect != "one_loss":
                parts[of] = parts.get(of, 0) + counts * 2 * away / away.size
        for node in reversed(self.nodes):
            dy = parts.pop(node.name, None)
            if dy is None:  # nothing that it leads to counts
                dy = np.zeros_like(values[node.name])
            dx = getattr(self, "_back_" + node.kind)(node, dy)
            for k, name in enumerate(node.inputs if node.kind in JOINS else node.inputs[:1]):
                part = dx[k] if node.kind in JOINS else dx
                known = None if self.defect == "overwritten_part" else parts.get(name)
                parts[name] = part if known is None else known + part
        if self.defect == "gradient_off":  # by one part in a thousand
            self.gradients[self.target] = self.gradients[self.target] * 1.001
        self.gradients = {name: self.gradients[name].astype(np.float32) for name in self.parameters}
        self._accumulate()
        return loss

    def _back_dense(self, node, dy):
        x, w = self._saved[node.name]
        steps, of_steps = x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1])
        dw = self._round(of_steps.T).dot(self._round(steps))
        self.gradients[node.name + ".weight"] = dw.T if w.base is not None and self._is_turned(node) else dw
        self.gradients[node.name + ".bias"] = of_steps.sum(axis=0)
        return self._round(dy).dot(self._round(self._backward_weight(node, w)))

    def _is_target(self, defect, node):
        return self.defect == defect and node.name == self.target

    def _backward_weight(self, node, w):
        """What the gradient of the layer's input is computed with."""
        if self._is_target("stale_weight", node):
            return self.previous[node.name + ".weight"]
        if self._is_target("initial_weight", node):
            return self.initial[node.name + ".weight"]
        return w

    def _is_turned(self, node):
        return self.defect == "transposed_square" and node.name == "square"

    def _back_conv2d(self, node, dy):
        _, w, columns, places, stride, padding, shape = self._saved[node.name]
        flat = self._over_all_channels(node, self._backward_weight(node, w))
        dw = np.einsum("nckhw,nfhw->fck", self._round(columns), self._round(dy), optimize=True)
        looks = [dw[np.ix_(outputs, inputs)] for outputs, inputs in self._groups(node, w)]
        self.gradients[node.name + ".weight"] = np.concatenate(looks).reshape(w.shape)
        missing = self.defect == "missing_bias" and node.name == "conv1"
        self.gradients[node.name + ".bias"] = dy.sum(axis=(0, 2, 3)) * (0.0 if missing else 1.0)
        back = np.einsum("nfhw,fck->nckhw", self._round(dy), self._round(flat), optimize=True)
        dx, (h, v) = np.zeros(shape), dy.shape[2:]
        for i, (r, s) in enumerate(places):
            rows, columns = slice(r, r + stride[0] * h, stride[0]), slice(s, s + stride[1] * v, stride[1])
            dx[:, :, rows, columns] += back[:, :, i]
        (top, bottom), (left, right) = padding
        return dx[:, :, top : shape[2] - bottom, left : shape[3] - right]

    def _back_max_pool2d(self, node, dy):
        shape, winners, k = self._saved[node.name]
        blocks = np.zeros((*winners.shape, k * k))
        if self.defect != "zero_gradient_through_pool":
            np.put_along_axis(blocks, winners[..., None], dy[..., None], axis=-1)
        n, c, h, w = winners.shape
        dx = np.zeros(shape)
        blocks = blocks.reshape(n, c, h, w, k, k).transpose(0, 1, 2, 4, 3, 5)
        dx[:, :, :h * k, :w * k] = blocks.reshape(n, c, h * k, w * k)  # fmt: skip
        return dx

    def _back_relu(self, node, dy):
        return dy * self._saved[node.name]

    def _back_dropout(self, node, dy):
        return self._saved[node.name] * dy

    def _back_add(self, node, dy):
        parts = [dy] * len(node.inputs)
        return [dy * 0, *parts[1:]] if self.defect == "forgotten_part" else parts

    def _back_concat(self, node, dy):
        parts = np.split(dy, self._saved[node.name], axis=1)
        alike = len({part.shape for part in parts}) == 1
        return parts[::-1] if self.defect == "swapped_parts" and alike else parts

    def _back_flatten(self, node, dy):
        return dy.reshape(self._saved[node.name])
