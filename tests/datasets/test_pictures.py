"""Folders of pictures, ImageNet's layout, photographs: what is read, and every picture that cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io

from timetrial.dataset_files import memory
from timetrial.datasets import Dataset, load_dataset, pictures
from timetrial.errors import InputError
from timetrial.workloads.material import data_entry

Image = pytest.importorskip("PIL.Image")


def paint(file: Path, level: int, size: tuple[int, int] = (8, 8), mode: str = "RGB") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    color: Any = level if mode == "L" else (level, 255 - level, 7)
    Image.new(mode, size, color).save(file)
    return file


def two_classes(root: Path, per_class: int = 5, mode: str = "RGB") -> list[Path]:
    return [
        paint(root / name / f"{number}.png", 20 * place + number, mode=mode)
        for place, name in enumerate(("cats", "dogs"))
        for number in range(per_class)
    ]


def test_a_folder_for_each_class(tmp_path: Path) -> None:
    two_classes(tmp_path)
    data = load_dataset("images", str(tmp_path))
    assert data.classes == 2
    assert data.train["images"].shape == (8, 3, 8, 8)
    assert data.test["images"].shape == (2, 3, 8, 8)
    assert sorted(data.test["labels"]) == [0, 1]
    reds = np.round(data.train["images"][:, 0, 0, 0] * 255).astype(int)
    assert {label: {level // 20 for level in reds[data.train["labels"] == label]} for label in (0, 1)} == {
        0: {0},
        1: {1},
    }
    assert data.description["class_names"] == "cats, dogs"
    assert data.description["split_seed"] == 0


def test_the_users_own_split(tmp_path: Path) -> None:
    two_classes(tmp_path / "train", per_class=3)
    paint(tmp_path / "val" / "dogs" / "a.jpg", 100)
    data = load_dataset("images", str(tmp_path))
    assert len(data.train["labels"]) == 6
    assert list(data.test["labels"]) == [1]
    assert data.description["split"] == "as the folders say"


def test_gray_pictures_have_one_channel(tmp_path: Path) -> None:
    two_classes(tmp_path, mode="L")
    assert load_dataset("images", str(tmp_path)).train["images"].shape == (8, 1, 8, 8)


def test_a_size_makes_them_one(tmp_path: Path) -> None:
    files = two_classes(tmp_path)
    tall = np.zeros((30, 10, 3), np.uint8)
    tall[10:20] = 200  # the middle, which stays
    Image.fromarray(tall).save(files[0])
    data = load_dataset("images@5", str(tmp_path))
    everything = np.concatenate([data.train["images"], data.test["images"]])
    assert everything.shape == (10, 3, 5, 5)
    assert sum(np.allclose(one, 200 / 255, atol=0.02) for one in everything[:, :, 1:4]) == 1


def test_the_cache_knows_names_places_and_contents(tmp_path: Path, cache: Path) -> None:
    own = tmp_path / "own"
    files = two_classes(own)
    first = data_entry("images", str(own))
    assert data_entry("images", str(own)).key == first.key
    assert data_entry("images@4", str(own)).key != first.key
    paint(files[0], 99)
    changed = data_entry("images", str(own))
    assert changed.key != first.key
    files[0].rename(files[0].with_name("z.png"))
    assert data_entry("images", str(own)).key not in (first.key, changed.key)


@pytest.mark.attempt
def test_pictures_of_two_sizes(tmp_path: Path) -> None:
    two_classes(tmp_path)
    paint(tmp_path / "dogs" / "3.png", 9, (8, 9))
    with pytest.raises(InputError, match=r"dogs/3\.png has 8x9 pixels; expected 8x8, as .*images@64"):
        load_dataset("images", str(tmp_path))


@pytest.mark.attempt
@pytest.mark.parametrize("name", ["images", "images@8"])
def test_a_gray_picture_among_colored_ones(tmp_path: Path, name: str) -> None:
    two_classes(tmp_path)
    paint(tmp_path / "dogs" / "2.png", 9, mode="L")
    with pytest.raises(InputError, match=r"dogs/2\.png is gray; expected colored, as .*\.png is"):
        load_dataset(name, str(tmp_path))


@pytest.mark.attempt
@pytest.mark.parametrize("mode", ["RGBA", "LA", "I;16"])
def test_a_mode_that_nobody_can_mean(tmp_path: Path, mode: str) -> None:
    two_classes(tmp_path)
    Image.new(mode, (8, 8)).save(tmp_path / "dogs" / "2.png")
    with pytest.raises(InputError, match=rf"dogs/2\.png is of the mode {mode}.*; expected 8 bits"):
        load_dataset("images", str(tmp_path))


@pytest.mark.attempt
@pytest.mark.parametrize("damage", ["cut", "empty", "no picture"])
@pytest.mark.parametrize("ending", ["png", "jpg"])
def test_a_damaged_picture_is_named(tmp_path: Path, damage: str, ending: str) -> None:
    two_classes(tmp_path)
    rng = np.random.default_rng(1)
    file = tmp_path / "dogs" / f"2b.{ending}"
    Image.fromarray(rng.integers(0, 256, (64, 64, 3), np.uint8)).save(file)
    whole = file.read_bytes()
    file.write_bytes({"cut": whole[: len(whole) // 2], "empty": b"", "no picture": b"<html>"}[damage])
    with pytest.raises(InputError, match=rf"dogs/2b\.{ending} cannot be decoded .*expected a whole PNG"):
        load_dataset("images@8", str(tmp_path))


@pytest.mark.attempt
def test_folders_that_are_no_classes(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"set dataset_folder to one with train/CLASS"):
        load_dataset("images")
    with pytest.raises(InputError, match="does not exist"):
        load_dataset("images", str(tmp_path / "nowhere"))
    paint(tmp_path / "cats" / "1.png", 1)
    with pytest.raises(InputError, match=r"has 1 sub-folders with pictures; expected .* at least 2"):
        load_dataset("images", str(tmp_path))
    (tmp_path / "dogs").mkdir()
    with pytest.raises(InputError, match=r"dogs has no pictures"):
        load_dataset("images", str(tmp_path))
    paint(tmp_path / "dogs" / "1.png", 1)
    with pytest.raises(InputError, match="The class 'cats' has 1 picture; expected at least 2"):
        load_dataset("images", str(tmp_path))


@pytest.mark.attempt
def test_a_class_that_is_only_tested_on(tmp_path: Path) -> None:
    two_classes(tmp_path / "train")
    with pytest.raises(InputError, match="has a folder train and none of the names test and val"):
        load_dataset("images", str(tmp_path))
    paint(tmp_path / "test" / "birds" / "1.png", 1)
    with pytest.raises(InputError, match="birds is a class that none of the pictures to train on has"):
        load_dataset("images", str(tmp_path))


@pytest.mark.attempt
def test_more_than_fits_into_memory_is_said_beforehand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory.os, "sysconf", {"SC_PHYS_PAGES": 1_000_000, "SC_PAGE_SIZE": 4096}.__getitem__)
    pictures.check_size("imagenet", 3000, (3, 224, 224))
    with pytest.raises(
        InputError, match=r"1,281,167 pictures of 3x224x224: decoded they take 771 GB, .* has 4 GB .*@64"
    ):
        pictures.check_size("imagenet", 1_281_167, (3, 224, 224))


SYNSETS = ("n01440764", "n01443537", "n01484850")


@pytest.fixture
def imagenet(tmp_path: Path) -> Path:
    """Three classes of two pictures each; no validation pictures yet."""
    for place, name in enumerate(SYNSETS):
        for number in range(2):
            paint(tmp_path / "train" / name / f"{name}_{number}.JPEG", 60 * place + number, (40, 30))
    return tmp_path


def flat(root: Path, count: int = 4) -> None:
    for number in range(1, count + 1):
        paint(
            root / "val" / f"ILSVRC2012_val_{number:08}.JPEG",
            50 * number,
            (30, 40),
            "L" if number == 2 else "RGB",
        )


def write_meta(file: Path, ids: dict[int, str]) -> None:
    kinds = [("ILSVRC2012_ID", "O"), ("WNID", "O"), ("words", "O")]
    synsets = np.array([(one, name, "a fish") for one, name in ids.items()], dtype=kinds)
    scipy.io.savemat(file, {"synsets": synsets.reshape(-1, 1)})


def read(root: Path) -> Dataset:
    return load_dataset("imagenet@24", str(root))


def test_imagenet_with_sub_folders(imagenet: Path) -> None:
    paint(imagenet / "val" / SYNSETS[2] / "a.JPEG", 5)
    paint(imagenet / "val" / SYNSETS[0] / "b.JPEG", 5, mode="L")  # some of its pictures are gray
    data = read(imagenet)
    assert data.classes == 3
    assert data.train["images"].shape == (6, 3, 24, 24)
    assert list(data.train["labels"]) == [0, 0, 1, 1, 2, 2]
    assert list(data.test["labels"]) == [0, 2]
    assert load_dataset("imagenet", str(imagenet)).train["images"].shape == (6, 3, 224, 224)


@pytest.mark.parametrize("as_numbers", [True, False])
def test_imagenet_with_a_list(imagenet: Path, as_numbers: bool) -> None:
    flat(imagenet)
    labels = [2, 0, 1, 1]
    lines = [
        f"ILSVRC2012_val_{number:08}.JPEG {label if as_numbers else SYNSETS[label]}"
        for number, label in enumerate(labels, 1)
    ]
    (imagenet / "val.txt").write_text("\n".join(reversed(lines)))
    assert list(read(imagenet).test["labels"]) == labels


def test_imagenet_with_the_devkit(imagenet: Path) -> None:
    flat(imagenet)
    devkit = imagenet / "ILSVRC2012_devkit_t12" / "data"
    devkit.mkdir(parents=True)
    write_meta(devkit / "meta.mat", {1: SYNSETS[1], 2: SYNSETS[2], 3: SYNSETS[0], 4: "n00000000"})
    (devkit / "ILSVRC2012_validation_ground_truth.txt").write_text("3\n1\n2\n3\n")
    assert list(read(imagenet).test["labels"]) == [0, 1, 2, 0]
    (devkit / "ILSVRC2012_validation_ground_truth.txt").write_text("3\n1\n4\n3\n")
    with pytest.raises(InputError, match=r"line 3: 4 is n00000000, which no folder of train is"):
        read(imagenet)
    (devkit / "ILSVRC2012_validation_ground_truth.txt").write_text("3\n1\n")
    with pytest.raises(InputError, match=r"has 2 lines, and there are 4 pictures"):
        read(imagenet)
    (devkit / "meta.mat").write_bytes(b"MATLAB 5.0 MAT-file, or not")
    with pytest.raises(InputError, match=r"meta\.mat is no meta\.mat of the devkit"):
        read(imagenet)


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("listed", "words"),
    [
        ("", r"says nothing of ILSVRC2012_val_00000001\.JPEG \(4 of 4 are missing\)"),
        ("ILSVRC2012_val_00000001.JPEG 3", r"val\.txt, line 1: the class 3; expected 0 to 2"),
        ("ILSVRC2012_val_00000001.JPEG n09", r"line 1: the class n09; expected 0 to 2, or a folder of train"),
        ("ILSVRC2012_val_00000001.JPEG", r"line 1: expected a file's name and its class"),
    ],
)
def test_a_list_that_cannot_be(imagenet: Path, listed: str, words: str) -> None:
    flat(imagenet)
    (imagenet / "val.txt").write_text(listed)
    with pytest.raises(InputError, match=words):
        read(imagenet)


@pytest.mark.attempt
def test_imagenet_that_lacks_something(imagenet: Path) -> None:
    with pytest.raises(InputError, match=r"has no folder val\. Expected train/nXXXXXXXX"):
        read(imagenet)
    flat(imagenet)
    with pytest.raises(InputError, match=r"nothing says their classes; expected val\.txt"):
        read(imagenet)


@pytest.mark.attempt
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mnist@14", "has one size only. Those that take one: images, imagenet, photographs"),
        ("images@", r"the size is ''; expected the pixels on a side, 4 to 4096: images@64"),
        ("images@3", "the size is '3'"),
        ("images@64x64", "the size is '64x64'"),
        ("imges@64", "no dataset 'imges'. Did you mean 'images'"),
        ("photographs@301", "the size 301; expected at most 300"),
    ],
)
def test_sizes_that_cannot_be(name: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        load_dataset(name)


def test_photographs() -> None:
    pytest.importorskip("skimage")
    data = load_dataset("photographs@32")
    assert data.train["images"].shape == (256, 3, 32, 32)
    assert data.test["images"].shape == (64, 3, 32, 32)
    assert list(data.train["labels"][:9]) == [0, 1, 2, 3, 4, 5, 6, 7, 0]
    assert len({image.tobytes() for image in data.train["images"]}) == 256
    again, other = load_dataset("photographs@32"), load_dataset("photographs@32", seed=1)
    np.testing.assert_array_equal(again.train["images"], data.train["images"])
    assert not np.array_equal(other.train["images"], data.train["images"])
    # What a photograph looks like tells it: the nearest mean of a class is right far more often than one in
    # eight.
    means = np.stack([data.train["images"][data.train["labels"] == label].mean(0) for label in range(8)])
    far = ((data.test["images"][:, None] - means) ** 2).sum((2, 3, 4))
    assert (far.argmin(1) == data.test["labels"]).mean() > 0.5


def test_a_stand_in_for_large_networks() -> None:
    data = load_dataset("synthetic-imagenet@32")
    assert data.classes == 1000
    assert data.train["images"].shape == (256, 3, 32, 32)
    assert sorted({int(label) for label in data.train["labels"]}) == list(range(0, 1000, 100))
    kinds = np.unique(data.train["labels"])
    means = np.stack([data.train["images"][data.train["labels"] == label].mean(0) for label in kinds])
    centered = means - means.mean(0)
    scores = ((data.test["images"] - means.mean(0))[:, None] * centered).sum((2, 3, 4))
    assert (kinds[scores.argmax(1)] == data.test["labels"]).mean() > 0.3
