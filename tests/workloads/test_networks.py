"""Networks by name, from files and from functions; every mistake is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from timetrial.core import Input, Network, NetworkError, images_and_labels
from timetrial.errors import InputError
from timetrial.workloads import DATASETS, NETWORKS, NetworkDefinition, check_optimizer, load_network

OWN = """
batch_size = 32
optimizer = { name = "sgd", learning_rate = 0.1 }

[[nodes]]
name = "flat"
kind = "flatten"

[[nodes]]
name = "fc1"
kind = "dense"
attributes = { units = "classes" }

[[nodes]]
name = "loss"
kind = "softmax_cross_entropy"
inputs = ["fc1", "labels"]
"""

NODES = '[{"name": "fc", "kind": "dense", "inputs": ["images"], "attributes": {"units": 10}}]'


def on_paper(definition: NetworkDefinition, batch_size: int) -> Network:
    """The network for samples of the shape that its facts are of."""
    facts = definition.facts
    assert facts is not None
    if facts.inputs:
        return Network(definition.nodes_for(facts.classes), batch_size, facts.inputs)
    named = {name for node in definition.nodes for name in node.get("inputs") or []}
    known = [*images_and_labels(facts.sample), Input("codes", facts.sample)]
    inputs = [one for one in known if one.name in named or (one.name == "images" and "codes" not in named)]
    return Network(definition.nodes_for(facts.classes), batch_size, inputs)


def wrong_facts(definition: NetworkDefinition) -> list[str]:
    """What the graph counts otherwise than its definition says."""
    facts, network = definition.facts, on_paper(definition, 3)
    assert facts is not None
    counted = {
        "parameters": network.parameter_count,
        "multiply_accumulates": network.multiply_accumulates("forward") / 3,
    }
    return [f"{name}: {value:,}" for name, value in counted.items() if value != getattr(facts, name)]


@pytest.mark.parametrize("name", NETWORKS)
def test_the_graph_is_what_is_known_on_paper(name: str) -> None:
    definition = load_network(name)
    assert definition.name == name
    assert wrong_facts(definition) == []


def test_a_network_that_is_not_what_is_known_on_paper() -> None:
    definition = load_network("lenet5")
    nodes = [node for node in definition.nodes if node["name"] != "pool2"]
    assert definition.facts is not None
    wider = replace(
        definition,
        nodes=[{**one, "inputs": ["conv2"]} if one["name"] == "flat" else one for one in nodes],
    )
    assert wrong_facts(wider) == ["parameters: 1,631,080", "multiply_accumulates: 3,493,000.0"]
    facts = replace(definition.facts, parameters=431_081)
    assert wrong_facts(replace(definition, facts=facts)) == ["parameters: 431,080"]


@pytest.mark.parametrize("name", NETWORKS)
def test_defaults_make_a_complete_workload(name: str) -> None:
    definition = load_network(name)
    assert definition.dataset.partition("@")[0] in DATASETS
    assert check_optimizer(definition.optimizer) == dict(definition.optimizer)
    assert definition.batch_size >= 1
    assert definition.epochs >= 1
    facts = definition.facts
    assert facts is not None
    assert min(len(facts.words), len(facts.source), len(facts.counted)) > 0


@pytest.mark.parametrize(
    ("source", "name", "parameters"),
    [
        ("mlp@16x1", "mlp@16x1", 784 * 16 + 16 + 160 + 10),
        ("mlp@16x3", "mlp@16x3", 784 * 16 + 16 + 2 * (256 + 16) + 160 + 10),
        ("mlp@x1", "mlp@512x1", 784 * 512 + 512 + 5_120 + 10),
        ("mlp@512x2", "mlp", 669_706),
    ],
)
def test_width_and_depth_can_be_chosen(source: str, name: str, parameters: int) -> None:
    definition = load_network(source)
    assert definition.name == name
    assert wrong_facts(definition) == []
    assert on_paper(definition, 1).parameter_count == parameters


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("lenet5@16x2", "the width and the depth of 'lenet5' are what they are. Those of mlp can be chosen"),
        ("mlp@0x2", "width is 0; expected a whole number from 1 to 65,536"),
        ("mlp@16x2000", "depth is 2000; expected a whole number from 1 to 1,000"),
        ("mlp@16", "no network 'mlp@16'"),
    ],
)
def test_sizes_that_cannot_be(source: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_network(source)


def test_unknown_name() -> None:
    with pytest.raises(InputError, match=r"no network 'lenet'\. Did you mean 'lenet5'.*\.toml file"):
        load_network("lenet")


def test_own_file(tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text(OWN)
    definition = load_network(str(file))
    assert (definition.name, definition.batch_size, definition.dataset) == ("my", 32, "digits28")
    assert definition.optimizer == {"name": "sgd", "learning_rate": 0.1, "momentum": 0.0, "weight_decay": 0.0}
    network = Network(definition.nodes_for(10), 32, images_and_labels((1, 8, 8)))
    shapes = {one["name"]: one["shape"] for one in network.parameters}
    assert shapes == {"fc1.weight": [10, 64], "fc1.bias": [10]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("nodes = [", r"my\.toml is not TOML"),
        ("batch_size = 3", "has no nodes"),
        ("nodes = []", "has no nodes"),
        ("nodes = [1]", "node 1 is 1; expected"),
        ("batch_sice = 3\n" + OWN, r"unknown key 'batch_sice'\. Did you mean 'batch_size'"),
        (OWN.replace("batch_size = 32", 'batch_size = "many"'), "'batch_size' is 'many'; expected a number"),
        (
            OWN.replace("learning_rate = 0.1", "learning_rate = -1"),
            "'learning_rate' .* is -1; expected .* above 0",
        ),
        (
            OWN.replace('kind = "dense"', "units = 3"),
            r"node 2 \('fc1'\) has the unknown key 'units'.*'attributes'",
        ),
        (OWN.replace('kind = "dense"', "kind = 3"), r"node 2 \('fc1'\): 'kind' is 3; expected a word"),
        (OWN.replace('["fc1", "labels"]', '"fc1"'), r"node 3 \('loss'\): 'inputs' is 'fc1'; expected a list"),
        (
            OWN.replace('{ units = "classes" }', "10"),
            r"node 2 \('fc1'\): 'attributes' is 10; expected a table",
        ),
    ],
)
def test_wrong_files(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "my.toml"
    file.write_text(content)
    with pytest.raises(InputError, match=message):
        load_network(str(file))


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.toml does not exist"):
        load_network(str(tmp_path / "nowhere.toml"))


def test_shapes_that_do_not_fit_name_the_layers(tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text(
        OWN.replace('kind = "flatten"', 'kind = "conv2d"\nattributes = { channels = 2, kernel = 9 }')
    )
    with pytest.raises(NetworkError, match=r"flat.*images|images.*flat"):
        Network(load_network(str(file)).nodes_for(10), 4, images_and_labels((1, 8, 8)))


def module(folder: Path, name: str, text: str) -> None:
    (folder / f"{name}.py").write_text(text)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "result",
    [
        NODES,
        '{"nodes": ' + NODES + "}",
        "__import__('timetrial').workloads.NetworkDefinition(name='make', nodes=" + NODES + ")",
    ],
)
def test_function_in_the_working_directory(here: Path, result: str, request: pytest.FixtureRequest) -> None:
    name = f"own_network_{abs(hash(result))}"
    module(here, name, f"import timetrial.workloads\n\ndef make():\n    return {result}\n")
    definition = load_network(f"{name}:make")
    assert isinstance(definition, NetworkDefinition)
    assert definition.name == "make"
    assert definition.nodes[0]["attributes"] == {"units": 10}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("own_wrong:make_netwrk", r"has no 'make_netwrk'\. Did you mean 'make_network'"),
        ("own_wrong:number", "own_wrong:number' is 1; expected a function"),
        ("own_wrong:gives_none", "gave a NoneType; expected a list of nodes"),
        ("own_wrong:gives_typo", r"unknown key 'node'\. Did you mean 'nodes'"),
        ("own_wrong:fails", "failed: ZeroDivisionError"),
        ("own_wrong:needs_more", "failed: TypeError"),
        ("own_broken:make", "failed: SyntaxError"),
        ("own_importing:make", "needs the module 'no_such_module_at_all'"),
        ("own_missing:make", "needs the module 'own_missing', which is not there"),
        (":make", "is not a function: write it as"),
        ("own_wrong:", "is not a function: write it as"),
    ],
)
def test_wrong_functions(here: Path, source: str, message: str) -> None:
    module(
        here,
        "own_wrong",
        "number = 1\n"
        f"def make_network():\n    return {NODES}\n"
        "def gives_none():\n    return None\n"
        "def gives_typo():\n    return {'node': []}\n"
        "def fails():\n    return 1 / 0\n"
        "def needs_more(size):\n    return []\n",
    )
    module(here, "own_broken", "def make(:\n")
    module(here, "own_importing", "import no_such_module_at_all\n")
    with pytest.raises(InputError, match=message):
        load_network(source)


@pytest.mark.parametrize(
    ("optimizer", "message"),
    [
        ("sgd", "expected a table"),
        ({"learning_rate": 0.1}, "no optimizer None"),
        ({"name": "sdg"}, "Did you mean 'sgd'"),
        ({"name": "sgd"}, "needs a 'learning_rate'"),
        (
            {"name": "sgd", "learning_rate": 0.1, "momentun": 0.9},
            "has no 'momentun'. Did you mean 'momentum'",
        ),
        ({"name": "sgd", "learning_rate": 0.0}, "'learning_rate' .* is 0.0; expected a number above 0"),
        ({"name": "sgd", "learning_rate": float("nan")}, "is nan; expected"),
        ({"name": "sgd", "learning_rate": float("inf")}, "is inf; expected"),
        ({"name": "sgd", "learning_rate": True}, "is True; expected"),
        ({"name": "sgd", "learning_rate": "0.1"}, "is '0.1'; expected"),
        ({"name": "sgd", "learning_rate": 0.1, "momentum": 1.0}, "at least 0 and below 1"),
        ({"name": "sgd", "learning_rate": 0.1, "weight_decay": -0.1}, "at least 0"),
    ],
)
def test_wrong_optimizers(optimizer: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_optimizer(optimizer)


def test_multiply_accumulates_of_lenet5_by_hand() -> None:
    """N x outputs x inputs of each: 20 x 24 x 24 x 25, 50 x 8 x 8 x 20 x 25, 800 x 500, 500 x 10."""
    network = Network(load_network("lenet5").nodes_for(10), 64, images_and_labels((1, 28, 28)))
    by_hand = {"conv1": 18_432_000, "conv2": 102_400_000, "fc1": 25_600_000, "fc2": 320_000}
    for node in network.nodes:
        products = network.work(node["name"])["multiply_accumulates"]
        forward = by_hand.get(node["name"], 0)
        data = 0 if node["name"] == "conv1" else forward  # nothing learns from the gradient of the images
        assert products == {"forward": forward, "backward_data": data, "backward_weights": forward}
    assert network.multiply_accumulates("train") == 3 * sum(by_hand.values()) - by_hand["conv1"]
    assert network.work("relu1")["bytes"]["forward"] == 2 * 4 * 64 * 500
