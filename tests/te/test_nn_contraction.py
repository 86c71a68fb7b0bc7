"""tensordot and einsum, against NumPy."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from ansor import te
from ansor.errors import DeclarationError
from ansor.te import nn

Run = Callable[..., NDArray[np.float32]]


@pytest.mark.parametrize(("left", "right", "axes"), [((3,), (3,), 0), ((3,), (3,), 1), ((2, 3), (3, 5), 1), ((2, 2, 3), (2, 3, 5), 2),
                                                     ((3, 2, 2), (2, 3, 5), (1, 0)), ((3, 2, 2), (2, 3, 5), ((1, 0), (0, 1))),
                                                     ((4, 3, 2, 2), (2, 4, 3, 5), ((1, 2, 0), (2, 0, 1))),
                                                     ((2, 3), (5, 3), (-1, -1)), ((2, 1), (1, 4), 1)])
def test_tensordot(run: Run, array: Run, left: tuple[int, ...], right: tuple[int, ...], axes: int) -> None:
    a, b = array(*left), array(*right)
    np.testing.assert_allclose(run(lambda x, y: nn.tensordot(x, y, axes), a, b), np.tensordot(a, b, axes), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("subscripts", "shapes"), [("ij,jk->ik", [(2, 3), (3, 4)]), ("ij, jk", [(2, 3), (3, 4)]), ("ii->i", [(3, 3)]),
                                                    ("ii", [(3, 3)]), ("ij->ji", [(2, 3)]),
                                                    ("i,j->ij", [(2,), (3,)]), ("bhid,bhjd->bhij", [(2, 2, 3, 4), (2, 2, 5, 4)]),
                                                    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)]),
                                                    ("ij->", [(2, 3)]), ("bij,ij->b", [(2, 3, 4), (1, 4)])])
def test_einsum(run: Run, array: Run, subscripts: str, shapes: list[tuple[int, ...]]) -> None:
    operands = [array(*shape) for shape in shapes]
    np.testing.assert_allclose(run(lambda *x: nn.einsum(subscripts, *x), *operands), np.einsum(subscripts, *operands), rtol=1e-5, atol=1e-5)


A, B = te.placeholder((2, 3), name="A"), te.placeholder((4, 5), name="B")


@pytest.mark.parametrize(
    ("declare", "words"),
    [
        (lambda: nn.tensordot(A, B, 1), "give pairs of dimensions that are equal"),
        (lambda: nn.tensordot(A, A, ((0, 0), (0, 0))), "give pairs of dimensions that are equal"),
        (lambda: nn.einsum("ij,jk->ik", A, B), "'j' stands for 3 and 4"),
        (lambda: nn.einsum("ij,jk->ik", A), "give one letter per dimension of each operand"),
        (lambda: nn.einsum("ij->ijk", A), "letters have to be distinct, and each has to occur in an operand"),
        (lambda: nn.einsum("...ij->ij", A), "give one letter per dimension of each operand"),
    ],
)
def test_what_is_refused(declare: Callable[[], object], words: str) -> None:
    with pytest.raises(DeclarationError, match=words):
        declare()
