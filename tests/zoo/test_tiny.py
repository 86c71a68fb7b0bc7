from __future__ import annotations

import pytest

from ansor.integer.reading import network_of
from ansor.zoo import tiny

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(
    ("name", "macs", "weights"),
    [("ds_cnn", 2_656_768, 22_016), ("mobilenet_v1_025", 7_489_664, 208_112), ("autoencoder", 264_192, 264_192), ("resnet8", 12_501_632, 77_360)],
)
def test_the_networks_match_their_publications(name: str, macs: int, weights: int) -> None:
    chosen = tiny.NETWORKS[name]
    network = network_of(chosen.model(), chosen.samples(), name)
    assert network.macs == macs
    assert sum(array.size for one in network.operators for key, array in one.constants.items() if key == "weights") == weights
