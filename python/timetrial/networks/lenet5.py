"""LeNet-5 in the form that framework comparisons use (20 and 50 filters, 500 units, ReLU).

After LeCun et al., "Gradient-based learning applied to document recognition" (1998), with the sizes that
Caffe's example gave it.
"""

from __future__ import annotations

from timetrial.networks.definition import Facts, NetworkDefinition


def lenet5() -> NetworkDefinition:
    """conv5x5-20, max2, conv5x5-50, max2, 500 rectified units, one output per class."""
    return NetworkDefinition(
        name="lenet5",
        nodes=[
            {
                "name": "conv1",
                "kind": "conv2d",
                "inputs": ["images"],
                "attributes": {"channels": 20, "kernel": 5},
            },
            {"name": "pool1", "kind": "max_pool2d", "inputs": ["conv1"], "attributes": {"kernel": 2}},
            {
                "name": "conv2",
                "kind": "conv2d",
                "inputs": ["pool1"],
                "attributes": {"channels": 50, "kernel": 5},
            },
            {"name": "pool2", "kind": "max_pool2d", "inputs": ["conv2"], "attributes": {"kernel": 2}},
            {"name": "flat", "kind": "flatten", "inputs": ["pool2"], "attributes": {}},
            {"name": "fc1", "kind": "dense", "inputs": ["flat"], "attributes": {"units": 500}},
            {"name": "relu1", "kind": "relu", "inputs": ["fc1"], "attributes": {}},
            {"name": "fc2", "kind": "dense", "inputs": ["relu1"], "attributes": {"units": "classes"}},
            {"name": "loss", "kind": "softmax_cross_entropy", "inputs": ["fc2", "labels"], "attributes": {}},
        ],
        dataset="digits28",
        facts=Facts(
            "LeNet-5 in the form that comparisons of frameworks use: 20 and 50 filters, 500 units",
            "LeCun, Bottou, Bengio and Haffner, Gradient-based learning applied to document recognition, "
            "1998, with the sizes of Caffe's example",
            (1, 28, 28),
            10,
            431_080,
            2_293_000,
            "by hand: 520 + 25,050 + 400,500 + 5,010 weights and biases; products 288,000 + 1,600,000 + "
            "400,000 + 5,000. The paper's own has about 60,000",
        ),
    )
