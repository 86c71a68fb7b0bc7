"""Text models of `transformers`, small, through the defaults of `ansor.compile`: equal to PyTorch."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest
import torch
import transformers
from torch.utils import _pytree as pytree

import ansor
from ansor.errors import ModelError
from ansor.graph.network import CompiledNetwork
from ansor.graph.opened import opened
from ansor.graph.tasks import ExtractedGraph, extract

pytestmark = [pytest.mark.torch, pytest.mark.compiler]
Reference = Callable[[ExtractedGraph], CompiledNetwork]
SIZES = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32, "vocab_size": 50}
SPECIAL = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
MODELS: dict[str, Callable[[], torch.nn.Module]] = {
    "BERT": lambda: transformers.BertModel(transformers.BertConfig(**SIZES)),
    "DistilBERT": lambda: transformers.DistilBertModel(
        transformers.DistilBertConfig(dim=16, n_layers=1, n_heads=2, hidden_dim=32, vocab_size=50)
    ),
    "GPT-2": lambda: transformers.GPT2LMHeadModel(transformers.GPT2Config(n_embd=16, n_layer=1, n_head=2, vocab_size=50, **SPECIAL)),
    "LLaMA": lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(num_key_value_heads=1, **SIZES, **SPECIAL)),
}


def check(wanted: object, found: object) -> None:
    """Same class, same structure, same values to 1e-4."""
    assert type(found) is type(wanted)
    wanted_leaves, wanted_tree = pytree.tree_flatten(opened(wanted))
    found_leaves, found_tree = pytree.tree_flatten(opened(found))
    assert found_tree == wanted_tree and sum(isinstance(one, torch.Tensor) for one in found_leaves) > 0
    for one, other in zip(wanted_leaves, found_leaves, strict=True):
        if isinstance(one, torch.Tensor):
            torch.testing.assert_close(other, one, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", MODELS)
def test_through_the_defaults(name: str) -> None:
    model = MODELS[name]().eval()
    ids = torch.randint(3, 50, (1, 8))
    network = ansor.compile(model, (ids,))
    with torch.no_grad():
        check(model(ids), network(ids))
        other = torch.randint(3, 50, (1, 8))
        check(model(other), network(input_ids=other))  # by name, though compiled by position
    with pytest.raises(IndexError, match="looks up row 50 of a table of 50 rows; indices have to be from 0 to 49"):
        network(torch.full((1, 8), 50))


@pytest.mark.parametrize("name", ["BERT", "LLaMA"])
def test_masks_and_keywords(name: str, reference: Reference) -> None:
    model = MODELS[name]().eval()
    ids, mask = torch.randint(3, 50, (2, 8)), torch.ones(2, 8, dtype=torch.int64)
    mask[1, 5:] = 0
    extracted = extract(model, {"input_ids": ids, "attention_mask": mask})
    assert not extracted.torch_calls
    network = reference(extracted)
    with torch.no_grad():
        for given in (mask, torch.ones_like(mask)):
            check(model(input_ids=ids, attention_mask=given), network(ids, given))  # by position, though compiled by name
            check(model(input_ids=ids, attention_mask=given), network(attention_mask=given, input_ids=ids))
    with pytest.raises(ModelError, match="but it was compiled for another structure of arguments"):
        network(ids, mask, output_attentions=True)


def test_a_cache_is_an_input_too(reference: Reference) -> None:
    model = MODELS["GPT-2"]().eval()
    first, second = torch.randint(3, 50, (1, 5)), torch.randint(3, 50, (1, 1))
    name = "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"  # as transformers calls it, from 5.24 and before

    def cached() -> object:
        with torch.no_grad():
            return model(first).past_key_values

    network = reference(extract(model, {"input_ids": second, name: cached()}))
    given = cached()
    with torch.no_grad():
        check(model(**{"input_ids": second, name: cached()}), network(**{"input_ids": second, name: given}))
    assert given.get_seq_length() == 5  # type: ignore[attr-defined]  # the caller's cache is left as it was; the result holds the longer one
