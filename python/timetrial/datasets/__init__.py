"""Data sets by name: a loader each; where their files come from, bringing them here and checking them.

`datasets.toml` says what there is, `loaders` how it is read, `install` brings files, `states` says how things
stand, `facts` what was found in the samples.
"""

from timetrial.dataset_files.dataset import Dataset
from timetrial.dataset_files.known import KnownDataset, known_dataset, known_datasets
from timetrial.dataset_files.places import datasets_folder
from timetrial.dataset_files.states import State, is_ready, state_of
from timetrial.datasets.install import Installed, install
from timetrial.datasets.loaders import DATASETS, Source, dataset_source, load_dataset

__all__ = [
    "DATASETS",
    "Dataset",
    "Installed",
    "KnownDataset",
    "Source",
    "State",
    "dataset_source",
    "datasets_folder",
    "install",
    "is_ready",
    "known_dataset",
    "known_datasets",
    "load_dataset",
    "state_of",
]
