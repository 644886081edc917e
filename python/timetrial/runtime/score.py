"""Accuracy and loss of predictions over a test set. Syntax and modules of Python 3.6."""

import numpy as np


def answers_of(predictions):
    """The class that each row of predictions (n, classes) is for, the first of equals; -1: one is NaN."""
    return np.where(np.isnan(predictions).any(axis=1), -1, predictions.argmax(axis=1)).astype(np.int64)


class Score(object):
    """Sums in double precision over rows that count: samples, or their steps. The first of equal predictions
    counts as the answer."""

    def __init__(self, loss_kind):
        self._loss_kind = loss_kind
        self.samples = 0
        self._right = 0
        self._loss = 0.0

    def add(self, predictions, labels):
        """predictions (n, classes); labels (n), -1 where a row does not count. A NaN counts as wrong."""
        counted = labels >= 0
        labels, wide = labels[counted], predictions[counted].astype(np.float64)
        rows = np.arange(len(labels))
        self._right += int(np.count_nonzero(answers_of(wide) == labels))
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
