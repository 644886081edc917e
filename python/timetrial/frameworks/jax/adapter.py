"""JAX on the CPU: functions of a dictionary of parameters, optax for the loss and the update."""

import numpy as np
from jax_lengths import WAYS, kinds_of
from jax_network import LAYERS, LOSSES
from jax_sequences import facts_of
from timetrial_adapter import BaseAdapter, Values

# The states of each rule, and what optax calls them. Optax's Adagrad has its epsilon inside the root.
_STATES = {
    "sgd": {"velocity": "trace"},
    "adam": {"first_moment": "mu", "second_moment": "nu"},
    "adamw": {"first_moment": "mu", "second_moment": "nu"},
    "rmsprop": {"second_moment": "nu"},
    "adadelta": {"second_moment": "e_g", "squared_update": "e_x"},
}


class Adapter(BaseAdapter):
    """Modes: `jit` compiles each function as a whole, `eager` runs operation by operation."""

    layers = (*LAYERS, *LOSSES)
    several_inputs = True
    sequences = True
    ways = WAYS
    optimizers = (*_STATES, "nesterov", "decoupled", "schedule", "clip_norm")

    def load(self, settings):
        """Imports JAX. Its threads are as many as the processors that the parent lets it have."""
        global jax, jnp, optax
        import jax
        import jax.numpy as jnp
        import optax

        self.version = jax.__version__
        self.library = "JAX {}".format(jax.__version__)

    def read_settings(self):
        """A compiled function can be lowered, a plain one cannot."""
        mode = "jit" if hasattr(self._train, "lower") else "eager"
        return {
            "mode": (mode, "type of the step: {}".format(type(self._train).__name__)),
            "threads": (None, "XLA's CPU client reports no number of threads"),
        }

    def facts(self):
        """The client that computes, and its way through recurrent layers."""
        client = jax.devices()[0].client
        found = {"jax.platform": client.platform, "jax.platform_version": client.platform_version.strip()}
        return dict(found, **facts_of(jax, self._job, self._kinds, Values(self._weights, learns=False)))

    def build(self, job, batch):
        """The functions; images are the batch's own memory."""
        self._job = job
        self._kinds = kinds_of(LAYERS, job.settings.get("lengths", WAYS[0]))
        self.targets = {node.inputs[1]: batch[node.inputs[1]] for node, _ in job.losses}
        # Whole numbers have 32 bits in JAX: they are converted in each call, as labels are.
        shared = {
            name: batch[name] if batch[name].dtype == np.int64 else jnp.from_dlpack(batch[name], copy=False)
            for name in job.sources
        }
        self.inputs = shared
        self.read = {name: values for name, values in shared.items() if name not in job.masks}
        self._optimizer = _optimizer(job)
        compiled = jax.jit if self.mode == "jit" else (lambda function: function)
        self._train = compiled(self._train_function)
        self._gradient = compiled(jax.value_and_grad(self._loss_function, has_aux=True))
        self._predict = compiled(lambda *given: self._layers(*given, learns=False)[0][job.output])
        self.reset()

    def reset(self):
        """Initial weights and states of layers, empty optimizer."""
        self._weights = {name: jnp.array(np.array(v)) for name, v in self._job.parameters.items()}
        self._kept = {name: jnp.array(np.array(v)) for name, v in self._job.states.items()}
        self._state = self._optimizer.init(self._weights)
        self._gradients = {}

    def step(self):
        """One training step; everything is waited for, because the batch's memory changes afterwards."""
        found = self._train(self._weights, self._kept, self._state, self.targets, self.inputs)
        loss, self._gradients, self._weights, self._kept, self._state = jax.block_until_ready(found)
        return float(loss)

    def gradient(self):
        """The same without update."""
        found = self._gradient(self._weights, self._kept, self.targets, self.inputs)
        (loss, self._kept), self._gradients = jax.block_until_ready(found)
        return float(loss)

    def forward(self):
        """Inference; the prediction (N x classes)."""
        return self._predict(self._weights, self._kept, self.read).block_until_ready()

    def evaluate(self):
        """Inference between training steps."""
        return np.asarray(self.forward())

    def parameters(self):
        """Name -> array."""
        return {name: np.asarray(value) for name, value in self._weights.items()}

    def gradients(self):
        """Of the last step."""
        return {name: np.asarray(value) for name, value in self._gradients.items()}

    def states(self):
        """What optax keeps, by the job's names."""
        wanted = _STATES[self._job.optimizer["name"]]

        def has_them(state):
            return all(hasattr(state, theirs) for theirs in wanted.values())

        found = [one for one in jax.tree_util.tree_leaves(self._state, is_leaf=has_them) if has_them(one)]
        return {
            name + "." + ours: np.asarray(value)
            for state in found
            for ours, theirs in wanted.items()
            for name, value in getattr(state, theirs).items()
        }

    def layer_states(self):
        """Name -> array."""
        return {name: np.asarray(value) for name, value in self._kept.items()}

    def activations(self):
        """Of every layer, on the current batch: a forward pass of its own, in no timed step."""
        values = jax.block_until_ready(self._layers(self._weights, self._kept, self.inputs, learns=True)[0])
        return {name: np.asarray(value) for name, value in values.items() if name not in self._job.inputs}

    def _train_function(self, weights, kept, state, targets, inputs):
        differentiate = jax.value_and_grad(self._loss_function, has_aux=True)
        (loss, kept), gradients = differentiate(weights, kept, targets, inputs)
        updates, state = self._optimizer.update(gradients, state, weights)
        return loss, gradients, optax.apply_updates(weights, updates), kept, state

    def _loss_function(self, weights, kept, targets, inputs):
        """The loss, and what becomes of the states of layers."""
        values, moved = self._layers(weights, kept, inputs, learns=True)
        losses = [
            LOSSES[node.kind](jax, optax, values[node.inputs[0]], targets[node.inputs[1]])
            for node, _ in self._job.losses
        ]
        if len(losses) == 1:
            return losses[0], moved
        return LOSSES["loss_sum"](losses, [weight for _, weight in self._job.losses]), moved

    def _layers(self, weights, kept, inputs, learns):
        """Node -> its output, the inputs too; and what becomes of the states of layers. Without masks: in
        inference."""
        given, values = Values(dict(weights, **kept), learns), dict(inputs)
        for node in self._job.layers:
            read = [values[name] for name in node.inputs if name in values]
            values[node.name] = self._kinds[node.kind](jax, node, given, *read)
        return values, given.moved


def _optimizer(job):
    """Of optax's pieces: clip, decay of the gradient, the rule, decay of the weight, rate."""
    rule = job.optimizer
    decay = [optax.add_decayed_weights(rule["weight_decay"])]
    decoupled = rule["name"] == "adamw" or "decoupled" in rule
    rate = rule["learning_rate"]
    if job.rates is not None:
        rates = np.asarray(job.rates, np.float32)

        def rate(step):
            return jnp.asarray(rates)[jnp.minimum(step, len(rates) - 1)]

    return optax.chain(
        *([optax.clip_by_global_norm(rule["clip_norm"])] if "clip_norm" in rule else []),
        *([] if decoupled else decay),
        *_rule(rule),
        *(decay if decoupled else []),
        optax.scale_by_learning_rate(rate),
    )


def _rule(rule):
    if rule["name"] == "sgd":
        return [optax.trace(rule["momentum"], nesterov="nesterov" in rule)] if rule["momentum"] else []
    if rule["name"] == "rmsprop":
        return [optax.scale_by_rms(rule["rho"], rule["epsilon"], eps_in_sqrt=False)]
    if rule["name"] == "adadelta":
        return [optax.scale_by_adadelta(rule["rho"], rule["epsilon"])]
    # Optax adds its epsilon to the corrected root, the job's rule to the root as it is.
    scale = optax.inject_hyperparams(optax.scale_by_adam, static_args=("b1", "b2", "eps_root"))
    return [
        scale(
            b1=rule["beta1"],
            b2=rule["beta2"],
            eps=lambda step: rule["epsilon"] / jnp.sqrt(1 - rule["beta2"] ** (step + 1)),
        )
    ]
