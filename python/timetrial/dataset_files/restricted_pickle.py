"""Unpickling of NumPy arrays of bytes, or of lists, from files that are not trusted.

A pickle can name any function and have it called. CIFAR's need dictionaries, lists, strings, numbers and
one kind of NumPy array, IMDB's an array of lists; nothing else is admitted. The few NumPy names are answered
with functions of this file, so that no library code is called with arguments from the file, except the
filling of plain arrays.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np
import numpy.typing as npt

DTYPES = ("u1", "i4", "i8", "|u1", "<i4", "<i8", "uint8", "int32", "int64")


class NotAdmitted(pickle.UnpicklingError):
    """The file asks for something that such files do not need."""


class _ArrayType:
    """Stands for numpy.ndarray, which pickles only pass on."""


def _dtype(code: object, *_flags: object) -> np.dtype[Any]:
    name = code.decode("latin1") if isinstance(code, bytes) else code
    if name not in DTYPES:
        raise NotAdmitted(f"an array of type {name!r}")
    # A fresh object: the pickle goes on to set its byte order.
    return np.dtype(name, copy=True)


def _reconstruct(_kind: object, _shape: object, _code: object) -> npt.NDArray[np.uint8]:
    return np.empty(0, dtype=np.uint8)


def _from_buffer(buffer: Any, dtype: object, shape: Any, order: object, *_: object) -> npt.NDArray[Any]:
    if (
        not isinstance(buffer, (bytes, bytearray))
        or not isinstance(dtype, np.dtype)
        or order not in ("C", "F")
    ):
        raise NotAdmitted("an unusual array")
    array: npt.NDArray[Any] = np.frombuffer(buffer, dtype=dtype).reshape(shape, order=order)
    return array


def _encode(text: object, encoding: object = "latin1") -> bytes:
    # Python 3 writes bytes this way for protocol 2.
    if not isinstance(text, str) or encoding != "latin1":
        raise NotAdmitted("an unusual text")
    return text.encode("latin1")


_ADMITTED: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): _ArrayType,
    ("numpy", "dtype"): _dtype,
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy.core.numeric", "_frombuffer"): _from_buffer,
    ("numpy._core.numeric", "_frombuffer"): _from_buffer,
    ("_codecs", "encode"): _encode,
}


class _ObjectType:
    """Stands for numpy.dtype("O"). Not NumPy's: what a pickle may set in one decides how memory is read."""

    def __init__(self, code: object, *_flags: object):
        name = code.decode("latin1") if isinstance(code, bytes) else code
        if name not in ("O", "O8", "|O"):
            raise NotAdmitted(f"an array of type {name!r}")

    def __setstate__(self, state: object) -> None:
        pass


class _Objects:
    """Stands for an array of objects: what is in it, as a list."""

    def __init__(self, *_: object):
        self.content: list[Any] = []

    def __setstate__(self, state: Any) -> None:
        _version, shape, _dtype, _order, content = state
        if not isinstance(content, list) or shape != (len(content),):
            raise NotAdmitted("an array of objects with other than one extent")
        self.content = content


_ADMITTED_FOR_LISTS: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): _ArrayType,
    ("numpy", "dtype"): _ObjectType,
    ("numpy.core.multiarray", "_reconstruct"): _Objects,
    ("numpy._core.multiarray", "_reconstruct"): _Objects,
}


class _Unpickler(pickle.Unpickler):
    def __init__(self, content: bytes, admitted: dict[tuple[str, str], Any]):
        # Python 2 wrote CIFAR's files; its strings are bytes.
        super().__init__(io.BytesIO(content), encoding="bytes")
        self._admitted = admitted

    def find_class(self, module: str, name: str) -> Any:
        try:
            return self._admitted[module, name]
        except KeyError:
            raise NotAdmitted(f"{module}.{name}") from None

    def persistent_load(self, pid: Any) -> Any:
        raise NotAdmitted(f"the object {pid!r} outside the file")


def load_restricted(content: bytes) -> Any:
    """The object. NotAdmitted: it asks for more than arrays; pickle.UnpicklingError: it is damaged."""
    return _load(_Unpickler(content, _ADMITTED))


def load_lists(content: bytes) -> list[Any]:
    """Of an array of objects, as NumPy saves one, the objects: lists and numbers. Errors as above."""
    found = _load(_Unpickler(content, _ADMITTED_FOR_LISTS))
    if not isinstance(found, _Objects):
        raise NotAdmitted(f"{type(found).__name__} where an array of lists was expected")
    return found.content


def _load(unpickler: _Unpickler) -> Any:
    try:
        return unpickler.load()
    except pickle.UnpicklingError:
        raise
    except (MemoryError, RecursionError):
        raise pickle.UnpicklingError("its sizes are impossible") from None
    except Exception as error:  # a damaged pickle can fail in any way
        raise pickle.UnpicklingError(f"{type(error).__name__}: {error}") from None
