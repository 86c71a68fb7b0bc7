import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ansor.codegen.source import CSource
from ansor.measure.machine_trouble import KIND
from ansor.measure.protocol import call_data
from ansor.measure.runner import InputOptions, Run, Runner

pytestmark = pytest.mark.compiler
GOOD = "for (long i = 0; i < n; ++i) c[i] = a[i] + b[i];"

BAD = {
    "segfault": ("*(volatile int *)8 = 1;", "crash", "SIGSEGV"),
    "abort": ("abort();", "crash", "SIGABRT"),
    "divide by zero": ("volatile int z = 0; c[0] = 1000 / z;", "crash", "SIGFPE"),
    "says why": ('fprintf(stderr, "my reason"); abort();', "crash", "my reason"),
    "stack": ("volatile char big[64 << 20]; for (long i = 0; i < sizeof big; i += 512) big[sizeof big - 1 - i] = 1;", "crash", "stack"),
    "hang": ("for (;;) __asm__ volatile(\"\");", "timeout", "1 s"),
    "exit": ("exit(0);", "exit", "code 0"),
    "exit quickly": ("_exit(3);", "exit", "code 3"),
    "malloc": ("kept = malloc(1l << 30); memset(kept, 1, 1l << 30);", "memory", "allocation"),
    "many mallocs": ("for (;;) { kept = malloc(1 << 20); memset(kept, 1, 1 << 20); }", "memory", "allocation"),
    "one past the end": (GOOD + "c[n] = 0;", "out_of_bounds", "past the end of 'C' (4000 bytes), first at byte 4000"),
    "one before the start": (GOOD + "c[-1] = 0;", "out_of_bounds", "before the start of 'C', first at byte -4"),
    "from one band to another": (GOOD + "c[n] = a[n];", "out_of_bounds", "past the end of 'C' (4000 bytes), first at byte 4000"),
    "far past the end": (GOOD + "c[n + 1000000] = 0;", "out_of_bounds", "outside 'C'"),
    "far before the start": (GOOD + "b[-1000000] = 0;", "out_of_bounds", "outside 'B'"),
    "past the workspace": (GOOD + "workspace[64] = 0;", "out_of_bounds", "workspace"),
    "maximum with what was there": ("for (long i = 0; i < n; ++i) c[i] = c[i] > a[i] + b[i] ? c[i] : a[i] + b[i];", "wrong_answer", "never written"),
    "reads a variable that it did not begin": ("volatile float t[2000]; for (long i = 0; i < n; ++i) c[i] = a[i] + b[i] + 0 * t[2 * i];",
                                               "wrong_answer", "elements wrong"),
    "maximum with what was in the workspace": ("int *w = (int *)workspace; if (w[0] < 5) w[0] = 5;"
                                               "for (long i = 0; i < n; ++i) c[i] = a[i] + b[i] + (w[0] != 5);", "wrong_answer",
                                               "after repeated calls: output 'C': 1000 of 1000"),
    "wrong": (GOOD + "c[7] += 1e-3f;", "wrong_answer", "1 of 1000 elements wrong, first at (7,)"),
    "not written": ("for (long i = 0; i < n - 1; ++i) c[i] = a[i] + b[i];", "wrong_answer", "1 of 1000 elements never written"),
    "nan": (GOOD + "c[3] = 0.0f / (c[3] - c[3]);", "wrong_answer", "(3,)"),
    "adds to what is there": ("for (long i = 0; i < n; ++i) c[i] += a[i] + b[i];", "wrong_answer", "1000 of 1000 elements never written"),
    "wrong the second time": ("static int calls; " + GOOD + "if (calls++) c[0] = 9;", "wrong_answer", "after repeated calls"),
    "changes its input": (GOOD + "a[5] = 2;", "wrong_answer", "input 'A' was changed"),
    "leaves a child behind": (GOOD + "if (fork() == 0) sleep(600);", "", ""),
}  # fmt: skip


def run(runner: Runner, build: Callable[[CSource], Path], source: CSource, best: float | None = None) -> Run:
    return runner.run("add", source, build(source), best_seconds=best)


def test_a_good_kernel_is_timed(runner: Runner, build: Callable[[CSource], Path], source_of: Callable[..., CSource]) -> None:
    result = run(runner, build, source_of(GOOD, workspace_bytes=64))  # the first of its task is a contender
    assert result.failure is None
    assert len(result.seconds) == 12 and min(result.seconds) > 0 and not result.cut_short


@pytest.mark.parametrize("name", BAD)
def test_a_bad_kernel_is_a_value(
    name: str, runner: Runner, build: Callable[[CSource], Path], source_of: Callable[..., CSource]
) -> None:
    body, kind, text = BAD[name]
    result = run(runner, build, source_of(body, workspace_bytes=64))
    if not kind:
        assert result.failure is None
        return
    assert result.failure is not None and not result.seconds
    assert (result.failure.kind, text in result.failure.text) == (kind, True), str(result.failure)
    assert runner.restarts == 0


def test_missing_entry_and_library(runner: Runner, build: Callable[[CSource], Path], source_of: Callable[..., CSource]) -> None:
    source = source_of(GOOD)
    renamed = CSource(source.text, "elsewhere", source.arguments)
    result = runner.run("add", renamed, build(source))
    assert result.failure is not None and result.failure.kind == "load" and "elsewhere" in result.failure.text
    result = runner.run("add", source, Path("missing.so"))
    assert result.failure is not None and result.failure.kind == "load"


def test_slow_candidates_are_cut_short(runner: Runner, build: Callable[[CSource], Path], source_of: Callable[..., CSource]) -> None:
    result = run(runner, build, source_of("for (volatile long n = 0; n < 10000000; ++n) {}" + GOOD), best=1e-5)
    assert result.cut_short and len(result.seconds) == 1 and result.seconds[0] > 1e-3


def test_a_lost_worker_is_replaced(runner: Runner, build: Callable[[CSource], Path], source_of: Callable[..., CSource]) -> None:
    before = runner.restarts
    assert run(runner, build, source_of(GOOD)).failure is None
    assert runner._process is not None
    os.kill(runner._process.pid, signal.SIGKILL)
    assert run(runner, build, source_of(GOOD)).failure is None
    assert runner.restarts == before + 1
    result = run(runner, build, source_of("kill(getppid(), 9); sleep(1);"))
    assert result.failure is not None and "measuring process was lost" in result.failure.text
    assert run(runner, build, source_of(GOOD)).failure is None
    runner.restarts = 0


def test_a_failing_reference_fails_its_task(runner: Runner, build: Callable[[CSource], Path], source_of: Callable[..., CSource]) -> None:
    source = source_of("abort();")
    runner.define("broken", source, reference=source, reference_library=build(source))
    good = source_of(GOOD)
    result = runner.run("broken", good, build(good))
    assert result.failure is not None and result.failure.kind == "reference" and "SIGABRT" in result.failure.text


def test_arrays_that_no_machine_has_room_for_are_told(runner: Runner, build: Callable[[CSource], Path], source_of: Callable[..., CSource]) -> None:
    source = source_of(GOOD)
    runner.define("large", replace(source, arguments=tuple(replace(one, shape=(1 << 50,)) for one in source.arguments)))
    failure = runner.run("large", source, build(source)).failure
    assert failure is not None and failure.kind == KIND
    assert "Unable to allocate" in failure.text and "free memory, or use smaller sizes" in failure.text


FORMULA = "for (long i = 0; i < n; ++i) c[i] = {};"


@pytest.mark.parametrize("formula", ["sqrt(a[i]) + b[i]", "log(b[i])", "a[i] / sqrt(b[i] - 0.25)"])
def test_inputs_are_drawn_again_where_the_reference_is_nan(
    formula: str, runner: Runner, build: Callable[[CSource], Path], source_of: Callable[..., CSource]
) -> None:
    wide = source_of("double sqrt(double); double log(double); " + FORMULA.format(formula), dtype="float64")
    head = "float sqrtf(float); float logf(float); "
    narrow = source_of(head + FORMULA.format(formula.replace("sqrt", "sqrtf").replace("log", "logf")))
    wrong = source_of(head + FORMULA.format("a[i]"))
    runner.define(formula, narrow, reference=wide, reference_library=build(wide))
    assert runner.run(formula, narrow, build(narrow)).failure is None
    failure = runner.run(formula, wrong, build(wrong)).failure
    assert failure is not None and failure.kind == "wrong_answer" and "of 1000 elements wrong" in failure.text


def test_a_reference_that_is_never_finite_fails_its_task(
    runner: Runner, build: Callable[[CSource], Path], source_of: Callable[..., CSource]
) -> None:
    wide = source_of("double sqrt(double); " + FORMULA.format("sqrt(a[i] - 7)"), dtype="float64")
    good = source_of(GOOD)
    runner.define("nothing", good, reference=wide, reference_library=build(wide))
    failure = runner.run("nothing", good, build(good)).failure
    assert failure is not None and failure.kind == "reference" and "output 'C' is NaN in 100%" in failure.text
    masked = FORMULA.format("i < 300 ? -1.0f / 0.0f : a[i]")
    wide, good = source_of(masked, dtype="float64"), source_of(masked)
    runner.define("mask", good, reference=wide, reference_library=build(wide))
    assert runner.run("mask", good, build(good)).failure is None


def test_a_long_sum_near_zero(runner: Runner, build: Callable[[CSource], Path], source_of: Callable[..., CSource]) -> None:
    body = "{0} s = 0, t = 0; for (long i = 0; i < n; ++i) {{ s += a[i]; t += a[n - 1 - i]; }} for (long i = 0; i < n; ++i) c[i] = {1};"
    n = 100_000
    wide, good = source_of(body.format("double", "s"), dtype="float64", n=n), source_of(body.format("float", "t"), n=n)
    runner.define("sum", good, reference=wide, reference_library=build(wide), how=InputOptions(n))
    assert runner.run("sum", good, build(good)).failure is None
    half = source_of(body.format("float", "s / 2"), n=n)
    failure = runner.run("sum", half, build(half)).failure
    assert failure is not None and failure.kind == "wrong_answer"


REPEATED = "{0} s = 0; for (long k = 0; k < {1}; ++k) s += 0.1f; for (long i = 0; i < n; ++i) c[i] = s + 0 * a[i];"


def test_a_sum_of_terms_that_repeat_is_held_to_the_plain_program(
    runner: Runner, build: Callable[[CSource], Path], source_of: Callable[..., CSource]
) -> None:
    length = 1_000_000
    wide, plain = source_of(REPEATED.format("double", length), dtype="float64"), source_of(REPEATED.format("float", length))
    lanes = source_of("float s[8] = {0}; for (long k = 0; k < 125000; ++k) for (int j = 0; j < 8; ++j) s[j] += 0.1f;"
                      "for (long i = 0; i < n; ++i) c[i] = s[0] + s[1] + s[2] + s[3] + s[4] + s[5] + s[6] + s[7];")  # fmt: skip
    runner.define("once", plain, reference=wide, reference_library=build(wide), how=InputOptions(length))
    assert runner.run("once", plain, build(plain)).failure is not None
    how = call_data(plain, str(build(plain)))
    runner.define("repeated", plain, reference=wide, reference_library=build(wide), plain=how, how=InputOptions(length))
    for right in (plain, lanes):
        assert runner.run("repeated", right, build(right)).failure is None
    short = source_of(REPEATED.format("float", length - length // 20))
    failure = runner.run("repeated", short, build(short)).failure
    assert failure is not None and failure.kind == "wrong_answer"


def test_more_tasks_than_are_kept(runner: Runner, build: Callable[[CSource], Path], source_of: Callable[..., CSource]) -> None:
    source = source_of(GOOD)
    library = build(source)
    for task in range(6):
        runner.define(f"unverified {task}", source)
        assert runner.run(f"unverified {task}", source, library).failure is None
    assert runner.run("add", source, library).failure is None


def test_noise_floor_is_a_share(runner: Runner) -> None:
    assert 0 <= runner.noise_floor(5) < 100
