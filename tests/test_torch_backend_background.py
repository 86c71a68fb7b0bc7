"""`torch.compile(backend="ansor", options={"tune": "background"})`: networks are swapped between calls, and cached for other processes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from ansor.errors import AnsorWarning
from ansor.graph import rivals
from ansor.networks import background, background_tuner, kept_networks
from ansor.networks.background import TuningRequest
from ansor.networks.background_tuner import Job, main, tuned
from ansor.networks.compiling import compiled
from ansor.support import kept_data
from ansor.torch_backend import backend
from tests.networks.caches import with_compilers

pytestmark = [pytest.mark.compiler, pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")]
OPTIONS: dict[str, Any] = {"tune": "background", "minutes": 1, "threads": 1, "library": False}


@pytest.fixture
def requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[TuningRequest]]:
    """The requests to background tuners, none of which runs."""
    monkeypatch.setenv("ANSOR_CACHE", str(with_compilers(tmp_path)))
    monkeypatch.setattr(kept_data, "ENABLED", True)
    found: list[TuningRequest] = []
    monkeypatch.setattr(background, "tune", found.append)
    torch.compiler.reset()
    yield found
    torch.compiler.reset()


@pytest.fixture
def picked(monkeypatch: pytest.MonkeyPatch) -> list[float | None]:
    """The minutes of each tuning round; nothing is measured."""
    minutes: list[float | None] = []

    def unmeasured(extracted: Any, target: Any, asked: Any, reporter: Any, **rest: Any) -> object:
        minutes.append(asked.budget.seconds / 60)
        return compiled(extracted, target, replace(asked, budget=replace(asked.budget, trials=0, seconds=None)), reporter, **rest)

    monkeypatch.setattr(background_tuner, "compiled", unmeasured)
    monkeypatch.setattr(rivals, "faster", lambda *given: True)
    return minutes


def model() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(48, 96), torch.nn.ReLU(), torch.nn.Linear(96, 24)).eval()


def call(module: Callable[..., Any]) -> torch.Tensor:
    values = torch.ones(4, 48)
    with torch.no_grad():
        found: torch.Tensor = module(values)
    return found


def job_of(request: TuningRequest) -> Job:
    return Job(**{**request.job, "parent": 0})  # type: ignore[arg-type]


def test_networks_are_swapped_and_cached(requests: list[TuningRequest], picked: list[float | None]) -> None:
    module = model()
    fast, wanted = torch.compile(module, backend=backend, options=OPTIONS), call(module)
    torch.testing.assert_close(call(fast), wanted)
    (request,) = requests
    assert list(tuned(job_of(request))) == ["better"] * 4 + ["done"] and picked == pytest.approx([0.125, 0.125, 0.25, 0.5])
    request.better()
    torch.testing.assert_close(call(fast), wanted)
    torch.compiler.reset()
    torch.testing.assert_close(call(torch.compile(module, backend=backend, options=OPTIONS)), wanted)
    assert len(requests) == 1  # the next process uses the tuned network


def test_weights_that_change_meanwhile_are_kept(requests: list[TuningRequest], picked: list[float | None]) -> None:
    module = model()
    fast = torch.compile(module, backend=backend, options=OPTIONS)
    call(fast)
    list(tuned(job_of(requests[0])))
    with torch.no_grad():
        next(module.parameters()).mul_(2)
    requests[0].better()
    with pytest.warns(AnsorWarning, match="weights have changed since the last call"):
        torch.testing.assert_close(call(fast), call(module))
    requests[0].better()
    torch.testing.assert_close(call(fast), call(module))
    assert len(requests) == 2


def test_weights_that_are_other_ones_while_a_network_is_read_are_not_in_it(requests: list[TuningRequest], picked: list[float | None]) -> None:
    module = model()
    fast, wanted = torch.compile(module, backend=backend, options=OPTIONS), call(module)
    call(fast)
    list(tuned(job_of(requests[0])))
    weight = next(module.parameters())
    own = weight.data
    weight.data = own * 2
    requests[0].better()
    weight.data = own
    torch.testing.assert_close(call(fast), wanted)


def test_weights_written_to_while_a_network_is_read_are_not_in_it(
    requests: list[TuningRequest], picked: list[float | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = model()
    fast, wanted = torch.compile(module, backend=backend, options=OPTIONS), call(module)
    call(fast)
    list(tuned(job_of(requests[0])))
    weight, found = next(module.parameters()), kept_networks.found

    def disturbed(*given: Any) -> object:
        weight.data.mul_(2)
        return found(*given)

    monkeypatch.setattr(kept_networks, "found", disturbed)
    requests[0].better()
    weight.data.div_(2)
    torch.testing.assert_close(call(fast), wanted)


def test_dead_networks_are_not_swapped(requests: list[TuningRequest], picked: list[float | None]) -> None:
    module = model()
    call(torch.compile(module, backend=backend, options=OPTIONS))
    del module
    torch.compiler.reset()
    requests[0].better()


def test_a_missing_network_is_reported(
    requests: list[TuningRequest], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "nice", lambda step: 0)
    job = {"name": "0" * 32, "target": "cpu -threads=1", "minutes": 1, "torch_threads": 1, "library": False, "seed": 0, "parent": os.getppid()}
    assert main([json.dumps(job)]) == 0
    assert capsys.readouterr().out.startswith("failed asked to tune a network that is no longer in the cache folder")


@pytest.mark.filterwarnings("default::ansor.errors.AnsorWarning")
def test_parts_that_cannot_be_cached_are_reported_once(requests: list[TuningRequest], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_data, "ENABLED", False)
    fast = torch.compile(model(), backend=backend, options=OPTIONS)
    with pytest.warns(AnsorWarning, match="not tuned in the background") as heard:
        call(fast)
    assert len([one for one in heard if "background" in str(one.message)]) == 1 and not requests


@pytest.mark.parametrize(("given", "sentence"), [
    ({"tune": "later"}, "tune='later'"), ({"tune": "background", "minutes": 0}, "minutes=0"), ({"tune": "background", "trials": 5}, "'background' and trials"),
])  # fmt: skip
def test_conflicting_options_are_refused(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Exception, match=sentence):
        torch.compile(model(), backend=backend, options=given)(torch.ones(4, 48))
