"""What pristine operators compute, and what becomes of their rows."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import numpy as np
import pristine_operators
import pytest
from pristine import Row, Settings, append, finished, load, markdown, names_of, summary
from pristine_operators import OPERATORS
from provenance import Measured

from ansor.dataset.known import NOTHING, PARTS
from ansor.ir.dag import Dag
from ansor.ir.evaluate import evaluate
from ansor.ir.input_ranges import input_ranges
from ansor.measure.interleaved import Ratio
from ansor.te.tensor import Tensor

pytestmark = pytest.mark.torch

SETTINGS = Settings("cpu -threads=1", 0, 200, 0, 100)
MEASURED = Measured("1234567", "a machine", "2026-01-01", "89abcdef")


def test_what_they_compute() -> None:
    """Some of them, small, beside NumPy."""
    rng = np.random.default_rng(0)

    def made(tensors: list[Tensor]) -> tuple[dict[str, np.ndarray], np.ndarray]:
        dag = Dag(tensors)
        ranges = input_ranges(dag)
        drawn = {one: rng.random(one.shape) if one.dtype == "float32" else rng.integers(*ranges.get(one.name, (-9, 8)), one.shape, endpoint=True)
                 for one in dag.inputs}  # fmt: skip
        inputs = {one.name: values.astype(one.dtype) for one, values in drawn.items()}
        return inputs, np.asarray(evaluate(dag.outputs, inputs)[0])

    given, found = made(pristine_operators.contraction(3))
    assert np.allclose(found, np.einsum("iejf,mfke->ijkm", given["a"], given["b"]), rtol=1e-5)
    given, found = made(pristine_operators.mttkrp(3, 4, 5, 2))
    assert np.allclose(found, np.einsum("xpq,pr,qr->xr", given["t"], given["b"], given["c"]), rtol=1e-5)
    given, found = made(pristine_operators.complex_product(4))
    assert np.allclose(found, ((given["a"][0] + 1j * given["a"][1]) @ (given["b"][0] + 1j * given["b"][1])).real, atol=1e-5)
    given, found = made(pristine_operators.group_norm(2, 3, 4))
    flat = given["x"].reshape(2, -1).astype(np.float64)
    assert np.allclose(found.reshape(2, -1), (flat - flat.mean(1, keepdims=True)) / np.sqrt(flat.var(1, keepdims=True) + 1e-5), atol=1e-4)
    given, found = made(pristine_operators.block_matching(2, 4, 3))
    assert found[1, 0, 2, 1] == np.abs(given["a"][4:, :4].astype(int) - given["b"][6:10, 1:5].astype(int)).sum()
    given, found = made(pristine_operators.min_plus(3, 4, 5))
    assert np.array_equal(found, (given["a"][:, :, None] + given["b"][None]).min(axis=1))
    given, found = made(pristine_operators.toeplitz(2, 4))
    assert np.allclose(found, given["x"] @ np.array([[given["t"][i - j + 3] for j in range(4)] for i in range(4)]).T, rtol=1e-5)
    given, found = made(pristine_operators.chain(5, 2))
    assert np.allclose(found, given["x"] @ given["u"] @ given["v"], rtol=1e-5)
    given, found = made(pristine_operators.polynomial(2, 3, 4))
    assert np.allclose(found, [np.polynomial.polynomial.polyval(x, a) for x, a in zip(given["x"], given["a"], strict=True)], rtol=1e-5)
    given, found = made(pristine_operators.block_cosines(2, 1))
    assert np.allclose(found[1, 0], given["d"] @ given["x"][8:] @ given["d"].T, rtol=1e-5)
    given, found = made(pristine_operators.embedding_bag(2, 3, 5, 4))
    assert np.allclose(found, given["table"][given["chosen"]].sum(axis=1), rtol=1e-5)


def row(name: str, share: float, known: str = NOTHING, settings: Settings = SETTINGS) -> Row:
    return Row(name, settings, MEASURED, known, Ratio(share, share - 0.1, share + 0.1), (1e-3, 1e-3 * share), (0.5, 9.0))


def test_rows_are_read_as_they_were_written_and_a_torn_line_spoils_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    append(file, row("heat_3d_96", 0.9))
    with file.open("a") as open_file:
        open_file.write('{"name": "tor')
    append(file, row("heat_3d_40", 0.8))
    assert load(file) == [row("heat_3d_96", 0.9), row("heat_3d_40", 0.8)]


def test_only_rows_of_the_same_settings_commit_machine_and_model_count() -> None:
    mine = row("heat_3d_96", 0.9)
    others = [replace(mine, settings=replace(SETTINGS, seed=1)), *(replace(mine, measured=replace(MEASURED, **{part: "other"}))
              for part in ("commit", "machine", "model"))]  # fmt: skip
    assert finished(others, SETTINGS, MEASURED) == {}
    assert finished([mine, *others], SETTINGS, replace(MEASURED, date="2026-01-02")) == {"heat_3d_96": mine}


def test_summary_says_what_was_missed_and_what_is_unlike_all_that_the_model_knows() -> None:
    lines = summary([row("chain_512x32", 1.0, PARTS), row("sobel_250x333", 0.64)], SETTINGS)
    assert lines[0] == "2 operators: geometric mean 0.800, minimum 0.64 (sobel_250x333); targets 0.9 and 0.7: MISSED"
    assert lines[1].startswith("1 of them have reductions new to the model: geometric mean 0.640")


def test_markdown_has_the_table_and_where_it_is_from() -> None:
    text = markdown([row("chain_512x32", 1.0, PARTS)], SETTINGS)
    assert "| `chain_512x32` - | 1.0000 | 1.0000 | 1.00 (0.90 .. 1.10) |" in text
    assert text.endswith("Measured at commit 1234567 on a machine, 2026-01-01, model 89abcdef.\n")


def test_families_and_operators_can_be_asked_for() -> None:
    asked = Namespace(only=["chain", "heat_3d_40"], sizes=1)
    assert names_of(asked) == ["chain_512x32"]
    assert names_of(Namespace(only=asked.only, sizes=2)) == ["heat_3d_40", "chain_512x32", "chain_700x8"]
    assert names_of(Namespace(only=None, sizes=2)) == list(OPERATORS)
