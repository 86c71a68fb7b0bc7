"""Networks of PyTorch modules for inputs of more than one size: any number of rows, or any length."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Unpack

from ansor.api import CompileKeywords, compile_sharing
from ansor.errors import ArgumentError
from ansor.run.keywords import RunOptions
from ansor.targets.base import Target, parse_target
from ansor.tasks.arguments import check_arguments, check_names, takes_network

if TYPE_CHECKING:
    from ansor.graph.export import ExampleInputs
    from ansor.networks.batches import BatchedNetwork
    from ansor.networks.lengths import AnyLengthNetwork


@takes_network
def compile_batches(
    model: object, example_inputs: ExampleInputs, target: str | Target | None = None, **options: Unpack[CompileKeywords]
) -> BatchedNetwork:
    """Compile a PyTorch module into a callable for any number of rows. Rows are the first dimension of every input and result.

    Args:
        model: a module that computes each row independently. This is tested with variations of the example inputs.
        example_inputs: with as many rows as should be computed at once, at least 2. Calls with more or fewer rows are split into batches of that size and of
        powers of two below it. Each size is compiled on first use.
        target, options: as in `compile`; a budget applies to each size.

    Raises ModelError for inputs without a common number of rows and for a model whose rows depend on each other, and the errors of `compile`.
    """
    from ansor.graph.shared_constants import SharedConstants
    from ansor.networks.batches import BatchedNetwork

    check_names("compile_batches", options, CompileKeywords, "target")
    check_arguments(example_inputs=example_inputs)
    _check_options(target, options)
    shared = SharedConstants()
    return BatchedNetwork(model, example_inputs, lambda inputs: compile_sharing(model, inputs, target, shared, **options))


@takes_network
def compile_lengths(
    model: object, example_inputs: ExampleInputs, target: str | Target | None = None, *, dimension: int | Mapping[str, int] = 1,
    lengths: Sequence[int] | None = None, **options: Unpack[CompileKeywords],
) -> AnyLengthNetwork:  # fmt: skip
    """Compile a PyTorch module into a callable for inputs of any length up to that of the example inputs: sequences of words, for example.

    Args:
        model: a module whose results for shorter inputs follow from its operators for the longest ones. This is derived from its graph, and each network is
        compared with the module for two lengths.
        example_inputs: the longest inputs, at least 2 elements.
        dimension: the dimension of the inputs that has any extent, counted from 0. Inputs without it, or with another extent than the first one, have fixed
        shapes. A dict from the names of some inputs to their dimensions leaves all others fixed.
        lengths: calls are padded to the next of these lengths or to that of the example inputs, and each is compiled on first use. By default multiples of 8
        from 16 on: 16, 24, 32, 40, 48, 56, 64, then in steps of 16 up to 128, of 32 up to 256, and so on.
        target, options: as in `compile`; a budget applies to each length.

    Raises ModelError for inputs without such a dimension and for a model that cannot be computed in this way, and the errors of `compile`. Since lengths are
    compiled on first use, calls may raise them, too.
    """
    from ansor.graph.any_length import Calls, extract_lengths
    from ansor.graph.shared_constants import SharedConstants
    from ansor.networks.lengths import AnyLengthNetwork
    from ansor.networks.padded import PaddedNetwork

    check_names("compile_lengths", options, CompileKeywords, "target", "dimension", "lengths")
    check_arguments(example_inputs=example_inputs)
    _check_lengths(dimension, lengths)
    asked, shared = _check_options(target, options), SharedConstants()
    borrowed = not asked.measures and "on_tasks" not in options

    def compiled(given: object, calls: Calls) -> PaddedNetwork:
        extracted = extract_lengths(given, calls, borrowed=borrowed)
        return PaddedNetwork(compile_sharing(extracted.network, (), target, shared, **options), extracted.padding)

    return AnyLengthNetwork(model, example_inputs, compiled, dimension, lengths)


def _check_options(target: str | Target | None, options: CompileKeywords) -> RunOptions:
    """What the options ask for. Raises the errors of wrong ones, before the model runs."""
    asked = RunOptions.of(options, options.get("cost_model"))
    asked.check_devices([parse_target("cpu" if target is None else target)])
    return asked


def _check_lengths(dimension: object, lengths: object) -> None:
    """Raise ArgumentError for other types, and for dimensions below 0."""
    given = list(dimension.values()) if isinstance(dimension, Mapping) else [dimension]
    if not all(isinstance(one, int) and not isinstance(one, bool) and one >= 0 for one in given):
        raise ArgumentError(f"asked for dimension={dimension!r}; give the number of a dimension, from 0 on, or a dict from names of inputs to such numbers")
    if lengths is not None and (isinstance(lengths, str | bytes) or not isinstance(lengths, Iterable)):
        raise ArgumentError(f"asked for lengths={lengths!r}; give a list of whole numbers")
