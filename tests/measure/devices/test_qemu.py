"""Devices under QEMU's user mode: the contract, exact counts, and failures by their kinds."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ansor.cli import main
from ansor.codegen.artifact import PROGRAM, Artifact
from ansor.codegen.source import Argument, CSource
from ansor.codegen.toolchain import cached_library, find_compiler
from ansor.errors import DeviceError
from ansor.measure.device import Device, Job, Observation
from ansor.measure.device_kinds import find_kind
from ansor.measure.devices.program_runner import ProgramResult, ProgramRunner
from ansor.measure.devices.qemu import PLUGIN, SLOWER, QemuDevice, QemuTransport, cpu_of, missing, plugin
from ansor.measure.failure import Failure
from ansor.measure.measure_task import MeasureTask
from ansor.measure.timing import TimingOptions
from ansor.measure.trial.fill import fills_of
from ansor.measure.trial.proof import HostProof
from ansor.measure.trial.recipe import input_lines, recipe_text
from ansor.measure.trial.runs import TrialRuns
from ansor.measure.trial.transport import CLOSED, TOO_MUCH, Limits
from ansor.targets.base import parse_target
from ansor.targets.unit import INSTRUCTIONS
from ansor.testing.device_contract import DeviceContract
from tests.counted_agent import CountedAgent, counting_agent
from tests.trial_programs import AARCH64, ARM, RISCV64, Machine, built, kernel

pytestmark = [pytest.mark.compiler, pytest.mark.usefixtures("emulators")]
MACHINES = {"qemu-aarch64": AARCH64, "qemu-arm": ARM, "qemu-riscv64": RISCV64}
ADD = "float *a = args[0], *b = args[1], *c = args[2]; for (int i = 0; i < 100; ++i) c[i] = a[i] + b[i];"
ARGUMENTS = tuple(Argument(name, (100,), "float32", "output" if name == "C" else "input") for name in "ABC")
REFERENCE = kernel(ADD.replace("float", "double"), [replace(one, dtype="float64") for one in ARGUMENTS])
TASK = MeasureTask("add", REFERENCE)


class TestQemuAarch64(DeviceContract):
    target = "arm -mcpu=cortex-a53"
    long = 384

    def open(self) -> Device:
        return QemuDevice("qemu-aarch64", "aarch64", "cortex-a53")


class TestQemuArm(DeviceContract):
    target = "armv7 -mcpu=cortex-a7"
    long = 384
    trials = 3

    def open(self) -> Device:
        return QemuDevice("qemu-arm", "arm", "cortex-a7")


@pytest.fixture(params=MACHINES)
def machine(request: pytest.FixtureRequest) -> Machine:
    return MACHINES[request.param]


@pytest.fixture
def device(machine: Machine) -> Iterator[QemuDevice]:
    device = QemuDevice(machine.emulator, machine.emulator.removeprefix("qemu-"), machine.cpu)
    yield device
    device.close()


def artifact(source: CSource, machine: Machine) -> Artifact:
    return Artifact(source, built(source, machine), source.entry, PROGRAM)


def job(machine: Machine, body: str = ADD, task: MeasureTask = TASK, **options: object) -> Job:
    assert task.reference is not None
    timing = TimingOptions(**{"timeout_seconds": 5.0, **options})  # type: ignore[arg-type]
    return Job(task, artifact(kernel(body, ARGUMENTS, workspace_bytes=64), machine), artifact(task.reference, machine), timing)


def test_counts_are_exact_and_repeatable(device: QemuDevice, machine: Machine) -> None:
    empty = device.run(Job(TASK, artifact(kernel("", ARGUMENTS), machine)))
    loop = 'for (int i = 0; i < 1000; ++i) __asm__ volatile("nop\\nnop");'
    seen = [device.run(Job(TASK, artifact(kernel(text, ARGUMENTS), machine))) for text in (loop, loop, loop.replace("nop\\nnop", "nop\\nnop\\nnop"))]
    assert isinstance(empty, Observation) and empty.costs == (1.0,)  # it returns
    counts = [one.costs[0] for one in seen if isinstance(one, Observation)]
    assert len(counts) == 3 and counts[0] == counts[1] and counts[2] - counts[0] == 1000 and counts[0] >= 3000


def test_agents_under_emulators_that_count_agree(tmp_path: Path) -> None:
    """The benchmark of farms measures on them."""
    board = CountedAgent(counting_agent(tmp_path / "board", f"{AARCH64.emulator} -cpu {AARCH64.cpu}"), parse_target("arm -mcpu=cortex-a72"), print)
    emulator = QemuDevice("qemu-aarch64", "aarch64", AARCH64.cpu)
    try:
        by_agent, alone = board.run(job(AARCH64)), emulator.run(job(AARCH64))
    finally:
        board.close()
        emulator.close()
    assert isinstance(by_agent, Observation) and isinstance(alone, Observation)
    assert by_agent.costs == alone.costs and by_agent.unit == alone.unit


def test_later_emulators_count_the_same_by_calls(machine: Machine, tmp_path: Path) -> None:
    """Their plugins cannot add inside of a block."""
    by_call = cached_library(find_compiler(), "qemu-count-by-call", PLUGIN.read_text(), flags=("-DANSOR_BY_CALL",))
    made = job(machine)
    recipe = recipe_text([*input_lines(ARGUMENTS, dict(fills_of(ARGUMENTS, 0, {}))), "count 0"])
    transports = [QemuTransport(machine.emulator, machine.cpu, library, tmp_path) for library in (plugin(), by_call)]
    ended = [one.run(made.artifact, "trial", "-", recipe, Limits(20, 0)) for one in transports]
    assert ended[0].counters == ended[1].counters and ended[0].counters["instructions"] > 50


def test_real_values_count_the_same_and_travel_nowhere(device: QemuDevice, machine: Machine, tmp_path: Path) -> None:
    made = job(machine)
    generated = device.run(made)
    np.save(tmp_path / "a b.npy", np.linspace(-3, 5, 100, dtype=np.float32))
    real = device.run(replace(made, task=replace(TASK, files=(("A", str(tmp_path / "a b.npy")),))))
    assert isinstance(generated, Observation) and isinstance(real, Observation), (generated, real)
    assert generated.costs == real.costs and generated.unit == INSTRUCTIONS and generated.check
    assert generated.counters["tensor_bytes_sent"] == real.counters["tensor_bytes_sent"] == 0


@pytest.mark.parametrize(("body", "kind", "said"), (
    (ADD.replace("a[i] + b[i]", "a[i] - b[i]"), "wrong_answer", "100 of 100 elements wrong, first at (0,): found "),
    (ADD.replace("i < 100", "i < 99"), "wrong_answer", "1 of 100 elements never written, first at (99,)"),
    (ADD + " c[100] = 1;", "out_of_bounds", "wrote past the end of 'C', first at byte 40"),
    (ADD + " c[-1] = 0;", "out_of_bounds", "wrote before the start of 'C', bytes before it: 4"),
    (ADD + " c[2000000] = 0;", "out_of_bounds", "touched memory far outside 'C'"),
    (ADD + " workspace[64] = 0;", "out_of_bounds", "wrote past the end of 'workspace', first at byte 64"),
    (ADD + " a[3] += 1;", "wrong_answer", "input 'A' was changed"),
    (ADD + " *(volatile int *)8 = 1;", "crash", "SIGSEGV"),
    (ADD + " while (args[0]) __asm__ volatile(\"\");", "timeout", "still running"),
    (ADD + " extern void _exit(int); _exit(3);", "exit", "ended with status 3"),
    (ADD + " extern void _exit(int); _exit(0);", "exit", "without an answer"),
))  # fmt: skip
def test_failures_have_kinds(body: str, kind: str, said: str) -> None:
    device = QemuDevice("qemu-aarch64", "aarch64", "cortex-a72")
    found = device.run(job(AARCH64, body, timeout_seconds=0.05 if kind == "timeout" else 5.0))
    assert isinstance(found, Failure) and found.kind == kind and said in found.text, found
    assert isinstance(device.run(job(AARCH64)), Observation)  # and the next one runs
    device.close()


@pytest.mark.parametrize(("cpu", "runs"), (("cortex-a72", False), ("cortex-a76", True), ("max", True)))
def test_an_instruction_that_the_processor_lacks_has_a_kind_of_its_own(cpu: str, runs: bool) -> None:
    wide = replace(AARCH64, mcpu="cortex_a76")
    body = '__asm__ volatile("sdot v0.4s, v1.16b, v2.16b" ::: "v0");' + ADD
    device = QemuDevice(f"qemu-aarch64:{cpu}", "aarch64", cpu)
    found = device.run(Job(TASK, artifact(kernel(body, ARGUMENTS), wide), artifact(REFERENCE, AARCH64)))
    assert isinstance(found, Observation) if runs else isinstance(found, Failure) and found.kind == "instruction", found
    device.close()


def test_a_reference_that_is_wrong_on_the_device_is_found_out(tmp_path: Path) -> None:
    """As a compiler's mistake would be: here another program stands in the place of the reference, which runs on the device as an agent would have it."""
    other = kernel(ADD.replace("float", "double").replace("a[i] + b[i]", "a[i] + b[i] + 1e-8 * (i == 50)"), REFERENCE.arguments)
    runs = TrialRuns(QemuTransport("qemu-aarch64", "cortex-a72", plugin(), tmp_path), INSTRUCTIONS, slower=SLOWER, proof=HostProof())
    found = runs.run(replace(job(AARCH64), reference=replace(artifact(other, AARCH64), source=REFERENCE)))
    assert isinstance(found, Failure) and found.kind == "reference" and "different results on the device and on this machine: output 'C'" in found.text, found


def test_a_reference_runs_on_this_machine_and_counts_are_the_same(tmp_path: Path) -> None:
    """Inputs from files, outputs compared with those of this machine; nothing of it is in the count."""
    device = QemuDevice("qemu-aarch64", "aarch64", "cortex-a72")
    here = device.run(replace(job(AARCH64), reference=replace(artifact(REFERENCE, AARCH64), path=tmp_path / "none")))
    device.close()
    there = TrialRuns(QemuTransport("qemu-aarch64", "cortex-a72", plugin(), tmp_path), INSTRUCTIONS, slower=SLOWER, proof=HostProof()).run(job(AARCH64))
    assert isinstance(here, Observation) and isinstance(there, Observation) and here.costs == there.costs
    assert (here.check, there.check) == ("compared with the reference on this machine", "compared with the reference on the device")


def test_outputs_that_are_nowhere_finite_are_tried_with_positive_inputs() -> None:
    root = ADD.replace("a[i] + b[i]", "sqrt(a[i]) + b[i]")
    task = MeasureTask("root", kernel(root.replace("float", "double"), REFERENCE.arguments))
    device = QemuDevice("qemu-aarch64", "aarch64", "cortex-a72")
    assert isinstance(device.run(job(AARCH64, root.replace("sqrt", "sqrtf"), task)), Observation)
    never = MeasureTask("never", kernel(root.replace("float", "double").replace("sqrt(a", "sqrt(-a"), REFERENCE.arguments))
    found = device.run(job(AARCH64, root, never))
    assert isinstance(found, Failure) and found.kind == "reference" and "is NaN in 100%" in found.text, found
    device.close()


def test_closing_ends_what_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    device, begun = QemuDevice("qemu-aarch64", "aarch64", "cortex-a72"), threading.Event()
    found: list[object] = []
    assert isinstance(device.run(job(AARCH64)), Observation)
    called = ProgramRunner.run

    def run(*given: Any, **named: Any) -> ProgramResult:
        begun.set()
        return called(*given, **named)

    monkeypatch.setattr(ProgramRunner, "run", run)
    endless = job(AARCH64, ADD + " while (args[0]) __asm__ volatile(\"\");", timeout_seconds=100.0)
    thread = threading.Thread(target=lambda: found.append(device.run(endless)))
    thread.start()
    assert begun.wait(60)
    device.close()
    thread.join(20)
    assert not thread.is_alive() and found == [CLOSED]
    monkeypatch.undo()
    assert isinstance(device.run(job(AARCH64)), Observation)
    device.close()


def test_memory_and_output_have_limits() -> None:
    take = "extern void *malloc(unsigned long); char *volatile p = malloc(3UL << 30); if (!p) { extern void _exit(int); _exit(7); }"
    say = " extern int printf(const char *, ...), fflush(void *); for (int i = 0; i < 100000; ++i) printf(\"0123456789\"); fflush((void *)0);"
    device = QemuDevice("qemu-aarch64", "aarch64", "cortex-a72")
    refused = device.run(job(AARCH64, take + ADD, memory_bytes=64 << 20))
    assert isinstance(refused, Failure) and refused.text == "ended with status 7", refused
    assert isinstance(device.run(job(AARCH64, take + ADD, memory_bytes=8 << 30)), Observation)
    found = device.run(job(AARCH64, ADD + say))
    assert found == TOO_MUCH
    device.close()


def test_processors_as_the_emulator_calls_them() -> None:
    assert cpu_of("aarch64", "cortex-a72") == "cortex-a72" and cpu_of("aarch64", "cortex_a53") == "cortex-a53"
    assert cpu_of("aarch64", "neoverse-v1") == "max,sve-max-vq=2" and cpu_of("aarch64", "apple-m1") == "max" and cpu_of("arm", "cortex-a7") == "cortex-a7"
    assert cpu_of("riscv64", "generic_rv64+m+a+f+d+c+v") == "rv64,v=true,vlen=128" and cpu_of("riscv64", "sifive_u74") == "rv64"


def test_what_is_missing_is_said_with_the_cure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert missing("aarch64") == "" and find_kind("qemu-arm:max").missing() == ""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert missing("arm") == "there is no program qemu-arm; install it with `apt-get update && apt-get install -y qemu-user` (qemu-user-static lacks plugins)"


def test_doctor_says_what_is_missing_and_how_it_is_installed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert main(["doctor", "--target", "arm"]) == 0
    assert "qemu-aarch64" in capsys.readouterr().out
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["doctor", "--target", "arm"]) == 1
    assert "apt-get install -y qemu-user" in capsys.readouterr().out


def test_its_text_names_a_processor() -> None:
    opened = find_kind("qemu-aarch64:cortex-a57").open("qemu-aarch64:cortex-a57", parse_target("arm"), print)
    assert isinstance(opened, QemuDevice) and opened.name == "qemu-aarch64:cortex-a57" and opened.model == "qemu-aarch64"


@pytest.mark.parametrize("target", ["cpu -threads=1", "armv7"])
def test_programs_for_other_processors_are_refused(target: str) -> None:
    with pytest.raises(DeviceError, match="on qemu-aarch64, which runs aarch64 programs; they are built for (x86_64|arm): leave devices out"):
        find_kind("qemu-aarch64").open("qemu-aarch64", parse_target(target), print)
