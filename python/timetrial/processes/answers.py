"""What a contender predicted for each test sample, or each of its steps: scored again by the parent, and kept
beside the record."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import numpy.typing as npt

from timetrial import npy
from timetrial.cautions import Caution
from timetrial.processes.events import broken
from timetrial.processes.left import read_array
from timetrial.processes.outcome import LaunchError
from timetrial.records.model import Evaluation
from timetrial.statistics.accuracy import most_untrained


def answers_of(file: Path, labels: Path, said: Evaluation, classes: int) -> npt.NDArray[np.int32]:
    """Predicted and true class of every test image (2, images), or every step with a label (2, steps); -1
    where a prediction is not a number.

    `file`: predictions (images, classes) that the contender has written, or the classes that they are for
    (sequences, steps). LaunchError: there are none, or the accuracy that it said does not follow from them.
    """
    truth = npy.load(labels)
    of_steps = truth.ndim > 1
    expected = truth.shape if of_steps else (len(truth), classes)
    predictions = read_array(file, 8 * math.prod(expected))
    if predictions.shape != expected or (of_steps and predictions.dtype != np.int64):
        numbers = (f" of {predictions.dtype}", " of int64") if of_steps else ("", "")
        raise broken(
            f"its predictions have the shape {predictions.shape}{numbers[0]}; expected {expected}{numbers[1]}"
        )
    if of_steps:
        outside = (predictions < -1) | (predictions >= classes)
        if outside.any():
            raise broken(
                f"its predictions have the class {predictions[outside][0]}; expected -1 to {classes - 1}"
            )
        answers, truth = predictions[truth >= 0], truth[truth >= 0]
    else:
        answers = np.where(np.isnan(predictions).any(axis=1), -1, predictions.argmax(axis=1))
    what = "steps" if of_steps else "images"
    right = int(np.count_nonzero(answers == truth))
    if right != round(said.accuracy * said.samples) or said.samples != len(truth):
        raise LaunchError(
            "wrong",
            f"the contender says that {said.accuracy:.4%} of {said.samples} test {what} are right; its "
            f"predictions are for {right} of {len(truth)}",
        )
    return np.stack([answers, truth]).astype(np.int32)


def beyond_chance(accuracy: float, truth: npt.NDArray[np.int32]) -> list[str]:
    """What to say of initial weights that answer better than untrained ones do."""
    counts = np.bincount(truth)
    most = most_untrained(float(counts.max() / len(truth)), int(np.count_nonzero(counts)), len(truth))
    if accuracy <= most:
        return []
    return [Caution.NOT_UNTRAINED.words(percent=f"{100 * accuracy:.1f}", most=f"{100 * most:.0f}")]
