"""What is trained: networks, datasets, optimizers, and everything a contender reads, made once and cached."""

from __future__ import annotations

from timetrial.dataset_files.dataset import Dataset
from timetrial.datasets import DATASETS, load_dataset
from timetrial.networks import NETWORKS, load_network
from timetrial.networks.definition import NetworkDefinition
from timetrial.optimizers import OPTIMIZERS, check_optimizer
from timetrial.workloads.prepare import Checked, Prepared, check, prepare

__all__ = [
    "DATASETS",
    "NETWORKS",
    "OPTIMIZERS",
    "Checked",
    "Dataset",
    "NetworkDefinition",
    "Prepared",
    "check",
    "check_optimizer",
    "load_dataset",
    "load_network",
    "prepare",
]
