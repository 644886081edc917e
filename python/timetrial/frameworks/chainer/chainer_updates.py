"""Chainer's optimizers where they have the job's formula, and one of our own where they have another one."""

import numpy as np
from timetrial_updates import Update

# Rule -> (what makes Chainer's optimizer, what it calls the rate, what it calls what it keeps). Its Nesterov
# takes the velocity behind the step where the job's takes the one before, its AdaDelta has no rate.
RULES = {
    "sgd": (lambda all_, n: all_.MomentumSGD(n["learning_rate"], n["momentum"]), "lr", {"velocity": "v"}),
    "adam": (
        lambda all_, n: all_.Adam(n["learning_rate"], n["beta1"], n["beta2"], n["epsilon"]),
        "alpha",
        {"first_moment": "m", "second_moment": "v"},
    ),
    "rmsprop": (
        lambda all_, n: all_.RMSprop(n["learning_rate"], n["rho"], n["epsilon"]),
        "lr",
        {"second_moment": "ms"},
    ),
    "adagrad": (
        lambda all_, n: all_.AdaGrad(n["learning_rate"], n["epsilon"]),
        "lr",
        {"squared_sum": "h"},
    ),
}
RULES["adamw"] = RULES["adam"]


class Updates(object):
    """The optimizer of a job, for the parameters of a chain."""

    def __init__(self, chainer, job, chain):
        self._job, self._update = job, Update(job, np.sqrt)
        n = self._update.numbers
        self._is_own = _has_it(self._update, job) and self._update.rule in RULES
        if self._is_own:
            make, self._rate, self._names = RULES[self._update.rule]
            self.optimizer = make(chainer.optimizers, n)
        else:
            self.optimizer = _formula(chainer, self._update)
            self._names = {state: state for state in self._update.states}
        self.optimizer.setup(chain)
        if self._update.clip_norm is not None:
            self.optimizer.add_hook(chainer.optimizer_hooks.GradientClipping(self._update.clip_norm))
        if n["weight_decay"] and not self._update.is_decoupled:
            self.optimizer.add_hook(chainer.optimizer_hooks.WeightDecay(n["weight_decay"]))
        if self._is_own:
            self._set_sizes(0)
        self._changes = self._is_own and job.rates is not None

    def step(self):
        """Of every parameter."""
        if self._changes:
            self._set_sizes(self.optimizer.t)
        self.optimizer.update()

    def states(self, named):
        """What is kept of the parameters, by the job's names."""
        found = {
            "{}.{}".format(name, ours): np.array(parameter.update_rule.state[theirs])
            for name, parameter in named.items()
            for ours, theirs in self._names.items()
            if parameter.update_rule.state
        }
        if not self._is_own or self._update.rule != "sgd":
            return found
        # Chainer keeps -rate * velocity, which comes to the same while the rate stays.
        factor = -1 if self._update.inside else -self.optimizer.lr
        return {name: array / factor for name, array in found.items()}

    def _set_sizes(self, step):
        setattr(self.optimizer.hyperparam, self._rate, self._job.rate(step))
        if self._update.rule == "adamw":
            self.optimizer.hyperparam.weight_decay_rate = self._update.sizes(step)[1]


def _has_it(update, job):
    """Whether Chainer's optimizer of the rule's name has the options: its velocity has the rate inside."""
    if update.rule != "sgd":
        return True
    return (
        not update.is_decoupled and "nesterov" not in update.numbers and (update.inside or job.rates is None)
    )


def _formula(chainer, update):
    """An optimizer of the job's formula, as one writes them for Chainer; a decay of gradients is a hook's."""

    class Rule(chainer.optimizer.UpdateRule):
        def init_state(self, param):
            for state in update.states:
                self.state[state] = np.zeros_like(param.data)

        def update_core_cpu(self, param):
            rate, shrink = update.sizes(self.t - 1)
            change, after = update.step(param.grad, self.state, rate)
            if update.is_decoupled:
                change = change + shrink * param.data
            param.data -= change
            self.state.update(after)

    class Formula(chainer.optimizer.GradientMethod):
        def create_update_rule(self):
            return Rule(self.hyperparam)

    return Formula()
