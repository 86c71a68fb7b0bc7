"""Dispatch contexts."""

import pytest

from ansor.errors import ConfigError
from ansor.templates.dispatch import ApplyConfig, DispatchContext, FallbackContext, clear_fallback_cache, current_target, on_target
from ansor.templates.space import ConfigEntity
from ansor.templates.template import get_config

ONE, OTHER = ConfigEntity(1, None, {}), ConfigEntity(2, None, {})


def test_the_innermost_context_with_a_configuration_wins() -> None:
    root = DispatchContext.current
    with ApplyConfig(ONE), DispatchContext(), ApplyConfig(OTHER):
        assert get_config() is OTHER
        DispatchContext.current.update("llvm", ("x",), ONE)
        assert get_config() is ONE
    with ApplyConfig(ONE), DispatchContext():
        assert get_config() is ONE
        with pytest.raises(ConfigError, match="asked DispatchContext to store a configuration"):
            DispatchContext.current.update("llvm", ("x",), ONE)
    assert DispatchContext.current is root and get_config().is_fallback


def test_contexts_are_left_after_an_error() -> None:
    root = DispatchContext.current
    with pytest.raises(KeyError), ApplyConfig(ONE):
        raise KeyError
    assert DispatchContext.current is root


def test_apply_config_keeps_the_last_workload() -> None:
    with ApplyConfig(ONE) as context:
        context.query("llvm", ("x", 1))
        assert context.workload == ("x", 1)


def test_a_fallback_stays_until_it_is_cleared(caplog: pytest.LogCaptureFixture) -> None:
    context = FallbackContext()
    first = context.query("llvm", ("x", 1))
    assert context.query("llvm", ("x", 1)) is first and len(caplog.records) == 1
    assert context.query("llvm", ("x", True)) is not first and context.query("c", ("x", 1)) is not first and len(caplog.records) == 3
    context.clear_cache("llvm", ("x", 1))
    context.silent = True
    assert context.query("llvm", ("x", 1)) is not first and len(caplog.records) == 3
    context.update("llvm", ("x", 1), ONE)
    assert context.query("llvm", ("x", 1)) is ONE


def test_the_cache_of_the_root_is_cleared() -> None:
    root = DispatchContext.current
    first = root.query("llvm", ("tests/cleared",))
    assert root.query("llvm", ("tests/cleared",)) is first
    clear_fallback_cache("llvm", ("tests/cleared",))
    assert root.query("llvm", ("tests/cleared",)) is not first


def test_targets_nest() -> None:
    assert current_target() == "llvm"
    with on_target("llvm -model=a"), on_target("llvm -model=b") as inner:
        assert current_target() == inner == "llvm -model=b"
    assert current_target() == "llvm"


def test_an_exited_context_asks_the_active_ones() -> None:
    inner = DispatchContext()
    with ApplyConfig(ONE), inner:
        assert inner.query("llvm", ("matmul", 8)) is ONE
    with ApplyConfig(OTHER):
        assert inner.query("llvm", ("matmul", 8)) is OTHER


def test_a_context_is_entered_once_at_a_time() -> None:
    context = ApplyConfig(ONE)
    with context, pytest.raises(ConfigError, match="ApplyConfig that is already entered"), context:
        pass
    with context:
        assert DispatchContext.current is context
    assert DispatchContext.current is not context
