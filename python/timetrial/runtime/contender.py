"""One framework, one network, and what can be asked of them: the same as timetrial-child, for Python.

Syntax and modules of Python 3.6.
"""

import math
import os
from collections import OrderedDict

import numpy as np
from data import Stream, aligned_empty
from failures import ContenderError, UnsupportedError
from score import Score, answers_of
from timed import BACKWARD_END, DATA, FORWARD_END, LOSS_END, SEGMENT, STEP, Timed

PARTS = ("forward", "loss", "backward", "update")
ROLES = ("parameter", "state", "gradient", "optimizer", "input_gradient")


class Contender(Timed):
    """Commands are methods; each returns the fields of its `done`."""

    def __init__(self, job, adapter, runtime, recorder_fd):
        super().__init__(job, adapter, runtime, recorder_fd)
        self._batch = OrderedDict(
            (name, aligned_empty(node.batch_shape, node.dtype)) for name, node in job.inputs.items()
        )
        self._streams = {}
        self._gathers = {}
        self._current = "train"
        self._predicted = None  # what the last step of the task forward returned

    def check_wants(self):
        """Task, device, dtype, layers and optimizer, before anything is built."""
        job, adapter = self._job, self._adapter
        self.check_has("task", job.task, adapter.tasks)
        self.check_has("device", job.device, adapter.devices)
        self.check_has("dtype", job.dtype, adapter.dtypes)
        if len(job.sources) - len(job.masks) > 1 and not getattr(adapter, "several_inputs", False):
            words = "the backend takes one input; the network has: {}"
            raise UnsupportedError(words.format(", ".join(job.sources)))
        for node in job.nodes:
            self.check_has("layer", node.kind, adapter.layers)
            if len(node.shape) == 3 and not getattr(adapter, "sequences", False):
                words = "the backend takes no sequences; '{}' gives one, {}"
                raise UnsupportedError(words.format(node.name, node.shape))
            self.check_limits(node, getattr(adapter, "limits", {}))
        if job.task == "train":
            self.check_has("optimizer", job.optimizer["name"], adapter.optimizers)
            for option in job.optimizer.get("options", ()):
                self.check_has("optimizer option", option, adapter.optimizers)

    @staticmethod
    def check_limits(node, limits):
        """UnsupportedError where a layer asks for what the adapter says its kind cannot be asked for."""
        for attribute, only in limits.get(node.kind, {}).items():
            value = node.attributes[attribute]
            several = only if isinstance(only, tuple) else (node.attributes.get(only, only),)
            if value not in several:
                words = "the backend has no {} with {} {} ('{}'); it has: {} {}"
                if isinstance(only, bool):  # in the words of a network's file
                    value, several = str(bool(value)).lower(), (str(only).lower(),)
                like = "as {}".format(only) if only in node.attributes else " or ".join(map(str, several))
                raise UnsupportedError(words.format(node.kind, attribute, value, node.name, attribute, like))

    def read_settings(self):
        """Of a network that reads lengths the way through them too."""
        readings = super().read_settings()
        if any(node.role == "lengths" for node in self._job.inputs.values()):
            source = "the way for which the adapter has built its layers"
            if getattr(self._adapter, "sequence_steps", None) is not None:
                source = "its layers, which count their steps"
            readings["lengths"] = {"effective": self._way(), "how_read": source}
        return readings

    def _way(self):
        ways = getattr(self._adapter, "ways", ("padded",))
        way = self._job.settings.get("lengths", ways[0])
        self.check_has("lengths", way, ways)
        return way

    def build(self):
        """The network with its initial weights on the batch's own memory."""
        self._way()
        self._job.read_parameters()
        self._stream("train")
        self._gather().fill()
        self._adapter.build(self._job, self._batch)

    def description(self, name):
        """The `backend` of the event `ready`."""
        adapter = self._adapter
        return {
            "name": name,
            "version": str(adapter.version),
            "library": adapter.library,
            "isa": "",
            "flags": ["profiles"] if hasattr(adapter, "profile") else [],
            "parts": list(getattr(adapter, "parts", ())),
        }

    # Commands -----------------------------------------------------------------------------------------

    def profile(self, steps):
        """So many training steps with a clock around every layer."""
        if self._job.task != "train":
            raise UnsupportedError("only a train step can be profiled")
        if not hasattr(self._adapter, "profile"):
            raise UnsupportedError("the backend does not time its layers")
        steps, times = int(steps), {}
        for _ in range(steps):
            if self._pass_steps and self._pass_done >= self._pass_steps:
                self.reset()
            self._pass_done += 1
            self._gather()()
            taken = {}
            for node, direction, ns in self._adapter.profile():
                taken[node, direction] = taken.get((node, direction), 0) + int(ns)
            for key, ns in taken.items():
                times.setdefault(key, []).append(ns)
        layers = [{"node": key[0], "direction": key[1], "ns": ns} for key, ns in times.items()]
        return {"steps": steps, "layers": layers}

    def stream(self, name):
        """The next steps use this stream, from its first batch."""
        self._stream(name)
        self._current = name
        self._gather().next = 0
        self._pass_done = 0
        return {}

    def reset(self):
        """Initial weights, empty optimizer, first batch."""
        self._adapter.reset()
        self._adapter.wait()
        self._gather().next = 0
        return super().reset()

    def gradient(self):
        """One step without update on the current batch."""
        self._gather().fill()
        loss = float(self._adapter.gradient())
        self._adapter.wait()
        return {"loss": loss if math.isfinite(loss) else None}

    def outputs(self, path):
        """The prediction for the first batch of the current stream, as a file."""
        gather = self._gather()
        place, gather.next = gather.next, 0
        gather.fill()
        gather.next = place
        np.save(path, np.ascontiguousarray(self._predict(), dtype=np.float32))
        return {}

    def predicted(self, path):
        """What the last step of the task forward returned, as a file: of the timed call, not of another."""
        if self._predicted is None:
            raise ContenderError("crash", "forward() returned None; expected the prediction (N x classes)")
        self._adapter.wait()
        show = getattr(self._adapter, "prediction", np.asarray)
        np.save(path, np.ascontiguousarray(show(self._predicted), dtype=np.float32))
        return {}

    def evaluate(self, path):
        """Accuracy and loss over the test stream; every prediction as a file, or each step's class."""
        if self._batch[self._job.target].dtype != np.int64:
            raise UnsupportedError("the network predicts no classes, so it has no accuracy")
        stream = self._stream("test")
        gather = self._gathers["test"]
        score = Score(self._job.losses[0][0].kind)
        labels = self._batch[self._job.target]
        shown, seen = [], 0
        for batch in range(stream.batches):
            gather.next = batch
            gather.fill()
            # The last batch is filled up with samples that were scored already.
            count = min(self._job.batch_size, stream.samples - seen)
            seen += count
            predictions = np.array(self._predict()[:count], dtype=np.float32)
            rows = predictions.reshape(-1, predictions.shape[-1])
            score.add(rows, labels[:count].reshape(-1))
            # Of a prediction for each step all would be gigabytes for a language: its classes are enough.
            shown.append(predictions if labels.ndim == 1 else answers_of(rows).reshape(count, -1))
        np.save(path, np.concatenate(shown))
        result = score.result()
        if not math.isfinite(result["loss"]):
            result["loss"] = None
        return result

    def dump(self, role, folder):
        """Every tensor of a role, as files."""
        if role not in ROLES:
            raise ContenderError(
                "crash", "tensors have no role '{}'; known: {}".format(role, ", ".join(ROLES))
            )
        return self._as_files(self._adapter.tensors(role), folder)

    def show(self, places, folder):
        """What the layers make of the batch that comes next, where they learn, as files: the samples at these
        places of the batch, or "all". Nothing that a step sees is different behind it."""
        self._gather().fill()
        shown = self._adapter.tensors("activation")
        if places != "all":
            rows = [int(place) for place in places.split(",")]
            shown = {name: np.asarray(array)[rows] for name, array in shown.items()}
        return self._as_files(shown, folder)

    def _as_files(self, tensors, folder):
        if not os.path.isdir(folder):
            os.mkdir(folder)
        for name, array in tensors.items():
            if "/" in name:
                raise ContenderError("crash", "tensor '{}' cannot be a file: its name has a '/'".format(name))
            np.save(os.path.join(folder, name + ".npy"), np.ascontiguousarray(array))
        return {"tensors": list(tensors)}

    # --------------------------------------------------------------------------------------------------

    def _predict(self):
        prediction = np.asarray(self._adapter.evaluate())
        self._adapter.wait()
        return prediction

    def _stream(self, name):
        if name not in self._streams:
            if name not in self._job.streams:
                raise ContenderError(
                    "crash",
                    "the job has no stream '{}'; known: {}".format(name, ", ".join(self._job.streams)),
                )
            stream = Stream(self._job.streams[name], self._job)
            self._streams[name] = stream  # keeps the arrays alive whose addresses the gather holds
            self._gathers[name] = self._runtime.Gather(
                stream.order.ctypes.data,
                stream.batches,
                self._job.batch_size,
                [
                    (
                        array.ctypes.data,
                        self._batch[name].ctypes.data,
                        array[0].nbytes,
                        len(array) if name in stream.drawn else 0,
                    )
                    for name, array in stream.arrays.items()
                ],
            )
        return self._streams[name]

    def _gather(self):
        self._stream(self._current)
        return self._gathers[self._current]

    def _fused_parts(self):
        adapter = self._adapter
        if self._job.task == "train":
            step = adapter.step
        elif self._job.task == "gradient":
            step = adapter.gradient
        else:

            def step():
                self._predicted = adapter.forward()

        return [(SEGMENT, self._gather()), (STEP, step)]

    def _separate_parts(self):
        adapter = self._adapter
        if self._job.task != "train" or tuple(getattr(adapter, "parts", ())) != PARTS:
            return [(DATA, self._gather()), self._fused_parts()[-1]]
        return [
            (DATA, self._gather()),
            (FORWARD_END, adapter.forward_part),
            (LOSS_END, adapter.loss_part),
            (BACKWARD_END, adapter.backward_part),
            (STEP, adapter.update_part),
        ]
