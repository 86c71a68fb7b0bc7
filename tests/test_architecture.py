"""The tables of docs/architecture.md, held against the imports of the code."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import networkx
import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = {"ansor": "ansor", "rules": "ansor.rules", "cost_model": "ansor.cost_model", "measure": "ansor.measure", "targets": "ansor.targets"}
PUBLIC = {
    "ansor", "ansor.auto_scheduler", "ansor.autotvm", "ansor.te", "ansor.te.nn", "ansor.rules", "ansor.explain", "ansor.targets",
    "ansor.compat.auto_scheduler", "ansor.compat.autotvm", "ansor.compat.tvm", "ansor.compat.tvm.auto_scheduler", "ansor.compat.tvm.autotvm",
    "ansor.compat.tvm.contrib", "ansor.compat.tvm.topi", "ansor.compat.tvm.topi.nn",
}  # fmt: skip
"""Packages whose `__init__` gives names to users; all others are empty."""

USES_TORCH = ("ansor.graph", "ansor.networks.batches", "ansor.networks.dynamic_graph", "ansor.networks.lengths", "ansor.networks.model_runs",
              "ansor.networks.number_tensors", "ansor.networks.padded", "ansor.networks.sized",
              "ansor.onnx.call", "ansor.onnx.elementwise", "ansor.onnx.layouts", "ansor.onnx.module",
              "ansor.onnx.reductions", "ansor.onnx.resizing", "ansor.onnx.windows",
              "ansor.zoo.mobilenet", "ansor.zoo.resnet", "ansor.zoo.tiny", "ansor.zoo.weights", "ansor.integer.from_torch",
              "ansor.integer.from_pt2e", "ansor.integer.observed", "ansor.integer.pt2e_graph", "ansor.integer.pt2e_operators", "ansor.torch_backend")
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
class Row:
    """A row of a table. `packages` have it together, `allowed`: packages and single modules that they may import; tvm: whether it is of TVM's names."""

    packages: tuple[str, ...]
    allowed: tuple[str, ...]
    tvm: bool


EVERYWHERE = ("ansor.errors", "ansor.support")
"""What every module may import."""


def _rows() -> list[Row]:
    found, tvm = [], False
    for line in (ROOT / "docs" / "architecture.md").read_text().splitlines():
        tvm = tvm or line.startswith("| TVM's names |")
        if line.startswith("| `ansor"):
            packages, _, imports = [cell.strip() for cell in line.strip("| ").split(" | ")]
            found.append(Row(_names(packages), tuple(name if name == "ansor" else f"ansor.{name}" for name in _names(imports)), tvm))
    return found


def _names(cell: str) -> tuple[str, ...]:
    return tuple(re.findall(r"`([\w.]+)`", cell))


ROWS = _rows()
PLACES = {package: row for row in ROWS for package in row.packages}


def _within(module: str, packages: tuple[str, ...]) -> str | None:
    """The longest of `packages` that holds the module."""
    holding = [package for package in packages if module == package or module.startswith(f"{package}.")]
    return max(holding, key=len, default=None)


def _place(module: str) -> str:
    """The package of the tables that a module belongs to."""
    package = _within(module, tuple(name for name in PLACES if name != "ansor")) or ("ansor" if module == "ansor" else None)
    if package is None:
        pytest.fail(f"{module} is in no row of the tables in docs/architecture.md; add it where it belongs")
    return package


def _imported(path: Path) -> Iterator[str]:
    """Every module of ours that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.partition(".")[0] == "ansor")
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, f"{path}: import from the defining module by its full name"
            if node.module.partition(".")[0] == "ansor":
                yield from (name if (name := f"{node.module}.{alias.name}") in MODULES else node.module for alias in node.names)


@cache
def _imports() -> dict[str, set[str]]:
    """What each module imports. Parsing takes seconds, so not while tests are collected."""
    return {module: set(_imported(path)) - {module} for module, path in MODULES.items()}


def test_tables_are_read() -> None:
    assert len(ROWS) > 20 and len({package for row in ROWS for package in row.packages}) == sum(len(row.packages) for row in ROWS)
    assert all(name in MODULES for row in ROWS for name in (*row.packages, *row.allowed))


def test_every_package_has_its_modules_described() -> None:
    described = re.findall(r"^\| (`ansor[^|]*`) \|", (ROOT / "docs" / "modules.md").read_text(), re.MULTILINE)
    assert [_names(cell) for cell in described] == [row.packages for row in ROWS]


@pytest.mark.parametrize("page", ["architecture", "modules", "extending"])
def test_files_that_are_named_exist(page: str) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text()
    named = set(re.findall(r"`((?:[a-z_]+/)+(?:[a-z_]+\.(?:py|c))?)`", text)) | set(re.findall(r"`((?:[a-z_]+/)+[a-z_*]+\.py)`", text))
    assert named, "it names files by their paths in the package"
    missing = [name for name in sorted(named) if not any([*ROOT.glob(name), *(ROOT / "ansor").glob(name)])]
    assert not missing


def test_rows_name_what_stands_above_them() -> None:
    above: list[str] = []
    for row in ROWS:
        named = [name for name in row.allowed if _place(name) not in above]
        assert not named, f"{row.packages} may import {named}, which do not stand above it in docs/architecture.md"
        above += row.packages


@pytest.mark.parametrize("module", MODULES)
def test_imports_are_those_of_the_table(module: str) -> None:
    row = PLACES[_place(module)]
    for imported in _imports()[module]:
        fine = _place(imported) in (*row.packages, *EVERYWHERE) or _within(imported, tuple(name for name in row.allowed if name != "ansor")) is not None
        if imported == "ansor":
            fine = "ansor" in (*row.packages, *row.allowed)
        assert fine, f"{module} imports {imported}; its row in docs/architecture.md names {', '.join(row.allowed) or 'nothing'}"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.packages[0])
def test_rows_name_nothing_that_they_do_not_need(row: Row) -> None:
    used = set().union(*(_imports()[module] for module in MODULES if PLACES[_place(module)] is row))
    idle = [name for name in row.allowed if not any(name == one or name != "ansor" and one.startswith(f"{name}.") for one in used)]
    assert not idle, f"{row.packages} import nothing of {idle}; leave them out of the row in docs/architecture.md"


def test_no_row_names_all_that_stands_above_it() -> None:
    above = 0
    for row in ROWS:
        packages = {_place(name) for name in row.allowed}
        assert above < 4 or len(packages) < above, f"{row.packages} may import everything"
        above += len(row.packages)


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Wherever in the file the import stands, those for types alone included."""
    graph = networkx.DiGraph([(module, imported) for module, several in _imports().items() for imported in several])
    circles = [sorted(circle) for circle in networkx.strongly_connected_components(graph) if len(circle) > 1]
    assert not circles


def test_nothing_imports_the_names_of_tvm() -> None:
    of_tvm = {package for row in ROWS if row.tvm for package in row.packages}
    inside, names = {name for name in of_tvm if name.startswith("ansor.compat")}, {"ansor.autotvm", "ansor.auto_scheduler"}
    assert of_tvm == inside | names and "ansor.compat" in inside
    assert {module for module in MODULES if _within(module, tuple(names))} == {*names, "ansor.autotvm.tuner"}, "the rest is under ansor.compat"
    for module in MODULES:
        found = [one for one in _imports()[module] if _place(one) in of_tvm]
        assert _place(module) in of_tvm or not found, f"{module} imports {found}"


def test_schedules_have_one_type_of_steps() -> None:
    """What logs of TVM hold becomes steps of ours: no class of TVM's names applies itself to a schedule."""
    of_tvm = tuple(package for row in ROWS if row.tvm for package in row.packages)
    a_step = re.compile(r"^class Step\b|def apply\(self, state", re.MULTILINE)
    assert not [module for module, path in MODULES.items() if _within(module, of_tvm) and a_step.search(path.read_text())]


@pytest.mark.parametrize("module", [module for module, path in MODULES.items() if path.name == "__init__.py"])
def test_init_files_only_name_things(module: str) -> None:
    if module in ("ansor", "ansor.te"):
        return  # names are imported when first used: all of the entry point's, and the operators
    body = ast.parse(MODULES[module].read_text()).body
    statements = body[1:] if body and isinstance(body[0], ast.Expr) else body
    statements = statements[:-1] if module == "ansor.te.nn" else statements  # the last one makes it tell names that it does not have
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


def test_who_compiles_for_this_machine_imports_no_other_family_of_targets() -> None:
    code = "import ansor, ansor.run.kernels; ansor.auto_schedule\nfrom ansor.targets.base import parse_target; parse_target('cpu')"
    others = "('ansor.targets.micro', 'ansor.targets.vta', 'ansor.vta.compiled', 'lightgbm', 'torch', 'importlib.metadata')"
    program = f"import sys\n{code}\nprint(*[name for name in {others} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split() == []


def test_every_public_name_exists() -> None:
    import ansor

    assert all(getattr(ansor, name) is not None for name in ansor.__all__)


def test_the_language_does_not_import_the_operators() -> None:
    program = "import sys, ansor.te as te\nprint(*[name for name in sys.modules if name.startswith('ansor.te.nn')])\nassert te.nn is sys.modules['ansor.te.nn']"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split() == []
