"""Whole numbers as arguments of operators: one or several, Python's or NumPy's, in any kind of list."""

from collections.abc import Callable, Iterable

import numpy as np
import pytest

from ansor import te
from ansor.errors import DeclarationError
from ansor.te import nn
from ansor.te.nn.layout import whole_numbers
from ansor.te.tensor import Tensor

X, IMAGE, KERNEL = te.placeholder((4, 6), name="X"), te.placeholder((1, 2, 8, 8), name="I"), te.placeholder((3, 2, 3, 3), name="K")


def of_numpy(value: int) -> int:
    """NumPy's number, typed as what the operators ask for."""
    return np.int64(value)  # type: ignore[return-value]


ONE = of_numpy(1)


def test_whole_numbers() -> None:
    assert whole_numbers(3) == whole_numbers(of_numpy(3)) == whole_numbers([of_numpy(3)]) == (3,)
    assert whole_numbers(np.array([1, 2])) == whole_numbers((1, 2)) == whole_numbers(range(1, 3)) == (1, 2)
    assert all(type(one) is int for one in whole_numbers(np.array([1, 2])))


@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_numbers_of_numpy(kind: Callable[[Iterable[int]], list[int]]) -> None:
    def shape(tensor: Tensor) -> tuple[int, ...]:
        assert all(type(extent) is int for extent in tensor.shape)
        return tensor.shape

    assert shape(nn.sum(X, ONE)) == shape(nn.sum(X, kind([1]))) == shape(nn.argmax(X, ONE)) == (4,)
    assert shape(nn.reshape(X, kind([3, 8]))) == (3, 8) and shape(nn.reshape(X, of_numpy(24))) == (24,)
    assert shape(nn.split(X, of_numpy(2))[1]) == shape(nn.split(X, kind([2]))[1]) == (2, 6)
    assert shape(nn.tile(X, kind([2, 1]))) == (8, 6) and shape(nn.tile(X, of_numpy(2))) == (4, 12)
    assert shape(nn.full(kind([2, 3]), "int8", 1)) == (2, 3) and shape(nn.full(of_numpy(2), "int8", 1)) == (2,)
    assert shape(nn.tensordot(X, X, (ONE, ONE))) == (4, 4) and shape(nn.tensordot(X, nn.transpose(X), ONE)) == (4, 4)
    assert shape(nn.conv2d(IMAGE, KERNEL, ONE, kind([1, 1]))) == shape(nn.conv2d(IMAGE, KERNEL, kind([1, 1]), ONE, ONE)) == (1, 3, 8, 8)
    assert shape(nn.pool2d(IMAGE, of_numpy(2), kind([2, 2]))) == (1, 2, 4, 4)


@pytest.mark.parametrize(
    ("declare", "words"),
    [
        (lambda: nn.conv2d(IMAGE, KERNEL, 1.5), "with strides 1.5; give an integer of at least 1"),  # type: ignore[arg-type]
        (lambda: nn.pool2d(IMAGE, 2, padding=(0.5, 1)), "give an integer of at least 0"),  # type: ignore[arg-type]
        (lambda: nn.sum(X, 2), "give different ones in -2..1"),
    ],
)
def test_what_is_no_whole_number_is_refused(declare: Callable[[], object], words: str) -> None:
    with pytest.raises(DeclarationError, match=words):
        declare()
