"""Jobs through a transport: what it is asked, what becomes of its answers, and programs that time themselves."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest

from ansor.codegen.artifact import PROGRAM, Artifact
from ansor.codegen.source import Argument, CSource
from ansor.errors import MeasureError
from ansor.measure.device import Job, Observation
from ansor.measure.failure import Failure
from ansor.measure.measure_task import MeasureTask
from ansor.measure.timing import Stopping, TimingOptions
from ansor.measure.trial.fill import fills_of, generated, key_of, uniform
from ansor.measure.trial.kept import read_kept
from ansor.measure.trial.proof import HostProof, Proof, no_proof
from ansor.measure.trial.recipe import input_lines, moves_line, recipe_text
from ansor.measure.trial.runs import TASKS_KEPT, TrialRuns
from ansor.measure.trial.transport import Ended, Limits, failed_by_signal
from ansor.measure.verify import moves_of
from ansor.targets.unit import INSTRUCTIONS, SECONDS
from tests.trial_programs import built, kernel, said

ARGUMENTS = tuple(Argument(name, (60,), "float32", "output" if name == "C" else "input") for name in "ABC")
WIDE = tuple(replace(one, dtype="float64") for one in ARGUMENTS)
ADD = "float *a = args[0], *b = args[1], *c = args[2]; for (int i = 0; i < 60; ++i) c[i] = a[i] + b[i];"
SUM = kernel(ADD, ARGUMENTS)
TASK = MeasureTask("add", kernel(ADD.replace("float", "double"), WIDE))
KEPT = '{"reference": {"input_scale": "x3ff0000000000000", "outputs": [{"size": 60, "nan": 0, "infinite": 0, "sensitivity": "x0000000000000000"}]}, "sums": []}'
CHECK = {"argument": 2, "size": 60, "wrong": 0, "unwritten": 0, "worst": "x0000000000000000", "allowed": "x3ff0000000000000", "at": 0,
         "found": "x4000000000000000", "expected": "x4000000000000000"}  # fmt: skip
RIGHT = json.dumps({"costs": [], "cut_short": False, "later": False, "check": [CHECK], "sums": []})


@dataclass
class Said:
    """A transport that answers what it was given, and remembers what it was asked."""

    answers: list[Ended]
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)

    def run(self, program: Artifact, mode: str, kept: str, recipe: str, limits: Limits) -> Ended:
        self.asked.append((mode, kept, recipe))
        return self.answers.pop(0)

    def place(self, path: Path) -> str:
        return f"/device/{path.name}"

    def forget(self, kept: str) -> None:
        self.forgotten.append(kept)


@dataclass
class Here:
    """Programs of this machine, without an emulator."""

    folder: Path

    def run(self, program: Artifact, mode: str, kept: str, recipe: str, limits: Limits) -> Ended:
        place = kept if kept == "-" else str(self.folder / kept)
        ended = subprocess.run([program.path, mode, place], input=recipe, capture_output=True, text=True, timeout=limits.seconds, check=False)
        return Ended(ended.stdout, failed_by_signal("signal", -ended.returncode) if ended.returncode else None)

    def place(self, path: Path) -> str:
        return str(path)

    def forget(self, kept: str) -> None:
        (self.folder / kept).unlink()


def job(key: str = "add", **options: float) -> Job:
    """A job whose files are not there: no transport here looks."""
    assert TASK.reference is not None
    timing = TimingOptions(**options)  # type: ignore[arg-type]
    return Job(replace(TASK, key=key), Artifact(SUM, Path("none"), "kernel", PROGRAM), Artifact(TASK.reference, Path("none"), "kernel", PROGRAM), timing)


def counted(number: float = 7.0) -> Ended:
    return Ended(RIGHT, counters={"instructions": number})


def test_a_reference_runs_once_for_a_task_and_stays() -> None:
    transport = Said([Ended(KEPT), counted(), counted()])
    runs = TrialRuns(transport, INSTRUCTIONS)
    first, second = runs.run(job()), runs.run(job())
    assert isinstance(first, Observation) and first.costs == (7.0,) and first.unit == INSTRUCTIONS and first.check and first == second
    assert [mode for mode, _, _ in transport.asked] == ["reference", "trial", "trial"] and len({kept for _, kept, _ in transport.asked}) == 1
    assert "\ncount 0\n" in transport.asked[1][2] and "\ntime " not in transport.asked[1][2]
    assert first.counters == {"tensor_bytes_sent": 0.0, "instructions": 7.0}


def test_bfloat16_is_refused_before_anything_is_sent() -> None:
    transport = Said([])
    stored = replace(job().artifact.source, arguments=(replace(job().artifact.source.arguments[0], dtype="bfloat16"), *job().artifact.source.arguments[1:]))
    for one in (replace(job(), artifact=replace(job().artifact, source=stored)), replace(job(), task=replace(job().task, rounding="bfloat16"))):
        found = TrialRuns(transport, INSTRUCTIONS).run(one)
        assert isinstance(found, Failure) and found.kind == "reference" and "bfloat16" in found.text
    assert not transport.asked


def test_few_references_stay() -> None:
    transport = Said([ended for _ in range(TASKS_KEPT + 1) for ended in (Ended(KEPT), counted())])
    runs = TrialRuns(transport, INSTRUCTIONS)
    for number in range(TASKS_KEPT + 1):
        assert isinstance(runs.run(job(f"task {number}")), Observation)
    assert transport.forgotten == [transport.asked[0][1]]


def test_a_failed_reference_fails_every_program_of_its_task_unless_the_link_was_why() -> None:
    transport = Said([Ended("", Failure("link_lost", "gone")), Ended("", Failure("crash", "SIGSEGV"))])
    runs = TrialRuns(transport, INSTRUCTIONS)
    found = [runs.run(job()) for _ in range(3)]
    assert found[0] == Failure("link_lost", "gone") and found[1] == found[2]
    assert isinstance(found[1], Failure) and found[1].kind == "reference" and "crash: SIGSEGV" in found[1].text and not transport.answers


@pytest.mark.parametrize(("ended", "kind"), (
    (Ended("", Failure("timeout", "late")), "timeout"), (Ended("no JSON"), "exit"), (Ended(RIGHT[:-4]), "exit"),
    (Ended('{"failure": ["memory", "no room"]}'), "memory"),
    (Ended(RIGHT), "machine"), (counted(0.0), "machine"), (counted(float("nan")), "machine"),
))  # fmt: skip
def test_failures_are_values(ended: Ended, kind: str) -> None:
    found = TrialRuns(Said([Ended(KEPT), ended]), INSTRUCTIONS).run(job())
    assert isinstance(found, Failure) and found.kind == kind


def test_a_wrong_answer_says_where() -> None:
    answer = json.dumps({**json.loads(RIGHT), "check": [{**CHECK, "wrong": 2, "at": 5, "expected": "x3ff0000000000000"}]})
    found = TrialRuns(Said([Ended(KEPT), Ended(answer)]), INSTRUCTIONS).run(job())
    assert found == Failure("wrong_answer", "output 'C': 2 of 60 elements wrong, first at (5,): found 2.0, expected 1.0, allowed difference 1")


@pytest.mark.parametrize("checks", ([], [{**CHECK, "size": 59}], [{**CHECK, "argument": 1}], [{**CHECK, "argument": 7}]))
def test_an_output_that_nobody_compared_is_not_right(checks: list[object]) -> None:
    answer = json.dumps({**json.loads(RIGHT), "check": checks})
    found = TrialRuns(Said([Ended(KEPT), Ended(answer, counters={"instructions": 7.0})]), INSTRUCTIONS).run(job())
    assert isinstance(found, Failure) and found.kind == "exit" and "of 60 elements were compared with the reference" in found.text


@pytest.mark.parametrize("answer", (RIGHT, KEPT.replace('"size": 60', '"size": 59'), KEPT.replace('"outputs": [', '"outputs": [], "others": [')))
def test_a_reference_answers_for_all_its_outputs(answer: str) -> None:
    found = TrialRuns(Said([Ended(answer)]), INSTRUCTIONS).run(job())
    assert isinstance(found, Failure) and found.kind == "reference" and "instead of [60]" in found.text


def test_a_reference_without_sums_proves_nothing() -> None:
    found = TrialRuns(Said([Ended(KEPT)]), INSTRUCTIONS, proof=HostProof()).run(job())
    assert isinstance(found, Failure) and found.kind == "reference" and "sums of the arguments [], instead of the outputs [2]" in found.text


def test_real_values_come_from_a_file_on_the_device(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones(60, np.float32))
    transport = Said([Ended(KEPT), counted()])
    made = job()
    TrialRuns(transport, INSTRUCTIONS).run(replace(made, task=replace(made.task, files=(("A", str(tmp_path / "a.npy")),))))
    assert all("file 0 f4 240 /device/a.npy\nfill 1 f4" in recipe for _, _, recipe in transport.asked)


@pytest.mark.parametrize("values", (np.ones(59, np.float32), np.ones(60), np.ones((6, 10), np.float32).T))
def test_other_values_are_refused(values: np.ndarray[tuple[int, ...], np.dtype[np.float32]], tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", values)
    made = job()
    with pytest.raises(MeasureError, match=r"a.npy for 'A', which has float.* give float32 of shape \(60,\), in C order"):
        TrialRuns(Said([]), INSTRUCTIONS).run(replace(made, task=replace(made.task, files=(("A", str(tmp_path / "a.npy")),))))


@pytest.mark.compiler
def test_a_program_times_itself(tmp_path: Path) -> None:
    assert TASK.reference is not None
    options = TimingOptions(repeat=4, min_repeat_ms=0.2, stopping=Stopping(contender_repeats=2))
    right = Artifact(SUM, built(SUM), "kernel", PROGRAM)
    made = Job(TASK, right, Artifact(TASK.reference, built(TASK.reference), "kernel", PROGRAM), options)
    runs = TrialRuns(Here(tmp_path), SECONDS)
    seen = runs.run(made)
    assert isinstance(seen, Observation) and len(seen.costs) == 6 and min(seen.costs) > 0 and seen.unit == SECONDS and not seen.cut_short
    for busy in (3_000_000, 300_000_000):  # beyond 50 ms a first call decides
        slow = built(kernel(f"for (volatile int i = 0; i < {busy}; ++i); {ADD}", ARGUMENTS))
        cut = runs.run(replace(made, artifact=replace(right, path=slow), best=1e-9))
        assert isinstance(cut, Observation) and cut.cut_short and len(cut.costs) == 1
    twice = kernel(f"static int calls; {ADD} if (calls++ > 2) c[9] = 7;", ARGUMENTS)
    later = runs.run(replace(made, artifact=replace(right, path=built(twice))))
    assert isinstance(later, Failure) and later.text.startswith("after repeated calls: output 'C': 1 of 60 elements wrong, first at (9,): found 7.0")


@pytest.mark.compiler
def test_an_element_that_was_never_written_is_named_before_wrong_ones(tmp_path: Path) -> None:
    body = ADD.replace("c[i] =", "if (i != 9) c[i] = i == 0 ? 7 :")
    made = replace(job(), timing=TimingOptions(min_repeat_ms=0.1))
    assert made.reference is not None
    reference = replace(made.reference, path=built(made.reference.source))
    made = replace(made, artifact=replace(made.artifact, path=built(kernel(body, ARGUMENTS))), reference=reference)
    assert TrialRuns(Here(tmp_path), SECONDS).run(made) == Failure("wrong_answer", "output 'C': 1 of 60 elements never written, first at (9,)")


@pytest.mark.compiler
@pytest.mark.parametrize(("body", "kind", "text"), [
    (ADD + " c[60] = a[60];", "out_of_bounds", "wrote past the end of 'C', first at byte 240"),
    (ADD.replace("c[i] = a[i] + b[i]", "c[i] = c[i] > a[i] + b[i] ? c[i] : a[i] + b[i]"), "wrong_answer", "output 'C': 20 of 60 elements never written"),
    (f"int *w = (int *)workspace; if (w[0] < 5) w[0] = 5; {ADD} c[7] += w[0] != 5;", "wrong_answer", "after repeated calls: output 'C': 1 of 60"),
])  # fmt: skip
def test_what_was_in_memory_before_shows(body: str, kind: str, text: str, tmp_path: Path) -> None:
    source, made = kernel(body, ARGUMENTS, workspace_bytes=64), job()
    assert made.reference is not None
    made = replace(made, artifact=replace(made.artifact, source=source, path=built(source)), timing=TimingOptions(min_repeat_ms=0.1),
                   reference=replace(made.reference, path=built(made.reference.source)))  # fmt: skip
    found = TrialRuns(Here(tmp_path), SECONDS).run(made)
    assert isinstance(found, Failure) and found.kind == kind and text in found.text, found


REPEATED = "{0} *c = args[2], s = 0; for (long k = 0; k < {1}; ++k) s += 0.1f; for (int i = 0; i < 60; ++i) c[i] = s;"


@pytest.mark.compiler
def test_long_sums_are_held_to_the_plain_program_on_this_machine(tmp_path: Path) -> None:
    length = 1_000_000
    plain, short = (kernel(REPEATED.format("float", count), ARGUMENTS) for count in (length, length - length // 20))
    reference = replace(kernel(REPEATED.format("double", length), WIDE), plain=plain)
    task, proof, program = MeasureTask("repeated", reference, length), HostProof(), built(reference)

    def run(source: CSource, check: Proof, folder: str) -> Observation | Failure:
        (tmp_path / folder).mkdir(exist_ok=True)
        made = Job(task, Artifact(source, built(source), "kernel", PROGRAM), Artifact(reference, program, "kernel", PROGRAM), TimingOptions(min_repeat_ms=0.1))
        return TrialRuns(Here(tmp_path / folder), SECONDS, proof=check).run(made)

    assert isinstance(run(plain, proof, "proved"), Observation)
    for source, check in ((short, proof), (plain, no_proof)):
        found = run(source, check, "other")
        assert isinstance(found, Failure) and found.kind == "wrong_answer", found


@pytest.mark.compiler
def test_a_kept_file_that_is_damaged_is_not_read(tmp_path: Path) -> None:
    made = replace(job(), timing=TimingOptions(min_repeat_ms=0.1))
    assert made.reference is not None
    made = replace(made, artifact=replace(made.artifact, path=built(SUM)), reference=replace(made.reference, path=built(made.reference.source)))
    runs = TrialRuns(Here(tmp_path), SECONDS)
    assert isinstance(runs.run(made), Observation)
    (kept,) = tmp_path.iterdir()
    content = kept.read_bytes()
    for word, number in ((4, 1 << 20), (5, 1 << 40), (7, 4), (7, 9)):  # of the first output: offset, elements, bytes of an element
        kept.write_bytes(content[: 8 * word] + number.to_bytes(8, "little") + content[8 * word + 8 :])
        found = runs.run(made)
        assert isinstance(found, Failure) and found.kind == "machine" and "damaged" in found.text, (word, found)


@pytest.mark.compiler
def test_threads_share_the_work_of_a_program(tmp_path: Path) -> None:
    body = "static void part(void *ctx, long begin, long end) { void *const *args = ctx; float *a = args[0], *b = args[1], *c = args[2]; "
    body += "for (long i = begin; i < end; ++i) c[i] = a[i] + b[i]; }"
    source = kernel("parallel_for(pool, part, (void *)args, 60);", ARGUMENTS, threads=2)
    source = replace(source, text=source.text.replace("void kernel(", f"{body}\nvoid kernel("))
    assert TASK.reference is not None
    made = Job(replace(TASK, threads=2), Artifact(source, built(source), "kernel", PROGRAM), Artifact(TASK.reference, built(TASK.reference), "kernel", PROGRAM))
    assert isinstance(TrialRuns(Here(tmp_path), SECONDS).run(replace(made, timing=TimingOptions(min_repeat_ms=0.1))), Observation)


@pytest.mark.compiler
def test_how_far_outputs_move_is_found_on_the_device_as_here(tmp_path: Path) -> None:
    body = "double *a = args[0], *b = args[1], *c = args[2]; for (int i = 0; i < 60; ++i) c[i] = a[i] * (i % 7) + b[i] / (i > 50 ? 0 : 1);"
    source = kernel(body, WIDE)
    fills = fills_of(ARGUMENTS, 2, {})
    recipe = recipe_text([*input_lines(WIDE, dict(fills)), moves_line(2, "")])
    assert '"reference"' in said(built(source), recipe, "reference", str(tmp_path / "kept")).stdout
    kept = read_kept((tmp_path / "kept").read_bytes(), WIDE[2:])
    inputs = [fills[name].array((60,)).astype(np.float64) for name in "AB"]

    def outputs(values: list[np.ndarray[tuple[int, ...], np.dtype[np.float64]]]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        with np.errstate(divide="ignore"):
            return values[0] * (np.arange(60) % 7) + values[1] / np.where(np.arange(60) > 50, 0, 1)

    expected, eps, key = outputs(inputs), float(np.finfo("float32").eps), key_of(2, "moves")
    assert np.allclose(kept.outputs["C"].astype(np.float64), expected, rtol=1e-15) and kept.input_scale == max(float(np.abs(one).max()) for one in inputs)
    moved = []
    for move in range(3):
        keys = generated(key + move, 2)
        moved.append(outputs([one * (1 - uniform(generated(int(keys[place]), 60), 8) * eps) for place, one in enumerate(inputs)]))
    own, theirs = moves_of(expected, moved), kept.moves["C"]
    assert theirs.usual == pytest.approx(own.usual, rel=1e-6) and own.each is not None and theirs.each is not None
    assert np.allclose(theirs.each, own.each, rtol=1e-5, atol=1e-15) and (own.each[51:] == 0).all() and own.each[:51].any()


def test_other_files_are_no_references() -> None:
    for content in (b"", b"x" * 200, (0x32747065736E616B).to_bytes(8, "little") + (9).to_bytes(8, "little") + bytes(400)):
        with pytest.raises(ValueError, match="not the size of such a file"):
            read_kept(content, WIDE[2:])
