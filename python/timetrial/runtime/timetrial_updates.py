"""The rules of optimizers in operators that arrays and symbols of every framework have: for adapters of
frameworks without an operation of the same formula. timetrial/optimizers/rules.py has the same with their
sources. Syntax and modules of Python 3.6.
"""

import math


def _sgd(n, g, kept, rate, _):
    if not n["momentum"]:
        return rate * g, {}
    inside, ahead = "rate_inside" in n, "nesterov" in n
    fresh = rate * g if inside else g
    velocity = n["momentum"] * kept["velocity"] + fresh
    way = fresh + n["momentum"] * velocity if ahead else velocity
    return way if inside else rate * way, {"velocity": velocity}


def _adam(n, g, kept, rate, sqrt):
    first = n["beta1"] * kept["first_moment"] + n["1 - beta1"] * g
    second = n["beta2"] * kept["second_moment"] + n["1 - beta2"] * g * g
    return rate * first / (sqrt(second) + n["epsilon"]), {"first_moment": first, "second_moment": second}


def _rmsprop(n, g, kept, rate, sqrt):
    square = n["rho"] * kept["second_moment"] + n["1 - rho"] * g * g
    return rate * g / (sqrt(square) + n["epsilon"]), {"second_moment": square}


def _adagrad(n, g, kept, rate, sqrt):
    square = kept["squared_sum"] + g * g
    return rate * g / (sqrt(square) + n["epsilon"]), {"squared_sum": square}


def _adadelta(n, g, kept, rate, sqrt):
    square = n["rho"] * kept["second_moment"] + n["1 - rho"] * g * g
    move = sqrt(kept["squared_update"] + n["epsilon"]) / sqrt(square + n["epsilon"]) * g
    moved = n["rho"] * kept["squared_update"] + n["1 - rho"] * move * move
    return rate * move, {"second_moment": square, "squared_update": moved}


# Rule -> (what it keeps of a parameter, its step).
_RULES = {
    "sgd": (("velocity",), _sgd),
    "adam": (("first_moment", "second_moment"), _adam),
    "adamw": (("first_moment", "second_moment"), _adam),
    "rmsprop": (("second_moment",), _rmsprop),
    "adagrad": (("squared_sum",), _adagrad),
    "adadelta": (("second_moment", "squared_update"), _adadelta),
}
# What `optimizers` of an adapter says that computes by Update, or by operations of the same formulas.
OPTIMIZERS = (*_RULES, "nesterov", "decoupled", "rate_inside", "schedule", "clip_norm")


class Update(object):
    """The optimizer of a job. `sqrt`: of a tensor; `number`: the type that the rule's numbers are to have.

    rule, states: its name, and the names of what it keeps of a parameter. numbers: its keys, and the flags
    that are on. changes: whether sizes() differ from step to step. is_decoupled: whether the decay is taken
    from the weight itself. inside: whether the velocity has the rate in it. clip_norm: None where nothing is
    clipped.
    """

    def __init__(self, job, sqrt=None, number=float):
        given = job.optimizer
        self._job, self._sqrt, self.rule = job, sqrt, given["name"]
        self.states, self._rule = _RULES[self.rule]
        if self.rule == "sgd" and not given["momentum"]:
            self.states = ()
        self.is_decoupled = self.rule == "adamw" or "decoupled" in given
        self.inside = "rate_inside" in given
        self.changes = job.rates is not None or "beta1" in given
        self.clip_norm = number(given["clip_norm"]) if "clip_norm" in given else None
        keys = [key for key, value in given.items() if type(value) in (int, float)]
        self.numbers = {key: number(given[key]) for key in keys}
        for key in ("beta1", "beta2", "rho"):
            if key in given:
                self.numbers["1 - " + key] = number(1 - given[key])
        self.numbers.update((flag, True) for flag in ("nesterov", "rate_inside") if flag in given)

    def sizes(self, step):
        """Of the step behind so many since reset(): its rate, with Adam's bias corrections in it, and what
        part of the weight a decoupled decay takes."""
        given, rate = self._job.optimizer, self._job.rate(step)
        shrink = rate * given["weight_decay"] if self.is_decoupled else 0.0
        if "beta1" in given:
            rate *= math.sqrt(1 - given["beta2"] ** (step + 1)) / (1 - given["beta1"] ** (step + 1))
        return rate, shrink

    def decayed(self, gradient, weight):
        """The gradient with the decay that goes through the rule."""
        decay = self.numbers["weight_decay"]
        return gradient if self.is_decoupled or not decay else gradient + decay * weight

    def step(self, gradient, kept, rate):
        """(What is taken from the weight, what is then kept by name), of the clipped and decayed gradient,
        what is kept so far, and the rate of sizes()."""
        return self._rule(self.numbers, gradient, kept, rate, self._sqrt)
