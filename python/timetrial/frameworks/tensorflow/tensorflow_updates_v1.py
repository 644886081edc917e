"""TensorFlow 1's optimizers where they have the job's formula; else operations of the same graph: its RMSProp
has the epsilon inside the root, its Adagrad none, and Adadelta in 1.4 steps by the state behind the step."""

from timetrial_updates import Update


def _sgd(train, rate, n):
    if not n["momentum"]:
        return train.GradientDescentOptimizer(rate)
    return train.MomentumOptimizer(rate, n["momentum"], use_nesterov="nesterov" in n)


def _adam(train, rate, n):
    return train.AdamOptimizer(rate, n["beta1"], n["beta2"], n["epsilon"])


_MOMENTS = {"first_moment": "m", "second_moment": "v"}
# Rule -> (what makes the optimizer, what it calls what it keeps).
RULES = {
    "sgd": (_sgd, {"velocity": "momentum"}),
    "adam": (_adam, _MOMENTS),
    "adamw": (_adam, _MOMENTS),
}


class Updates(object):
    """The optimizer of a job, as part of a graph. taken: the steps since the beginning."""

    def __init__(self, tf, job):
        self._tf, self._job, self._update = tf, job, Update(job, tf.sqrt)
        self.taken = 0
        self._changes = job.rates is not None
        self._rate, self._shrink = job.rate(0), job.rate(0) * job.optimizer["weight_decay"]
        self._is_own = self._update.rule in RULES and not self._update.inside
        if self._changes:
            self._rate, self._shrink = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])

    def of(self, weights, gradients):
        """The operation that updates all weights."""
        tf, update = self._tf, self._update
        if update.clip_norm is not None:
            found, _ = tf.clip_by_global_norm(list(gradients.values()), update.clip_norm)
            gradients = dict(zip(gradients, found))
        gradients = {name: update.decayed(gradients[name], weights[name]) for name in weights}
        if not self._is_own:
            return self._formula(weights, gradients)
        make, names = RULES[update.rule]
        self._optimizer, self._names = make(tf.train, self._rate, update.numbers), names
        before = []
        if update.is_decoupled:
            with tf.control_dependencies(list(gradients.values())):
                before = [tf.assign_sub(weight, self._shrink * weight) for weight in weights.values()]
        with tf.control_dependencies(before):
            pairs = [
                (tf.identity(gradients[name]) if before else gradients[name], weights[name])
                for name in weights
            ]
            return self._optimizer.apply_gradients(pairs)

    def sizes(self):
        """What the next step is given."""
        if not self._changes:
            return {}
        rate = self._job.rate(self.taken)  # Adam corrects it itself
        self.taken += 1
        return {self._rate: rate, self._shrink: rate * self._job.optimizer["weight_decay"]}

    def kept(self, weights):
        """State -> weight -> variable."""
        return {
            state: {name: self._variable_of(name, weight, state) for name, weight in weights.items()}
            for state in self._update.states
        }

    def _variable_of(self, name, weight, state):
        if self._is_own:
            return self._optimizer.get_slot(weight, self._names[state])
        return self._kept[name][state]

    def _formula(self, weights, gradients):
        """All new values first, then all assignments."""
        tf, update = self._tf, self._update
        self._kept = {
            name: {state: tf.Variable(tf.zeros(weight.shape)) for state in update.states}
            for name, weight in weights.items()
        }
        found = []
        for name, weight in weights.items():
            change, after = update.step(gradients[name], self._kept[name], self._rate)
            if update.is_decoupled:
                change = change + self._shrink * weight
            found += [(weight, weight - change)]
            found += [(self._kept[name][state], value) for state, value in after.items()]
        with tf.control_dependencies([value for _, value in found]):
            return tf.group(*[tf.assign(variable, value) for variable, value in found])
