"""MXNet's optimizers where they have the job's formula, and one of our own where they have another one: its
RMSProp and AdaGrad have the epsilon inside the root, its AdaDelta has no rate, its NAG is not the same in all
versions."""

from timetrial_updates import Update


class Updates(object):
    """The optimizer of a job. `optimizer`: for a trainer or an updater, new after every reset()."""

    def __init__(self, mx, job):
        self._mx, self._job, self._update = mx, job, Update(job, mx.nd.sqrt)
        self._is_own = _has_it(self._update, job)
        self._sets_rate = self._is_own and job.rates is not None

    def reset(self):
        """At the beginning again."""
        self._taken = 0
        make = _own if self._is_own else _formula
        self.optimizer = make(self._mx, self._update)

    def before(self, gradients):
        """What a step needs that no optimizer does for a parameter alone."""
        if self._sets_rate:
            self.optimizer.set_learning_rate(self._job.rate(self._taken))
            self._taken += 1
        if self._update.clip_norm is not None:
            self._mx.gluon.utils.clip_global_norm(list(gradients.values()), self._update.clip_norm)

    def states(self, name, kept):
        """What is kept of a parameter, by the job's names."""
        if not self._is_own:
            return {"{}.{}".format(name, state): array.asnumpy() for state, array in kept.items()}
        if self._update.rule == "sgd":
            # MXNet keeps -rate * velocity, which comes to the same while the rate stays.
            factor = -1 if self._update.inside else -self._job.optimizer["learning_rate"]
            return {name + ".velocity": kept.asnumpy() / factor}
        return {"{}.{}".format(name, ours): one.asnumpy() for ours, one in zip(self._update.states, kept)}


def _has_it(update, job):
    """Whether MXNet's optimizer of the rule's name has the options: its velocity has the rate inside."""
    if update.rule == "adam":
        return True
    plain = not update.is_decoupled and "nesterov" not in update.numbers
    return update.rule == "sgd" and plain and (update.inside or job.rates is None)


def _own(mx, update):
    n = update.numbers
    given = {"learning_rate": n["learning_rate"], "wd": n["weight_decay"]}
    if update.rule == "sgd":
        return mx.optimizer.create("sgd", momentum=n["momentum"], **given)
    betas = {"beta1": n["beta1"], "beta2": n["beta2"]}
    return mx.optimizer.create("adam", epsilon=n["epsilon"], **betas, **given)


def _formula(mx, update):
    """As one writes them for MXNet."""

    class Formula(mx.optimizer.Optimizer):
        def create_state(self, index, weight):
            return {state: mx.nd.zeros(weight.shape) for state in update.states}

        def update(self, index, weight, grad, state):
            self._update_count(index)
            rate, shrink = update.sizes(self._index_update_count[index] - 1)
            change, after = update.step(update.decayed(grad, weight), state, rate)
            if update.is_decoupled:
                change = change + shrink * weight
            weight -= change
            for name, value in after.items():
                state[name][:] = value

    return Formula()
