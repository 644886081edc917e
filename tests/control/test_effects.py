"""Settings that change what is computed: seen in the numbers, whatever a getter says.

Of the others the tests lie beside their judges. Each is marked `effect`, and test_settings_table.py looks
that no setting is without.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import gradients
import numpy as np
import pytest
from fake_cblas import fake_cblas
from gradients import SGD, gradient, network
from launching import make_plan, words

from timetrial.core import Backend, BackendError, Network, images_and_labels
from timetrial.core.cpu import cpu_flags
from timetrial.core.native import native_dir
from timetrial.errors import Unavailable
from timetrial.launch import run_launch


@pytest.mark.effect("convolution")
def test_an_algorithm_has_bits_of_its_own() -> None:
    backend = "eigen-avx2" if "avx2" in cpu_flags() else "eigen-sse2"
    one, other = (gradient(backend, {"threads": "1", "convolution": word}) for word in ("im2col", "winograd"))
    np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)
    assert (one != other).any()


@pytest.mark.effect("recompute")
@pytest.mark.parametrize("backend", ["eigen-sse2", "onednn"])
def test_what_is_recomputed_is_not_kept_and_shown_as_it_was(backend: str) -> None:
    nodes: list[dict[str, Any]] = [
        {"name": "first", "kind": "conv2d", "attributes": {"channels": 8, "kernel": 1}},
        {"name": "norm", "kind": "batch_norm"},
        {"name": "relu", "kind": "relu6"},
        {"name": "last", "kind": "conv2d", "attributes": {"channels": 4, "kernel": 3}},
        {"name": "pool", "kind": "global_avg_pool2d"},
        {"name": "loss", "kind": "softmax_cross_entropy", "inputs": ["pool", "labels"]},
    ]
    net, shown, found = Network(nodes, 8, images_and_labels((4, 12, 12))), {}, {}
    for word in ("on", "off"):
        plugin = gradients.built(backend, net, {"threads": "1", "recompute": word})
        found[word], shown[word] = gradients.all_of(plugin), plugin.tensors("activation")
        np.testing.assert_array_equal(gradients.all_of(plugin), found[word])
        assert plugin.read_setting("recompute").effective == word
        assert ("recomputed" in plugin.facts()) == (word == "on")
    assert shown["off"].keys() == shown["on"].keys()
    for name, values in shown["off"].items():
        np.testing.assert_allclose(shown["on"][name], values, rtol=1e-5, atol=1e-6, err_msg=name)
    np.testing.assert_allclose(found["on"], found["off"], rtol=1e-4, atol=1e-5)
    plugin = gradients.built(backend, net, {"threads": "1", "recompute": "on"}, task="forward")
    with pytest.raises(Unavailable, match=r"nothing is recomputed here\. It can be in a task that learns"):
        plugin.read_setting("recompute")
    assert plugin.tensors("activation").keys() == shown["off"].keys()


@pytest.mark.effect("reference.ties")
def test_equal_maxima_share_a_gradient_or_do_not() -> None:
    """Pixels that are all the same: each window of the pooling has four maxima, but at the border."""
    one, other = (gradient("reference", {"reference.ties": word}, flat=True) for word in ("first", "all"))
    assert np.abs(one - other).max() > 1e-3 * np.abs(one).max()


@pytest.mark.effect("reference.rounding")
def test_gradients_are_off_by_what_rounding_would_do() -> None:
    """In proportion to it, by another part for each draw, and again by the same for the same."""
    plain, one, other, again = (
        gradient("reference", {"reference.rounding": word}) for word in ("0", "1", "2", "1")
    )
    size = np.linalg.norm(plain)
    assert 0 < np.linalg.norm(one - plain) < 2.0**-18 * size
    assert 0 < np.linalg.norm(other - one) < 2.0**-18 * size
    assert np.array_equal(one, again)


@pytest.mark.effect("null.fail_after")
@pytest.mark.effect("null.step_us")
def test_null_does_what_it_is_told() -> None:
    one = Backend(native_dir() / "backends" / "null.so")
    for name, value in {"null.fail": "throw", "null.fail_after": "3", "null.step_us": "2000"}.items():
        one.configure(name, value)
    net = network()
    one.build(net, {p["name"]: np.zeros(p["shape"], np.float32) for p in net.parameters}, SGD)
    batch = {"images": np.zeros((8, 4, 12, 12), np.float32), "labels": np.zeros(8, np.int64)}
    began = time.monotonic()
    for _ in range(3):
        one.step("train", batch)
    assert time.monotonic() - began > 0.006
    with pytest.raises(BackendError, match="an exception, as asked"):
        one.step("train", batch)


# It can be told once in a process.
@pytest.mark.effect("onednn.max_cpu_isa")
def test_an_isa_has_bits_of_its_own() -> None:
    if "avx2" not in cpu_flags():
        pytest.skip("machine: a CPU without AVX2")
    seen = set()
    for isa in ("sse41", "avx2"):
        script = [sys.executable, gradients.__file__, "onednn", "threads=1", f"onednn.max_cpu_isa={isa}"]
        done = subprocess.run(script, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        seen.add(done.stdout)
    assert len(seen) == 2


@pytest.mark.effect("isa")
def test_the_variant_is_the_file_that_the_kernel_has_mapped(tmp_path: Path) -> None:
    record = run_launch(make_plan(tmp_path / "launch", "eigen", settings={"isa": "sse2", "threads": "1"}))
    assert record.outcome == "ok", words(record)
    ours = {Path(one.path).name for one in record.libraries if one.kind == "backend" or "eigen" in one.path}
    assert ours == {"eigen-sse2.so"}


@pytest.mark.effect("parallel")
@pytest.mark.parametrize(("parallel", "working"), [("images", 2), ("product", 1)])
def test_what_threads_share(tmp_path: Path, parallel: str, working: int) -> None:
    """A library that has no threads: two work where they share images, and one where products have them."""
    settings = {"blas.library": fake_cblas(tmp_path), "threads": "2", "parallel": parallel}
    record = run_launch(make_plan(tmp_path / "launch", "cblas", settings=settings))
    assert record.outcome == ("ok" if working == 2 else "mismatch"), words(record)
    most = max(one.cpu_ns for one in record.threads)
    assert len([one for one in record.threads if one.cpu_ns > 0.1 * most]) == working
