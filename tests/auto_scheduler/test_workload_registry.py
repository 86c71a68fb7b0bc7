"""The declarations of keys, and registry files, from which nothing is executed."""

import json
from pathlib import Path

import pytest

from ansor import te
from ansor.auto_scheduler import (
    ComputeDAG,
    deserialize_workload_registry_entry,
    load_workload_func_registry,
    make_workload_key,
    register_workload,
    register_workload_tensors,
    save_workload_func_registry,
    serialize_workload_registry_entry,
    workload_key_to_tensors,
)
from ansor.compat.auto_scheduler import workload_registry
from ansor.errors import AnsorError, DeclarationError, RecordError
from ansor.te import workloads
from ansor.te.tensor import Tensor


@register_workload
def a_product(n: int, m: int, k: int) -> list[Tensor]:
    return workloads.matmul(n, m, k)


@register_workload("renamed_product")
def another_product(n: int, m: int, k: int) -> list[Tensor]:
    return workloads.matmul(n, m, k)


@register_workload
def of_tensors(shape: tuple[int, ...], given: Tensor) -> list[Tensor]:
    return [given, te.compute(shape, lambda i, j: given[i, j] + 1.0, name="more")]


@pytest.fixture(autouse=True)
def no_declarations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workload_registry, "_declarations", {})


def test_keys_of_functions() -> None:
    assert make_workload_key(a_product, (1, 2, 3)) == make_workload_key("a_product", [1, 2, 3]) == '["a_product", 1, 2, 3]'
    assert make_workload_key(another_product, (1, 2, 3)) == '["renamed_product", 1, 2, 3]'
    assert [tensor.shape for tensor in workload_key_to_tensors('["a_product", 4, 5, 6]')] == [(4, 6), (6, 5), (4, 5)]
    given = te.placeholder((2, 3), "float64", name="given")
    key = make_workload_key(of_tensors, ((2, 3), given))
    assert key == '["of_tensors", [2, 3], ["TENSOR", [2, 3], "float64"]]'
    assert [(tensor.shape, tensor.dtype) for tensor in workload_key_to_tensors(key)] == [((2, 3), "float64")] * 2
    with pytest.raises(DeclarationError, match="'nobody', which is not registered"):
        make_workload_key("nobody", ())
    with pytest.raises(DeclarationError, match="workload <lambda>|workload .*, which is not registered"):
        make_workload_key(lambda: [], ())
    with pytest.raises(DeclarationError, match="a key holds numbers, strings"):
        make_workload_key(a_product, (object(),))


def test_a_name_belongs_to_one_function() -> None:
    with pytest.raises(DeclarationError, match="exists already"):
        register_workload("a_product", another_product)
    register_workload("for_a_moment", a_product)
    assert register_workload("for_a_moment", another_product, override=True) is another_product


def test_keys_of_declarations() -> None:
    tensors = a_product(4, 5, 6)
    key = register_workload_tensors(ComputeDAG(tensors).workload_key(), tensors)
    assert workload_key_to_tensors(key) == tuple(tensors)
    flat = json.dumps([json.loads(key)[0], 4, 6, 6, 5, 4, 5])  # as old logs have it
    assert workload_key_to_tensors(flat) == tuple(tensors) and ComputeDAG(flat).flop_ct == 2 * 4 * 5 * 6
    with pytest.raises(DeclarationError, match="exists already"):
        register_workload_tensors(key, tensors, override=False)
    with pytest.raises(DeclarationError, match="a declaration that is not registered"):
        workload_key_to_tensors('["0123456789abcdef0123456789abcdef", 4]')


def test_wrong_arguments_of_a_function_are_reported() -> None:
    for key in ('["a_product", 1]', '["a_product", "x", [], {}]', '["a_product", -1, 2, 3]'):
        with pytest.raises(DeclarationError):
            workload_key_to_tensors(key)
    register_workload("returns_nothing", lambda: None, override=True)  # type: ignore[type-var]  # a mistake
    with pytest.raises(DeclarationError, match="has to return the list"):
        workload_key_to_tensors('["returns_nothing"]')


def test_entries_round_trip() -> None:
    tensors = workloads.conv2d_winograd_nhwc(1, 8, 8, 4, 4, 3, 1, 1)
    key = ComputeDAG(tensors).workload_key()
    register_workload_tensors(key, tensors)
    entry = json.loads(json.dumps(serialize_workload_registry_entry(key)))
    workload_registry._declarations.clear()
    deserialize_workload_registry_entry(tuple(entry))
    dag = ComputeDAG(key)
    assert dag.workload_key() == key and str(dag) == str(ComputeDAG(tensors)) and dag.dag.key == ComputeDAG(tensors).dag.key
    deserialize_workload_registry_entry(serialize_workload_registry_entry("a_product"))
    with pytest.raises(DeclarationError, match="'os.system', which is not registered"):
        deserialize_workload_registry_entry(("os.system", None))


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "workloads.json"
    for n in (4, 8):
        tensors = a_product(n, n, n)
        register_workload_tensors(f"product {n}", tensors)
    save_workload_func_registry(path)
    workload_registry._declarations.clear()
    load_workload_func_registry(path)
    assert [workload_key_to_tensors(f"product {n}")[2].shape for n in (4, 8)] == [(4, 4), (8, 8)]
    with pytest.raises(RecordError):
        load_workload_func_registry(tmp_path / "nowhere")
    with pytest.raises(RecordError):
        save_workload_func_registry(tmp_path / "no" / "folder")


BAD = ["", "3", "[]", '["k"]', '["k", {}]', '["k", {"stages": [], "tensors": [0]}]', '["k", {"stages": [{}], "tensors": []}]',
       '["k", {"stages": [{"name": "a", "tag": "", "attrs": {}, "dtype": "object", "shape": [4]}], "tensors": [0]}]',
       '["k", {"stages": [{"name": "a", "tag": "", "attrs": {}, "dtype": "float32", "axes": [["i", 4]], "reduce": [], "combiner": "", '
       '"nodes": [["call", "system"]]}], "tensors": [0]}]',
       '["k", {"stages": [{"name": "a", "tag": "", "attrs": {}, "dtype": "float32", "axes": [["i", 4]], "reduce": [], "combiner": "", '
       '"nodes": [["read", 0, 0]]}], "tensors": [0]}]']  # fmt: skip


@pytest.mark.parametrize("line", BAD)
def test_other_files_are_refused(line: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text(line + "\n")
    with pytest.raises(AnsorError) as error:
        load_workload_func_registry(path)
    assert len(str(error.value)) < 500
