"""The layer table of docs/architecture.md, held against the imports of the code."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = {"ansor": "ansor", "rules": "ansor.rules", "cost_model": "ansor.cost_model", "measure": "ansor.measure", "targets": "ansor.targets"}
PUBLIC = {
    "ansor", "ansor.auto_scheduler", "ansor.autotvm", "ansor.te", "ansor.te.nn", "ansor.rules", "ansor.explain", "ansor.targets",
    "ansor.compat.tvm", "ansor.compat.tvm.auto_scheduler", "ansor.compat.tvm.autotvm", "ansor.compat.tvm.contrib", "ansor.compat.tvm.topi",
    "ansor.compat.tvm.topi.nn",
}  # fmt: skip
"""Packages whose `__init__` gives names to users; all others are empty."""

USES_TORCH = ("ansor.graph", "ansor.zoo.mobilenet", "ansor.zoo.resnet", "ansor.zoo.weights")
"""Modules that may import torch at the top: nobody imports them before a network is asked for."""


def _modules() -> dict[str, Path]:
    found = {}
    for folder, package in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = [package, *path.relative_to(ROOT / folder).with_suffix("").parts]
            found[".".join(parts if parts[-1] != "__init__" else parts[:-1])] = path
    return found


MODULES = _modules()


@dataclass(frozen=True)
class Layer:
    """A row of the table. `allowed`: numbers of layers, `named`: single modules of other layers."""

    number: int
    packages: tuple[str, ...]
    allowed: frozenset[int]
    named: tuple[str, ...]


def _layers() -> list[Layer]:
    text = (ROOT / "docs" / "architecture.md").read_text()
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in text.splitlines() if re.match(r"\| \d+ \|", line)]
    return [Layer(int(number), _names(packages), _numbers(imports), _names(imports)) for number, packages, _, imports in rows]


def _names(cell: str) -> tuple[str, ...]:
    return tuple(re.findall(r"`(ansor[\w.]*)`", cell))


def _numbers(cell: str) -> frozenset[int]:
    """`0-2` -> {0, 1, 2}; single numbers as they are."""
    found: set[int] = set()
    for low, high in re.findall(r"\b(\d+)(?:-(\d+))?\b", cell):
        found.update(range(int(low), int(high or low) + 1))
    return frozenset(found)


LAYERS = _layers()


def _within(module: str, packages: tuple[str, ...]) -> str | None:
    """The longest of `packages` that holds the module."""
    holding = [package for package in packages if module == package or module.startswith(f"{package}.")]
    return max(holding, key=len, default=None)


def _place(module: str) -> tuple[Layer, str]:
    """The layer of a module and the package of the table it belongs to."""
    packages = {package: layer for layer in LAYERS for package in layer.packages}
    package = _within(module, tuple(name for name in packages if name != "ansor")) or ("ansor" if module == "ansor" else None)
    if package is None:
        pytest.fail(f"{module} is in no row of the layer table in docs/architecture.md; add it where it belongs")
    return packages[package], package


def _imported(path: Path) -> Iterator[str]:
    """Every module of ours that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.partition(".")[0] == "ansor")
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, f"{path}: import from the defining module by its full name"
            if node.module.partition(".")[0] == "ansor":
                yield from (name if (name := f"{node.module}.{alias.name}") in MODULES else node.module for alias in node.names)


def test_table_is_read() -> None:
    numbers = [layer.number for layer in LAYERS]
    assert numbers == sorted(numbers) and set(numbers) == set(range(11))
    assert all(package in MODULES for layer in LAYERS for package in (*layer.packages, *layer.named))


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_down(module: str) -> None:
    layer, package = _place(module)
    for imported in _imported(MODULES[module]):
        other, other_package = _place(imported)
        fine = other_package == package or other.number in layer.allowed or _within(imported, layer.named) is not None
        assert fine, f"{module} (layer {layer.number}, may import {sorted(layer.allowed)} {layer.named}) imports {imported} (layer {other.number})"


@pytest.mark.parametrize("module", [module for module, path in MODULES.items() if path.name == "__init__.py"])
def test_init_files_only_name_things(module: str) -> None:
    if module in ("ansor", "ansor.te"):
        return  # names are imported when first used: all of the entry point's, and the operators
    body = ast.parse(MODULES[module].read_text()).body
    statements = body[1:] if body and isinstance(body[0], ast.Expr) else body
    assert all(isinstance(statement, ast.ImportFrom) for statement in statements)
    assert not statements or module in PUBLIC, f"{module}/__init__.py imports; import from the defining modules instead"


def test_no_module_is_named_like_the_standard_library() -> None:
    files = [*MODULES.values(), *(ROOT / "examples").glob("*.py"), *(ROOT / "benchmarks").glob("*.py")]
    named = [path.relative_to(ROOT) for path in files if path.stem in sys.stdlib_module_names and path.stem != "__main__"]
    assert not named, "Python finds a script's neighbours before the standard library"


def _loaded_after(code: str) -> set[str]:
    heavy = "('torch', 'lightgbm', 'numpy', 'rich', 'networkx')"
    program = f"import sys\n{code}\nprint(*[name for name in {heavy} if name in sys.modules])"
    return set(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split())


def test_only_settings_reads_the_environment() -> None:
    readers = [module for module, path in MODULES.items() if re.search(r"\bos\.(environ|getenv)\b", path.read_text())]
    assert readers == ["ansor.support.settings"]


def test_import_ansor_imports_nothing_heavy() -> None:
    assert _loaded_after("import ansor; dir(ansor)") == set()


def test_no_module_imports_torch_or_lightgbm_before_it_needs_them() -> None:
    names = [name for name in MODULES if _within(name, USES_TORCH) is None and not name.endswith("__main__")]
    assert _loaded_after("import " + ", ".join(names)) & {"torch", "lightgbm"} == set()


def test_every_public_name_exists() -> None:
    import ansor

    assert all(getattr(ansor, name) is not None for name in ansor.__all__)


def test_the_language_does_not_import_the_operators() -> None:
    program = "import sys, ansor.te as te\nprint(*[name for name in sys.modules if name.startswith('ansor.te.nn')])\nassert te.nn is sys.modules['ansor.te.nn']"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split() == []
