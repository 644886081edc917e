from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timetrial.cases.grammar import keyword_overrides, parse_words, to_word
from timetrial.errors import InputError


@pytest.mark.parametrize(
    ("word", "values"),
    [
        ("threads=1,2", [1, 2]),
        ("threads=1,1", [1, 1]),
        ("affinity=0-1", ["0-1"]),
        ("affinity=0+2,0-1", ["0+2", "0-1"]),
        ("rate=0.05,1e-3", [0.05, 1e-3]),
        ("axis=true,false", [True, False]),
        ("axis=[1, 2]", [1, 2]),
        ("axis= a , b ", ["a", "b"]),
        ("backend=/a/b=c.so", ["/a/b=c.so"]),
    ],
)
def test_values(word: str, values: list[Any]) -> None:
    source, overrides = parse_words([word])
    assert source is None
    assert overrides == {word.partition("=")[0]: values}


def test_the_word_without_equals_is_the_experiment() -> None:
    assert parse_words(["threads=1", "blas-look", "seed=3"]) == ("blas-look", {"threads": [1], "seed": [3]})


def test_tables_are_flattened() -> None:
    _, overrides = parse_words(['optimizer={name = "sgd", learning_rate = 0.1}'])
    assert overrides == {"optimizer.name": ["sgd"], "optimizer.learning_rate": [0.1]}


def test_python_keywords_mean_the_same() -> None:
    keywords = keyword_overrides({"threads": [1, 2], "optimizer": {"learning_rate": 0.1}})
    assert keywords == {"threads": [1, 2], "optimizer.learning_rate": [0.1]}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a", "b"], "Two experiments: 'a' and 'b'"),
        (["threads=" + "9" * 5000], r"'9{40}' \(5000 characters\) is larger than any number"),
        (["optimizer.momentum=1e999"], "'1e999' .* is larger than any number can be"),
        (["axis=" + "[" * 3000], "nested too deeply"),
        (["=3"], "no key before '='"),
        (["threads=1", "threads=2"], "'threads' is given twice"),
        (["threads=1,,2"], "empty value"),
        (["threads="], "empty value"),
        (["threads=[1, 2"], "is not TOML"),
    ],
)
def test_says_no(words: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_words(words)


@given(
    st.lists(
        st.one_of(
            st.integers(-(10**9), 10**9),
            st.booleans(),
            st.from_regex(r"[a-z][a-z0-9+.:/_-]{0,12}", fullmatch=True).filter(
                lambda w: w not in ("true", "false")
            ),
        ),
        min_size=1,
    )
)
def test_a_written_word_reads_the_same(values: list[Any]) -> None:
    assert parse_words([to_word("key", values)]) == (None, {"key": values})


def test_a_backend_may_go_by_the_name_that_is_imported() -> None:
    from timetrial.experiment.experiment import load_words

    experiment = load_words(["network=mlp", "backend=torch,tf@2.21.0,torch7", "reference=torch"])
    backends = [one.case.backend for one in experiment.cases]
    assert backends == ["pytorch", "tensorflow@2.21.0", "torch7"]
    assert experiment.spec.measure.reference == {"backend": "pytorch"}
