"""PyTorch on the CPU: the step that a PyTorch user writes."""

import contextlib
import math
import re
import time
from operator import attrgetter

import numpy as np
from pytorch_headers import keep_headers
from pytorch_layers import LAYERS
from pytorch_lengths import WAYS, Ways
from pytorch_network import LOSSES, make_loss, make_model
from pytorch_paths import facts_of
from pytorch_sequences import LIMITS
from timetrial_adapter import BaseAdapter

# Name of a fact, and where torch.__config__.show() has it.
_FACTS = (
    ("blas.version", r"^ *- (.*Math Kernel Library Version \S+|OpenBLAS.*)"),
    ("onednn.version", r"MKL-DNN v(\S+)"),
    ("openmp.version", r"^ *- (OpenMP.*)"),
    ("torch.blas", r"BLAS_INFO=(\w+)"),
    ("torch.cpu_capability", r"CPU capability usage: (.*)"),
)

# The states of each rule, and what torch calls them.
_STATES = {
    "sgd": {"velocity": "momentum_buffer"},
    "adam": {"first_moment": "exp_avg", "second_moment": "exp_avg_sq"},
    "adamw": {"first_moment": "exp_avg", "second_moment": "exp_avg_sq"},
    "rmsprop": {"second_moment": "square_avg"},
    "adagrad": {"squared_sum": "sum"},
    "adadelta": {"second_moment": "square_avg", "squared_update": "acc_delta"},
}


class Adapter(BaseAdapter):
    """Modes: `eager`, and `compiled`, where forward and loss are one compiled function."""

    layers = (*LAYERS, *LOSSES)
    limits = LIMITS
    several_inputs = True
    sequences = True
    ways = WAYS
    # Torch's SGD keeps the rate out of the velocity, and takes no decay from the weight itself.
    optimizers = (*_STATES, "nesterov", "schedule", "clip_norm")

    def load(self, settings):
        """Imports torch. Its OpenMP pool has its size from OMP_NUM_THREADS already; torch is told as well."""
        global torch
        import torch

        if self.mode == "compiled":
            self.ways = WAYS[:1]  # others have another shape in every step
            keep_headers()
        else:
            # A compiled step has no joints to cut it at, and no layers to look at.
            self.parts = ("forward", "loss", "backward", "update")
            self.profile = self._profile
        # Of old versions: gradients can only be filled with zeros.
        self._clear = {"set_to_none": True} if hasattr(torch, "inference_mode") else {}
        self._inference = getattr(torch, "inference_mode", torch.no_grad)
        if "threads" in settings:
            torch.set_num_threads(int(settings["threads"]))
        if "inter_op_threads" in settings:
            torch.set_num_interop_threads(int(settings["inter_op_threads"]))  # once, before any work
        if "determinism" in settings and hasattr(torch, "use_deterministic_algorithms"):
            torch.use_deterministic_algorithms(settings["determinism"] == "on")
        if "torch.mkldnn" in settings:
            torch._C._set_mkldnn_enabled(settings["torch.mkldnn"] == "true")
        self.version = torch.__version__
        self.library = "PyTorch {}".format(torch.__version__)

    def read_settings(self):
        """Torch's own answers: the getter, and the OpenMP runtime's through parallel_info()."""
        source = "torch.get_num_threads()"
        threads = torch.get_num_threads()
        openmp = re.search(r"omp_get_max_threads\(\)\s*:\s*(\d+)", torch.__config__.parallel_info())
        if openmp:
            source += ", omp_get_max_threads() {}".format(openmp.group(1))
            if int(openmp.group(1)) != threads:
                threads = int(openmp.group(1))  # two answers: the one that differs from what was set
        original = "_torchdynamo_orig_callable"  # what torch.compile() leaves on its functions
        mode = ("compiled" if hasattr(self._loss, original) else "eager", "hasattr(loss, '" + original + "')")
        found = {
            "threads": (str(threads), source),
            "inter_op_threads": (str(torch.get_num_interop_threads()), "torch.get_num_interop_threads()"),
            "mode": mode,
            "torch.mkldnn": (str(torch._C._get_mkldnn_enabled()).lower(), "torch._C._get_mkldnn_enabled()"),
        }
        if hasattr(torch, "are_deterministic_algorithms_enabled"):
            word = "on" if torch.are_deterministic_algorithms_enabled() else "off"
            found["determinism"] = (word, "torch.are_deterministic_algorithms_enabled()")
        return found

    @property
    def sequence_steps(self):
        """Those computed so far, in eager mode."""
        return None if self.mode == "compiled" else self._through.most()

    def facts(self):
        """The libraries inside torch and the instructions it chose, from its own account of its build."""
        found = {"torch.version": torch.__version__}
        for name, pattern in _FACTS:
            match = re.search(pattern, torch.__config__.show(), re.MULTILINE)
            if match:
                found[name] = match.group(1).strip()
        return dict(found, **facts_of(torch, self._job, self.model.layers))

    def build(self, job, batch):
        """The module, the loss and the optimizer on the batch's own memory."""
        self._job = job
        self.inputs = [torch.from_numpy(batch[name]) for name in job.sources]
        self.targets = [torch.from_numpy(batch[node.inputs[1]]) for node, _ in job.losses]
        self.model = make_model(torch, job)
        self.loss_function = make_loss(torch, job)
        self._through = Ways(torch, job.settings.get("lengths", WAYS[0]), counts=self.mode != "compiled")
        for module in self.model.modules():
            if hasattr(module, "rnn"):
                module.ways = self._through
        self._predict, self._loss = self.model, self._plain_loss
        if self.mode == "compiled":
            self._predict, self._loss = torch.compile(self.model), torch.compile(self._plain_loss)
        self._named = {}
        for node in job.nodes:
            for name, _ in node.parameters:
                module = self.model.layers[node.name]
                self._named[name] = attrgetter(name[len(node.name) + 1 :])(module)
        self._stated = [(node, self.model.layers[node.name]) for node in job.nodes if node.states]
        self.reset()

    def reset(self):
        """Initial weights, empty optimizer."""
        with torch.no_grad():
            for name, parameter in self._named.items():
                parameter.copy_(torch.from_numpy(np.array(self._job.parameters[name])))
                parameter.grad = None
        for node, module in self._stated:
            module.begin({name[len(node.name) + 1 :]: self._job.states[name] for name, _ in node.states})
        self.optimizer = self._make_optimizer() if self._named else None
        self._taken = 0
        self.model.train(self._job.task != "forward")

    def _make_optimizer(self):
        """Torch's own of that name, with the job's numbers by torch's names."""
        given = self._job.optimizer
        named = {"lr": self._job.rate(0), "weight_decay": given["weight_decay"]}
        for ours, theirs in (("momentum", "momentum"), ("rho", "rho"), ("epsilon", "eps")):
            if ours in given:
                named[theirs] = given[ours]
        if "beta1" in given:
            named["betas"] = (given["beta1"], given["beta2"])
        if given.get("nesterov"):
            named["nesterov"] = True
        if given["name"] == "rmsprop":
            named["alpha"] = named.pop("rho")
        kinds = {
            "sgd": "SGD", "adam": "Adam", "adamw": "AdamW", "rmsprop": "RMSprop", "adagrad": "Adagrad",
            "adadelta": "Adadelta",
        }  # fmt: skip
        made = getattr(torch.optim, kinds[given["name"]])(self.model.parameters(), **named)
        # What is not asked for costs nothing in a step.
        self._changes = "rates" in given or "beta1" in given or "clip_norm" in given
        return made

    def _update(self):
        """The optimizer, with this step's numbers."""
        if self._changes:
            given, (group,) = self._job.optimizer, self.optimizer.param_groups
            group["lr"] = self._job.rate(self._taken)
            self._taken += 1
            if "beta1" in given:
                # Torch adds its epsilon to the corrected root, the job's rule to the root as it is.
                group["eps"] = given["epsilon"] / math.sqrt(1 - given["beta2"] ** self._taken)
            if "clip_norm" in given:
                self._clip(given["clip_norm"])
        self.optimizer.step()

    def _clip(self, most):
        """All gradients by one factor, where their norm is larger."""
        gradients = [p.grad for p in self._named.values()]
        norm = torch.norm(torch.stack([torch.norm(one) for one in gradients])).item()
        if norm > most:
            for one in gradients:
                one.mul_(most / norm)

    def step(self):
        """One training step; the mean loss of the batch before the update."""
        self.optimizer.zero_grad(**self._clear)
        loss = self._loss(self.targets, *self.inputs)
        loss.backward()
        self._update()
        return loss.item()

    def gradient(self):
        """The same without update; gradients stay in the parameters."""
        self.optimizer.zero_grad(**self._clear)
        loss = self._loss(self.targets, *self.inputs)
        loss.backward()
        return loss.item()

    def forward(self):
        """Inference; the prediction (N x classes)."""
        with self._inference():
            found = self._predict(*self.inputs)
        return found[0] if isinstance(found, list) else found

    def evaluate(self):
        """Inference between training steps."""
        self.model.eval()
        prediction = self.forward().numpy()
        self.model.train(self._job.task != "forward")
        return prediction

    # Parts of a training step: the same work in the same order, cut at its joints.

    def forward_part(self):
        """Up to the prediction."""
        self.optimizer.zero_grad(**self._clear)
        self._prediction = self.model(*self.inputs)

    def loss_part(self):
        """The mean loss."""
        self._parted_loss = self.loss_function(self._prediction, self.targets)
        return self._parted_loss.item()

    def backward_part(self):
        """All gradients."""
        self._parted_loss.backward()

    def update_part(self):
        """The optimizer; then what the step held is freed, as at the end of step()."""
        self._update()
        del self._prediction, self._parted_loss

    def _profile(self):
        """The same step, layer by layer: each works on leaves of its own, so that autograd stops there."""
        taken, leaves, gradients = [], {}, {}
        self.optimizer.zero_grad(set_to_none=True)
        values = dict(zip(self._job.sources, self.inputs))
        nodes = self._job.layers
        for node in nodes:
            with _timed(taken, node.name, "forward"):
                leaves[node.name] = [_leaf(values[name]) for name in node.inputs]
                values[node.name] = self.model.layers[node.name](*leaves[node.name])
        for (loss, weight), target in zip(self._job.losses, self.targets):
            with _timed(taken, loss.name, "loss"):
                prediction = _leaf(values[loss.inputs[0]])
                value = weight * LOSSES[loss.kind](torch)(prediction, target)
                value.item()
                (gradient,) = torch.autograd.grad(value, prediction)
                _add(gradients, loss.inputs[0], gradient)
        for node in reversed(nodes):
            if values[node.name].requires_grad:
                with _timed(taken, node.name, "backward"):
                    self._backward(node, values.pop(node.name), leaves.pop(node.name), gradients)
        with _timed(taken, "*", "update"):
            self._update()
        return taken

    def _plain_loss(self, targets, *inputs):
        return self.loss_function(self.model(*inputs), targets)

    def _backward(self, node, output, leaves, gradients):
        """Gradients of a layer's inputs, added up by name, and of its parameters."""
        parameters = [p for p in self.model.layers[node.name].parameters() if p.requires_grad]
        inputs = [(name, leaf) for name, leaf in zip(node.inputs, leaves) if leaf.requires_grad]
        wanted = [leaf for _, leaf in inputs] + parameters
        found = torch.autograd.grad(output, wanted, gradients.pop(node.name))
        for (name, _), gradient in zip(inputs, found):
            _add(gradients, name, gradient)
        for parameter, gradient in zip(parameters, found[len(inputs) :]):
            parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient

    def parameters(self):
        """Name -> array."""
        return {name: p.detach().numpy().copy() for name, p in self._named.items()}

    def gradients(self):
        """Of the last step."""
        return {n: p.grad.numpy().copy() for n, p in self._named.items() if p.grad is not None}

    def states(self):
        """What the optimizer keeps, by the job's names."""
        state = self.optimizer.state if self.optimizer else {}
        return {
            name + "." + ours: state[p][theirs].numpy().copy()
            for name, p in self._named.items()
            for ours, theirs in _STATES[self._job.optimizer["name"]].items()
            if state.get(p, {}).get(theirs) is not None
        }

    def layer_states(self):
        """Of batch normalizations, and of layers that go on from batch to batch."""
        return {
            "{}.{}".format(node.name, key): value
            for node, module in self._stated
            for key, value in module.shown().items()
        }

    def activations(self):
        """Of every layer, on the current batch: a forward pass of its own, in no timed step; states of layers
        are as before."""
        found, kept = {}, [(buffer, buffer.clone()) for buffer in self.model.buffers()]
        hooks = [
            module.register_forward_hook(lambda _m, _i, output, name=name: found.__setitem__(name, output))
            for name, module in self.model.layers.items()
        ]
        try:
            with torch.no_grad():
                self.model(*self.inputs)
        finally:
            for hook in hooks:
                hook.remove()
            for buffer, before in kept:
                buffer.copy_(before)
        return {name: tensor.numpy().copy() for name, tensor in found.items()}


def _add(gradients, name, gradient):
    gradients[name] = gradients[name] + gradient if name in gradients else gradient


def _leaf(tensor):
    """The same values without their past; a gradient stops here if one comes so far."""
    return tensor.detach().requires_grad_(tensor.requires_grad)


@contextlib.contextmanager
def _timed(taken, node, direction):
    before = time.perf_counter_ns()
    yield
    taken.append((node, direction, time.perf_counter_ns() - before))
