"""bfloat16 between NumPy and PyTorch."""

import subprocess
import sys

import ml_dtypes
import numpy as np
import torch

from ansor.support.bfloat16 import array_of, bits_of, dtype_named, is_floating, tensor_of


def test_arrays_and_tensors_share_memory() -> None:
    for dtype in (torch.bfloat16, torch.float32, torch.int8):
        tensor = torch.arange(6).reshape(2, 3).T.to(dtype)
        array = array_of(tensor)
        assert array.dtype.name == str(dtype).removeprefix("torch.") and array.shape == (3, 2) and array.tolist() == tensor.tolist()
        back = tensor_of(array)
        assert back.dtype == dtype and torch.equal(back, tensor)
        array[0, 0] = 7
        assert tensor[0, 0] == 7 and back[0, 0] == 7
    assert array_of(torch.tensor(2.0, dtype=torch.bfloat16)).shape == () and tensor_of(np.asarray(2.0, ml_dtypes.bfloat16)).item() == 2.0


def test_bits_are_those_of_pytorch() -> None:
    for value in (0.0, -0.0, 1.0, 1.00390625, 0.1, -3.3e38, 1e39, float("inf"), -float("inf"), 1e-40):
        assert bits_of(value) == int(torch.tensor(value).bfloat16().view(torch.int16)) & 0xFFFF, value


def test_kinds() -> None:
    assert all(is_floating(np.dtype(name)) for name in ("float16", "float32", "float64")) and is_floating(dtype_named("bfloat16"))
    assert not any(is_floating(np.dtype(name)) for name in ("int8", "bool", "V2"))


def test_the_package_is_loaded_where_it_is_needed() -> None:
    """And not before: most programs have no bfloat16."""
    code = ("import sys, numpy as np; from ansor import te; te.placeholder((2,), 'float32'); assert 'ml_dtypes' not in sys.modules; "
            "te.placeholder((2,), 'bfloat16'); assert np.dtype('bfloat16').itemsize == 2")  # fmt: skip
    subprocess.run([sys.executable, "-c", code], check=True)
