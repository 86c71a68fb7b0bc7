"""The wheel away from the checkout: README's examples run there, and what they saved runs where there is NumPy and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ansor.support import settings
from tests.installed import Installed, all_packages, install, numpy_alone
from tests.test_packaging import wheel_file

ROOT = Path(__file__).resolve().parents[1]
__all__ = ["wheel_file"]

SAVE = """
from pathlib import Path
assert Path(ansor.__file__).is_relative_to(Path.cwd() / "venv"), ansor.__file__
threaded = ansor.auto_schedule("matmul", (256, 256, 256), "cpu -threads=2")
threaded.save("threaded")
import torch
model = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3), torch.nn.BatchNorm2d(16), torch.nn.ReLU()).eval()
images = torch.randn(1, 3, 128, 128)
for threads in (1, 2):
    net = ansor.compile(model, (images,), f"cpu -threads={threads}", library=False)
    assert max(one.kernel.code.threads for one in net.kernels) == threads
    net.save(f"net{threads}")
    np.savez(f"net{threads}.npz", images=images.numpy(), expected=net(images.numpy()))
"""

LOAD = """
import sys
import warnings
import numpy as np
import ansor

warnings.simplefilter("ignore", ansor.AnsorWarning)  # that calls take longer without a compiler

for folder, size in (("matmul", 512), ("threaded", 256)):
    kernel = ansor.Kernel.load(folder)
    a = np.ones((size, size), np.float32)
    for _ in range(3):
        assert (kernel(a, a) == size).all()
for threads in (1, 2):
    net, data = ansor.load(f"net{threads}"), np.load(f"net{threads}.npz")
    assert net(data["images"]).tobytes() == data["expected"].tobytes()
found = {name.partition(".")[0] for name, module in sys.modules.items() if "-packages" in str(getattr(module, "__file__", ""))}
print(*sorted(found | ({"numpy"} if "numpy" in sys.modules else set())))
"""


@pytest.fixture(scope="module")
def saved(wheel_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """An environment with all dependencies, in which README's first operator ran and was saved."""
    readme = (ROOT / "README.md").read_text()
    example = re.search(r"^```python\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    assert example is not None and "kernel.save" in example[1]
    installed = install(wheel_file, tmp_path_factory.mktemp("installed"), all_packages())
    program = "import warnings; warnings.simplefilter('default')\n" + re.sub(r"\btrials=\d+", "trials=2", example[1]) + SAVE
    installed.run(program, ANSOR_CACHE=str(settings.cache_directory()))
    return installed


@pytest.mark.compiler
@pytest.mark.torch
def test_what_was_saved_runs_with_numpy_alone(saved: Installed, wheel_file: Path, tmp_path: Path) -> None:
    """No PyTorch, no LightGBM, no compiler: not even what the cache folder of the first environment holds."""
    bare = install(wheel_file, tmp_path, numpy_alone(tmp_path / "numpy"))
    for folder in ("matmul", "threaded", "net1", "net2", "net1.npz", "net2.npz"):
        (tmp_path / folder).symlink_to(saved.folder / folder)
    assert bare.run(LOAD, path="/nonexistent").split() == ["ansor", "numpy"]


@pytest.mark.compiler
@pytest.mark.torch
def test_the_command_is_installed(saved: Installed) -> None:
    said = saved.run("import subprocess; print(subprocess.run(['venv/bin/ansor', 'show', 'matmul.jsonl'], check=True, capture_output=True, text=True).stdout)")
    assert "matmul(512, 512, 512)" in said
