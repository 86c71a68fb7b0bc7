from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ansor.codegen.c_toolchain import CToolchain
from ansor.codegen.source import CSource
from ansor.codegen.toolchain import Compiler
from ansor.measure.builder import Builder, Built
from ansor.measure.devices.local import called
from ansor.measure.runner import Run, Runner

pytestmark = pytest.mark.compiler
GOOD = "for (long i = 0; i < n; ++i) c[i] = a[i] + b[i];"


@pytest.fixture
def builder(compiler: Compiler) -> Iterator[Builder]:
    with Builder(CToolchain(compiler), jobs=2) as builder:
        yield builder


def run(runner: Runner, built: Built) -> Run:
    assert built.artifact is not None
    return runner.run("add", called(built.artifact), built.artifact.path)


def digest(built: Built) -> str:
    assert built.artifact is not None
    return built.artifact.digest


def test_only_the_culprit_fails(builder: Builder, source_of: Callable[..., CSource], runner: Runner) -> None:
    sources = [source_of(GOOD, entry=f"k{i}") for i in range(10)]
    sources[3] = source_of("undeclared = 1;", entry="k3")
    built = builder.build(sources)
    assert [one.source for one in built] == sources
    assert [index for index, one in enumerate(built) if one.failure] == [3]
    failure = built[3].failure
    assert failure is not None and failure.kind == "compile" and "undeclared" in failure.text
    assert len({one.artifact and one.artifact.path for one in built}) == 5 + 1  # those beside the culprit alone, the others together
    for one in (built[0], built[9]):
        assert run(runner, one).failure is None


def test_names_of_their_own_do_not_clash(builder: Builder, source_of: Callable[..., CSource], runner: Runner) -> None:
    helper = "static float weight[2] = {1, 1};\nstatic inline float helper(float x)\n{ return x * weight[0] + %s; }\n"
    good, wrong = (
        replace(source, text=(helper % add) + source.text)
        for add, source in (("0", source_of(GOOD.replace("a[i]", "helper(a[i])"))), ("1", source_of(GOOD.replace("a[i]", "helper(a[i])"))))
    )
    built = builder.build([good, wrong, good, wrong])
    assert len({one.artifact and one.artifact.path for one in built}) == 2
    kinds = [run(runner, one).failure for one in built]
    assert [None if kind is None else kind.kind for kind in kinds] == [None, "wrong_answer"] * 2


def test_texts_that_do_not_get_on_are_built_alone(builder: Builder, source_of: Callable[..., CSource]) -> None:
    sources = [replace(s, text=f"struct same {{ int x{i}; }};\n{s.text}") for i, s in enumerate([source_of(GOOD)] * 4)]
    assert not any(one.failure for one in builder.build(sources))
    assert len({one.artifact and one.artifact.path for one in builder.build(sources)}) == 4


def test_equal_machine_code_is_recognised(builder: Builder, source_of: Callable[..., CSource]) -> None:
    bodies = [GOOD, "long other = n; for (long x = 0; x < other; x += 1) c[x] = a[x] + b[x];", GOOD.replace("+", "-")]
    bodies += ["for (long i = 0; i < n; ++i) c[i] = a[i] * 3.14f + b[i];", "for (long i = 0; i < n; ++i) c[i] = a[i] * 3.15f + b[i];"]
    sources = [source_of(body, entry=f"k{i}") for i, body in enumerate(bodies)]
    digests = [digest(builder.build([source])[0]) for source in sources]
    assert digest(builder.build(sources)[0]) == digest(builder.build(sources)[1]) == digests[0]  # in whatever company
    assert all(digests) and digests[0] == digests[1] and len(set(digests)) == 4


def test_time_limit_of_the_compiler(builder: Builder, source_of: Callable[..., CSource]) -> None:
    (built,) = builder.build([source_of(GOOD)], timeout=0.001)
    assert built.failure is not None and built.failure.kind == "compile_timeout"


def test_nothing_is_left_behind(compiler: Compiler, source_of: Callable[..., CSource]) -> None:
    with Builder(CToolchain(compiler), jobs=1) as builder:
        work: Path = builder._work.path
        built = builder.build([source_of(GOOD)])
        assert built[0].artifact is not None and built[0].artifact.path.exists()
        builder.release(built)
        assert [path.name for path in work.iterdir()] == ["lock"]
    assert not work.exists()
