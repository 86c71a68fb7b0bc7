"""Hand-written kernels that keep, or break, the rules of the entry point."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ansor.codegen.source import Argument, CSource
from ansor.codegen.toolchain import Compiler, compile_shared, find_compiler, prepare
from ansor.measure.harness import Harness, harness_library
from ansor.measure.runner import Runner
from ansor.measure.timing import TimingOptions

HEAD = """
#include <signal.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
typedef void (*ansor_body)(void *, long, long);
typedef void (*ansor_parallel_for)(void *, ansor_body, void *, long);
static char *volatile kept; /* an allocation the compiler cannot leave out */
"""
QUICK = TimingOptions(min_repeat_ms=0.5, timeout_seconds=1.0, memory_bytes=64 << 20)
MakeSource = Callable[..., CSource]


def make_source(
    body: str, *, entry: str = "kernel", dtype: str = "float32", n: int = 1000, workspace_bytes: int = 0, threads: int = 1
) -> CSource:
    """C[i] from A[i] and B[i]; `body` sees a, b, c and n."""
    c_type = {"float32": "float", "float64": "double", "int32": "int"}[dtype]
    text = HEAD + f"""
void {entry}(void *const *args, unsigned char *workspace, ansor_parallel_for parallel_for, void *pool) {{
    {c_type} *a = args[0], *b = args[1], *c = args[2];
    long n = {n};
    {body}
}}
"""
    arguments = (Argument("A", (n,), dtype, "input"), Argument("B", (n,), dtype, "input"), Argument("C", (n,), dtype, "output"))
    return CSource(text, entry, arguments, workspace_bytes, threads)


@pytest.fixture(scope="session")
def source_of() -> MakeSource:
    return make_source


@pytest.fixture(scope="session")
def compiler() -> Compiler:
    compiler = find_compiler()
    prepare(compiler)
    return compiler


@pytest.fixture(scope="session")
def harness(compiler: Compiler) -> Harness:
    return Harness(harness_library(compiler))


@pytest.fixture(scope="session")
def build(compiler: Compiler, tmp_path_factory: pytest.TempPathFactory) -> Callable[[CSource], Path]:
    folder = tmp_path_factory.mktemp("kernels")
    count = iter(range(10**6))

    def build_one(source: CSource) -> Path:
        library = folder / f"{next(count)}.so"
        compiled = compile_shared(compiler, [source.text], library)
        assert compiled.ok, compiled.text
        return library

    return build_one


@pytest.fixture(scope="session")
def runner(compiler: Compiler, build: Callable[[CSource], Path]) -> Iterator[Runner]:
    """A runner that knows the task "add": C = A + B for 1000 float32."""
    reference = make_source("for (long i = 0; i < n; ++i) c[i] = a[i] + b[i];", entry="reference", dtype="float64")
    with Runner(harness_library(compiler), options=QUICK) as runner:
        runner.define("add", make_source(""), reference=reference, reference_library=build(reference))
        yield runner
