import json

import numpy as np
import pytest

from ansor.cost_model.network import Network, network_from_document, rounded
from tests.codegen.test_network_library import layers, rows

pytestmark = pytest.mark.compiler


def test_what_is_written_down_computes_the_same() -> None:
    network = Network(rounded(layers()))
    again = network_from_document(json.loads(json.dumps(network.document())))
    np.testing.assert_array_equal(again(rows(40)), network(rows(40)))


def test_rounding_is_to_half_precision_but_for_the_scale_of_features() -> None:
    exact, found = layers(), rounded(layers())
    np.testing.assert_array_equal(found.inputs.mean, exact.inputs.mean)
    np.testing.assert_array_equal(found.inputs.scale, exact.inputs.scale)
    np.testing.assert_allclose(found.weights, exact.weights, rtol=1e-3, atol=1e-4)
    assert (found.weights != exact.weights).any() and (found.last_bias, found.limit) == (0.5, 2.0)


@pytest.mark.parametrize("change", [{"mean": None}, {"first": [[7, 25], "AAAA"]}, {"last_bias": "?"}])
def test_damage_is_noticed(change: dict[str, object]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        network_from_document(Network(layers()).document() | change)
    with pytest.raises(KeyError):
        network_from_document({})
