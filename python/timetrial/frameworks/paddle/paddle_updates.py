"""Paddle's optimizers, where they have the job's formula; its RMSProp has the epsilon inside the root, and
its velocity never has the rate inside."""

from timetrial_updates import Update


def _sgd(all_, rate, n, common):
    if not n["momentum"]:
        return all_.SGD(rate, **common)
    return all_.Momentum(rate, n["momentum"], use_nesterov="nesterov" in n, **common)


def _adam(all_, rate, n, common):
    return all_.Adam(rate, n["beta1"], n["beta2"], n["epsilon"], **common)


def _adagrad(all_, rate, n, common):
    return all_.Adagrad(rate, n["epsilon"], **common)


def _adadelta(all_, rate, n, common):
    return all_.Adadelta(rate, n["epsilon"], n["rho"], **common)


_MOMENTS = {"first_moment": "moment1", "second_moment": "moment2"}
_SQUARES = {"second_moment": "_avg_squared_grad", "squared_update": "_avg_squared_update"}
# Rule -> (what makes the optimizer, what it calls what it keeps).
RULES = {
    "sgd": (_sgd, {"velocity": "velocity"}),
    "adam": (_adam, _MOMENTS),
    "adamw": (_adam, _MOMENTS),
    "adagrad": (_adagrad, {"squared_sum": "moment"}),
    "adadelta": (_adadelta, _SQUARES),
}
OPTIMIZERS = (*RULES, "nesterov", "decoupled", "schedule", "clip_norm")
# Adam multiplies rate and epsilon by what follows from these powers of its betas. They are kept at 0, where
# it does neither, and the rate comes corrected: so the epsilon is that of the job's formula.
POWERS = ("beta1_pow_acc", "beta2_pow_acc")


class Updates(object):
    """The optimizer of a job, for a list of parameters, or None for a static program.

    rate: a number, or Paddle's scheduler of it. keep: what a decoupled decay leaves of a weight.
    """

    def __init__(self, paddle, job, parameters):
        self._update = update = Update(job)
        make, names = RULES[update.rule]
        self.names = {ours: theirs for ours, theirs in names.items() if ours in update.states}
        self.has_powers = "beta1" in update.numbers
        self.decouples = update.is_decoupled
        self.rate = update.numbers["learning_rate"]
        if update.changes:
            self.rate = paddle.optimizer.lr.LambdaDecay(1.0, lambda step: update.sizes(step)[0])
        common = {"parameters": parameters, "weight_decay": update.numbers["weight_decay"] or None}
        if update.is_decoupled:
            common["weight_decay"] = None
        if update.clip_norm is not None:
            common["grad_clip"] = paddle.nn.ClipGradByGlobalNorm(update.clip_norm)
        self.optimizer = make(paddle.optimizer, self.rate, update.numbers, common)
        if self.has_powers and parameters is not None:
            block = paddle.base.framework.default_main_program().global_block()
            self.optimizer._create_accumulators(block, parameters)
            for power in POWERS:
                for value in self.optimizer._accumulators[power].values():
                    value.zero_()
        self.reset()

    def reset(self):
        """At the beginning again."""
        self.taken = 0
        if self._update.changes:
            self.rate.step(0)

    def advance(self):
        """Behind a step."""
        self.taken += 1
        if self._update.changes:
            self.rate.step()

    def keep(self):
        """What a decoupled decay leaves of a weight in the next step."""
        return 1 - self._update.sizes(self.taken)[1]
