import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.source import Argument, CSource, Pack
from ansor.codegen.toolchain import Compiler
from ansor.measure.measure_task import MeasureTask
from ansor.measure.measurer import Candidate, Measurer
from ansor.measure.timing import TimingOptions

pytestmark = pytest.mark.compiler
GOOD = "for (long i = 0; i < n; ++i) c[i] = a[i] + b[i];"
QUICK = TimingOptions(min_repeat_ms=0.5, timeout_seconds=5.0)
MakeSource = Callable[..., CSource]


@pytest.fixture(scope="module")
def measurer(compiler: Compiler) -> Iterator[Measurer]:
    with Measurer(toolchain=CToolchain(compiler), timing=QUICK, jobs=2) as measurer:
        yield measurer


@pytest.fixture(scope="module")
def task(source_of: MakeSource) -> MeasureTask:
    return MeasureTask("add", source_of(GOOD, dtype="float64"))


BUSY = "for (volatile long n = 0; n < 200000000; ++n) {}"


def test_a_batch_in_order_with_equal_ones_folded(measurer: Measurer, task: MeasureTask, source_of: MakeSource) -> None:
    bodies = [GOOD, "undeclared;", "abort();", GOOD, GOOD + ";", GOOD.replace("+ b", "- b"), BUSY + GOOD]
    jobs = [Candidate(task, source_of(body, entry=f"k{index}")) for index, body in enumerate(bodies)]
    found = list(measurer.measure(jobs))
    kinds = [None if m.failure is None else m.failure.kind for m in found]
    assert kinds == [None, "compile", "crash", None, None, "wrong_answer", None]
    assert [m.folded for m in found] == [False, False, False, True, True, False, False]
    assert found[3].costs == found[4].costs == found[0].costs and found[3].elapsed == 0 < found[0].elapsed
    assert found[6].cut_short and found[6].cost > 0.03 > found[0].cost
    (again,) = measurer.measure(jobs[:1])
    assert again.folded
    assert len(list(measurer.builder._work.path.iterdir())) == 2  # the lock and the reference


def test_accidents_are_tried_again_in_a_later_batch(measurer: Measurer, task: MeasureTask, source_of: MakeSource) -> None:
    accident = GOOD + "kept = malloc(1l << 40); if (!kept) abort(); memset(kept, 1, 1l << 33);"
    jobs = [Candidate(task, source_of(body, entry=f"again{index}")) for index, body in enumerate([accident, accident, "c[1] = 7; abort();"])]
    for folded in ([False, True, False], [False, True, True]):
        found = list(measurer.measure(jobs))
        assert [m.failure and m.failure.kind for m in found] == ["memory", "memory", "crash"] and [m.folded for m in found] == folded
    assert all(len(key) == 32 for key in measurer._seen)


def test_a_reference_that_does_not_build(measurer: Measurer, source_of: MakeSource) -> None:
    job = Candidate(MeasureTask("broken", source_of("undeclared;", dtype="float64")), source_of(GOOD))
    (found,) = measurer.measure([job])
    assert found.failure is not None and found.failure.kind == "reference" and "undeclared" in found.failure.text


def test_packed_constants_and_ranges(measurer: Measurer, source_of: MakeSource) -> None:
    reverse_pairs = Pack((500, 2), ((2, 1),))
    padded = Pack((502, 2), ((2, 1),))

    def constant(source: CSource, pack: Pack | None) -> CSource:
        a, b, c = source.arguments
        return replace(source, arguments=(a, replace(b, role="constant", pack=pack), c))

    reference = constant(source_of("for (long i = 0; i < n; ++i) c[i] = b[a[i]];", dtype="int32"), None)
    task = MeasureTask("gather", reference, ranges=(("A", 0, 1000),))
    packed = source_of("for (long i = 0; i < n; ++i) c[i] = b[a[i] / 2 * 2 + a[i] % 2] + b[1003];", dtype="int32")
    jobs = [Candidate(task, constant(packed, padded)), Candidate(task, constant(packed, reverse_pairs)), Candidate(task, reference)]
    kinds = [m.failure and m.failure.kind for m in measurer.measure(jobs)]
    assert kinds[0] is None and kinds[1] == "wrong_answer" and kinds[2] is None


def test_rank_zero_outputs(measurer: Measurer) -> None:
    def sum_of(c_type: str, dtype: str) -> CSource:
        body = f"{c_type} *a = args[0], s = 0; for (int i = 0; i < 100; ++i) s += a[i]; *({c_type} *)args[1] = s;"
        arguments = (Argument("A", (100,), dtype, "input"), Argument("S", (), dtype, "output"))
        return CSource(f"void total(void *const *args, unsigned char *w, void *f, void *p) {{ {body} }}", "total", arguments)

    (found,) = measurer.measure([Candidate(MeasureTask("sum", sum_of("double", "float64"), 100), sum_of("float", "float32"))])
    assert found.costs, found.failure


def test_threads_get_a_pool(measurer: Measurer, task: MeasureTask, source_of: MakeSource) -> None:
    body = "void *x[] = {a, b, c}; parallel_for(pool, body, x, n);"
    head = """static void body(void *x, long begin, long end) {
    const float *a = ((void **)x)[0], *b = ((void **)x)[1]; float *c = ((void **)x)[2];
    for (long i = begin; i < end; ++i) c[i] = a[i] + b[i];
}"""
    source = source_of(body, threads=2)
    place = source.text.index("void kernel(")
    text = source.text[:place] + head + "\n" + source.text[place:]
    (found,) = measurer.measure([Candidate(task, replace(source, text=text))])
    assert found.costs, found.failure


def test_building_and_running_may_overlap(compiler: Compiler, task: MeasureTask, source_of: MakeSource) -> None:
    with Measurer(toolchain=CToolchain(compiler), timing=QUICK, jobs=1, overlap=True) as measurer:
        jobs = [Candidate(task, source_of(GOOD + f"workspace[{i}] = 1;", entry=f"k{i}", workspace_bytes=64)) for i in range(12)]
        assert all(m.costs for m in measurer.measure(jobs))


@pytest.fixture
def interruptible() -> Iterator[None]:
    """A shell starts what runs in its background with Ctrl-C ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_stopping_half_way_leaves_nothing(compiler: Compiler, task: MeasureTask, source_of: MakeSource) -> None:
    jobs = [Candidate(task, source_of(GOOD + f"c[0] += {i};")) for i in range(20)]
    with Measurer(toolchain=CToolchain(compiler), timing=QUICK, jobs=1) as measurer:
        work: Path = measurer.builder._work.path
        iterator = measurer.measure(jobs)
        next(iterator)
        iterator.close()
        assert len(list(work.iterdir())) == 2
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            list(measurer.measure([Candidate(task, source_of(GOOD + "sleep(4);"))] + jobs))
        (found,) = measurer.measure([Candidate(task, source_of(GOOD))])
        assert found.costs  # and it works on
    assert not work.exists()
