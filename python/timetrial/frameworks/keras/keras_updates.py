"""Keras 3's optimizers where they have the job's formula, and one of our own where they have another one: its
RMSprop and Adagrad have the epsilon inside the root, its velocity the rate."""

import numpy as np
from timetrial_updates import Update

_BETAS = {"beta_1": "beta1", "beta_2": "beta2", "epsilon": "epsilon"}
_MOMENTS = {"first_moment": "_momentums", "second_moment": "_velocities"}
_SQUARES = {"second_moment": "_accumulated_grads", "squared_update": "_accumulated_delta_vars"}
# Rule -> (Keras' class, its words for the rule's numbers, where it keeps what).
RULES = {
    "sgd": ("SGD", {"momentum": "momentum"}, {"velocity": "momentums"}),
    "adam": ("Adam", _BETAS, _MOMENTS),
    "adamw": ("Adam", _BETAS, _MOMENTS),
    "adadelta": ("Adadelta", {"rho": "rho", "epsilon": "epsilon"}, _SQUARES),
}


class Updates(object):
    """The optimizer of a job."""

    def __init__(self, keras, job):
        self._job, self._update = job, Update(job, keras.ops.sqrt)
        update = self._update
        stays = update.rule != "sgd" or update.inside or job.rates is None
        self._is_own = update.rule in RULES and stays
        n, given = update.numbers, {"learning_rate": job.rate(0)}
        if self._is_own:
            name, words, self._names = RULES[update.rule]
            kind = getattr(keras.optimizers, name)
            given.update((theirs, n[ours]) for theirs, ours in words.items())
            if "nesterov" in n:
                given["nesterov"] = True
            if update.is_decoupled and n["weight_decay"]:
                given["weight_decay"] = n["weight_decay"]
        else:
            kind, self._names = _formula(keras, update), {state: state for state in update.states}
        self.optimizer = _prepared(keras.ops, update, kind)(**given)

    def reset(self):
        """At the beginning again."""
        self._taken = 0
        for _, variables in self._kept():
            for variable in variables:
                variable.assign(np.zeros(variable.shape, np.float32))
        if self._update.rule != "sgd":
            self.optimizer.iterations.assign(0)

    def before(self):
        """A step takes the rate that is set."""
        if self._job.rates is not None:
            self.optimizer.learning_rate = self._job.rate(self._taken)
            self._taken += 1

    def states(self):
        """(state, variables in the order of the model's) of what is kept; and by what the values are divided:
        Keras keeps -rate * velocity, which comes to the same while the rate stays."""
        factor = 1
        if self._is_own and self._update.rule == "sgd":
            factor = -1 if self._update.inside else -self._job.optimizer["learning_rate"]
        return self._kept(), factor

    def _kept(self):
        return [(ours, getattr(self.optimizer, self._names[ours])) for ours in self._update.states]


def _whole(gradient):
    """Of a table TensorFlow gives the rows that were read, with which it does no arithmetic."""
    if hasattr(gradient, "dense_shape"):
        import tensorflow as tf

        return tf.convert_to_tensor(gradient)
    return gradient


def _prepared(ops, update, kind):
    """The same optimizer with a decay that is part of the gradient, behind the clipping: that of Keras is
    apart from it. And with whole gradients of tables: of a row that was read twice Keras 3.15 would square
    either part by itself, so its Adam is another one there."""
    decays = update.numbers["weight_decay"] and not update.is_decoupled
    if not decays and update.clip_norm is None and update.rule == "sgd":
        return kind

    class Prepared(type(kind(0.1))):  # the backend may have a class of its own for it
        def apply(self, grads, trainable_variables=None):
            variables = trainable_variables or self._trainable_variables
            grads = [_whole(one) for one in grads]
            if update.clip_norm is not None:
                norm = ops.sqrt(sum(ops.sum(ops.square(one)) for one in grads))
                grads = [one * (update.clip_norm / ops.maximum(norm, update.clip_norm)) for one in grads]
            if decays:
                grads = [
                    update.decayed(one, ops.convert_to_tensor(variable))
                    for one, variable in zip(grads, variables)
                ]
            super().apply(grads, trainable_variables)

    return Prepared


def _formula(keras, update):
    """As one writes them for Keras."""

    class Formula(keras.optimizers.Optimizer):
        def build(self, variables):
            if self.built:
                return
            super().build(variables)
            for state in update.states:
                made = [self.add_variable_from_reference(one, name=state) for one in variables]
                setattr(self, state, made)

        def update_step(self, gradient, variable, learning_rate):
            rate = keras.ops.cast(learning_rate, variable.dtype)
            gradient = _whole(gradient)
            kept = {
                state: getattr(self, state)[self._get_variable_index(variable)] for state in update.states
            }
            change, after = update.step(gradient, kept, rate)
            if update.is_decoupled:
                change = change + rate * update.numbers["weight_decay"] * variable
            for state, value in after.items():
                self.assign(kept[state], value)
            self.assign_sub(variable, change)

    return Formula
