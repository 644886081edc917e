"""What is found in samples: classes, what comes twice, what is tested on and trained on."""

from __future__ import annotations

import numpy as np
import pytest

from timetrial.dataset_files.dataset import image_dataset
from timetrial.datasets import DATASETS, Dataset, known_datasets, load_dataset
from timetrial.datasets.facts import facts_of
from timetrial.report.datasets import facts_in_words


def images(*levels: float) -> np.ndarray:
    return np.stack([np.full((1, 4, 4), level, np.float32) for level in levels])


def small(train: tuple[float, ...], test: tuple[float, ...], labels: list[int], tested: list[int]) -> Dataset:
    return image_dataset(
        "small", (images(*train), np.array(labels)), (images(*test), np.array(tested)), 3, {}
    )


def test_every_loader_has_a_table_and_every_table_a_loader() -> None:
    assert list(known_datasets()) == list(DATASETS)


def test_what_is_clean() -> None:
    facts = facts_of(small((0.1, 0.2, 0.3), (0.4,), [0, 1, 2], [1]))
    assert facts == {
        "train": {"samples": 3, "duplicates": 0, "classes": [1, 1, 1]},
        "test": {"samples": 1, "duplicates": 0, "classes": [0, 1, 0]},
        "test_in_train": 0,
    }


@pytest.mark.attempt
def test_what_comes_twice_and_what_is_trained_and_tested_on() -> None:
    facts = facts_of(small((0.1, 0.2, 0.1, 0.1), (0.2, 0.1, 0.5, 0.5), [0, 0, 0, 1], [0, 0, 1, 1]))
    assert facts["train"]["duplicates"] == 2
    assert facts["test"]["duplicates"] == 1
    assert facts["test_in_train"] == 2
    said = facts_in_words(facts)
    assert said["samples that come twice"] == "2 of 4 to train on and 1 of 4 to test on"
    assert said["test samples that are trained on"] == "2 of 4"
    assert said["samples of a class"] == "0 to 3 to train on and 0 to 2 to test on"
    assert said["classes without a sample to train on"] == "2"


def test_without_labels_there_are_no_classes() -> None:
    facts = facts_of(load_dataset("synthetic-regression"))
    assert "classes" not in facts["train"]
    assert facts["test_in_train"] == 0
    assert "samples of a class" not in facts_in_words(facts)


def test_a_record_that_has_none() -> None:
    assert facts_in_words({}) == {}
