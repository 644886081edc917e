"""What the only SINGA wheel on PyPI lacks, so that its own code runs.

SINGA's Python layer calls four methods of the wrapped C++ tensor that the wheel's wrapper does not have:
those that copy from and to NumPy (it was wrapped without NumPy's types), and division in place (it has that
under its name in Python 2 only). The C++ methods behind the copies are in the library; they are called by
their symbols, with the address of the tensor that the wrapper holds. Nothing that computes is touched.
"""

import ctypes

import numpy as np

_SYMBOLS = {
    "CopyFloatDataFromHostPtr": "_ZNK5singa6Tensor19CopyDataFromHostPtrIfEEvPKT_mm",
    "CopyIntDataFromHostPtr": "_ZNK5singa6Tensor19CopyDataFromHostPtrIiEEvPKT_mm",
    "GetFloatValue": "_ZNK5singa6Tensor8GetValueIfEEvPT_m",
}


def repair(wrapper, library):
    """Gives `wrapper.Tensor` (singa.singa_wrap) what it lacks, from the file `library` behind it."""
    functions = {name: getattr(ctypes.CDLL(library), symbol) for name, symbol in _SYMBOLS.items()}
    for name, function in functions.items():
        function.restype = None
        copies_in = name.startswith("Copy")
        function.argtypes = [ctypes.c_void_p] * 2 + [ctypes.c_size_t] * (2 if copies_in else 1)
        make = _copier if copies_in else _getter
        setattr(wrapper.Tensor, name, make(function))
    wrapper.Tensor.__itruediv__ = wrapper.Tensor.__idiv__


def _copier(function):
    def copy(tensor, array):
        array = np.ascontiguousarray(array)
        function(int(tensor.this), array.ctypes.data, array.size, 0)

    return copy


def _getter(function):
    def get(tensor, count):
        array = np.empty(count, np.float32)
        function(int(tensor.this), array.ctypes.data, count)
        return array

    return get
