"""Small networks of the families that images are trained with, judged as the large ones are: by the judge of
large networks, on few different images, one decision after the other. Each defect is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from native_twin import NativeTwin
from twins import Bench

from timetrial.proof import judge, parts
from timetrial.records.model import Parity

pytestmark = pytest.mark.attempt


def layer(name: str, kind: str, *inputs: str, **attributes: Any) -> str:
    """A node of a file."""

    def word(value: Any) -> str:
        return str(value).lower() if isinstance(value, bool) else repr(value).replace("'", '"')

    lines = ["[[nodes]]", f'name = "{name}"', f'kind = "{kind}"']
    if inputs:
        lines.append(f"inputs = {list(inputs)}")
    if attributes:
        lines.append(
            f"attributes = {{ {', '.join(f'{key} = {word(one)}' for key, one in attributes.items())} }}"
        )
    return "\n".join(lines)


def convolution(
    number: int, channels: int, kernel: int = 3, rectifier: str = "relu", **more: Any
) -> list[str]:
    """Normalized, and rectified."""
    return [
        layer(
            f"conv{number}",
            "conv2d",
            channels=channels,
            kernel=kernel,
            padding=kernel // 2,
            bias=False,
            **more,
        ),
        layer(f"norm{number}", "batch_norm"),
        *([layer(f"relu{number}", rectifier)] if rectifier else []),
    ]


def head(*behind: str) -> list[str]:
    """The classes."""
    return [
        *behind,
        layer("classes", "dense", units="classes"),
        layer("loss", "softmax_cross_entropy", "classes", "labels"),
    ]


FAMILIES = {
    # Depthwise convolutions between narrow ones, relu6, and a sum around them; what reads a normalized value
    # has means of 0.
    "mobilenet": [
        *convolution(1, 6, stride=2, rectifier="relu6"),
        *convolution(2, 12, kernel=1, rectifier="relu6"),
        *convolution(3, 12, groups=12, rectifier="relu6"),
        *convolution(4, 6, kernel=1, rectifier=""),
        *convolution(6, 12, kernel=1, rectifier="relu6"),
        *convolution(7, 6, kernel=1, rectifier=""),
        layer("sum", "add", "norm4", "norm7"),
        *convolution(5, 8, stride=2, rectifier="relu6"),
        *head(layer("mean", "global_avg_pool2d")),
    ],
    "vgg": [
        *convolution(1, 6, stride=2),
        layer("pool1", "max_pool2d", kernel=2),
        *convolution(2, 8),
        *convolution(3, 8),
        layer("pool2", "max_pool2d", kernel=2),
        *head(layer("flat", "flatten")),
    ],
    "alexnet": [
        layer("conv1", "conv2d", channels=8, kernel=5, stride=2, padding=2),
        layer("relu1", "relu"),
        layer("lrn1", "local_response_norm", size=3, alpha=0.3, k=2),
        layer("pool1", "max_pool2d", kernel=2),
        layer("conv2", "conv2d", channels=8, kernel=3, padding=1, groups=2),
        layer("relu2", "relu"),
        layer("pool2", "max_pool2d", kernel=2),
        layer("flat", "flatten"),
        layer("drop", "dropout", rate=0.5),
        layer("fc1", "dense", units=16),
        *head(layer("relu3", "relu")),
    ],
    "deep": [
        *(
            text
            for number in range(1, 8)
            for text in (
                layer(f"conv{number}", "conv2d", channels=6, kernel=3, padding=1, stride=1 + (number == 1)),
                layer(f"relu{number}", "relu"),
            )
        ),
        *head(layer("pool", "max_pool2d", kernel=4), layer("flat", "flatten")),
    ],
}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("families")


@pytest.fixture(autouse=True)
def as_large_ones(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIMETRIAL_CACHE", str(cache / "cache"))
    monkeypatch.setattr(judge, "REFERENCE_LIMIT", 0)
    monkeypatch.setattr(judge, "allowed_cpus", lambda: {0})  # small layers: threads would wait for each other
    monkeypatch.setattr(parts, "COUPLED_LIMIT", 1)
    monkeypatch.setattr(parts, "PART_LIMIT", 1)


def bench(cache: Path, family: str) -> Bench:
    path = cache / f"{family}.toml"
    path.write_text("\n".join(FAMILIES[family]))
    return Bench.of(str(path), "synthetic-cifar", batch_size=12, learning_rate=0.05, weight_decay=5e-4)


def seen(parity: Parity) -> str:
    return f"{parity.status}: {parity.reason} {parity.turned}"


@pytest.mark.parametrize("family", FAMILIES)
def test_right_ones_pass(cache: Path, family: str) -> None:
    parity = bench(cache, family).proof_of(lambda prepared: NativeTwin(prepared, "train", "eigen"))
    assert parity.status == "passed", seen(parity)
    assert parity.judge == "cblas (f64)"


@pytest.mark.parametrize(
    ("family", "defect", "tensor"),
    [
        ("mobilenet", "norm_gradient", "gradient conv5.weight"),
        ("vgg", "zero_gradient_through_pool", "gradient"),
        ("alexnet", "shuffled_groups", "activation conv2"),
        ("deep", "stale_weight:conv3", "step 2"),
        *(
            pytest.param(*others, marks=pytest.mark.full)
            for others in (
                ("mobilenet", "stale_weight:conv3", "step 2"),
                ("mobilenet", "forgotten_part", "gradient"),
                ("mobilenet", "unbiased_running", "running_var"),
                ("vgg", "norm_gradient", "gradient conv3.weight"),
                ("vgg", "stale_weight:conv3", "step 2"),
                ("vgg", "half_batch", "loss"),
                ("alexnet", "lrn_whole_alpha", "activation lrn1"),
                ("alexnet", "mask_forward_only", "gradient"),
                ("alexnet", "zero_gradient_through_pool", "gradient"),
                ("deep", "missing_bias", "gradient conv1.bias"),
                ("deep", "reduced_precision", "activation conv1"),
                ("deep", "half_batch", "loss"),
            )
        ),
    ],
)
def test_a_defect_is_refused(cache: Path, family: str, defect: str, tensor: str) -> None:
    parity = bench(cache, family).proof(defect)
    assert parity.status == "failed", seen(parity)
    assert tensor in (parity.tensor or ""), seen(parity)
