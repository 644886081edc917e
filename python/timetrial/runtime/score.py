"""Accuracy and loss of predictions over a test set. Syntax and modules of Python 3.6."""

import numpy as np


class Score(object):
    """Sums over samples in double precision. The first of equal predictions counts as the answer."""

    def __init__(self, loss_kind):
        self._loss_kind = loss_kind
        self.samples = 0
        self._right = 0
        self._loss = 0.0

    def add(self, predictions, labels):
        """predictions (n, classes), labels (n). A row with a NaN counts as wrong."""
        wide = predictions.astype(np.float64)
        rows = np.arange(len(labels))
        finite = ~np.isnan(wide).any(axis=1)
        self._right += int(np.count_nonzero((wide.argmax(axis=1) == labels) & finite))
        if self._loss_kind == "squared_error":
            wide[rows, labels] -= 1.0
            self._loss += float(np.square(wide).mean(axis=1).sum())
        else:
            top = wide.max(axis=1)
            self._loss += float(
                (np.log(np.exp(wide - top[:, None]).sum(axis=1)) + top - wide[rows, labels]).sum()
            )
        self.samples += len(labels)

    def result(self):
        """The fields of the event `done`."""
        return {
            "accuracy": self._right / float(self.samples),
            "loss": self._loss / self.samples,
            "samples": self.samples,
        }
