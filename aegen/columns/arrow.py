"""Arrow arrays straight from NumPy and back.

``pyarrow.array`` and ``numpy.asarray`` of an Arrow array import pandas wherever it is installed, which takes longer
than generating ten thousand pairs; buffers do not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from aegen.core.types import Integers


def of_numbers(numbers: Integers) -> pa.Array:
    """A NumPy column as an Arrow array, without copying.

    >>> of_numbers(np.arange(3)).to_pylist()
    [0, 1, 2]
    """
    numbers = np.ascontiguousarray(numbers)
    return pa.Array.from_buffers(pa.from_numpy_dtype(numbers.dtype), len(numbers), [None, pa.py_buffer(numbers)])


def of_texts(texts: Sequence[str]) -> pa.StringArray:
    """Strings as an Arrow array.

    >>> of_texts(["a", "", "bc"]).to_pylist()
    ['a', '', 'bc']
    """
    encoded = [text.encode() for text in texts]
    offsets = np.zeros(len(encoded) + 1, dtype=np.int32)
    np.cumsum(np.fromiter(map(len, encoded), dtype=np.int32, count=len(encoded)), out=offsets[1:])
    return pa.StringArray.from_buffers(len(encoded), pa.py_buffer(offsets), pa.py_buffer(b"".join(encoded)))


def to_numbers(array: pa.Array) -> Integers:
    """An Arrow array of numbers (no nulls, no booleans) as a NumPy column, without copying.

    >>> to_numbers(of_numbers(np.arange(5))[2:]).tolist()
    [2, 3, 4]
    """
    kind = array.type.to_pandas_dtype()
    if not len(array):
        return np.empty(0, dtype=kind)
    return np.frombuffer(array.buffers()[1], dtype=kind)[array.offset : array.offset + len(array)]


def text_offsets(texts: pa.StringArray) -> npt.NDArray[np.int32]:
    """Where each text begins in the array's bytes, and where the last one ends.

    >>> text_offsets(of_texts(["a", "", "bc"])).tolist()
    [0, 1, 1, 3]
    """
    if not len(texts):
        return np.zeros(1, dtype=np.int32)
    return np.frombuffer(texts.buffers()[1], dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1]


EMPTY, SPACE = of_texts(["", " "])
