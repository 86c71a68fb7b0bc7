"""The names of built-in networks and operators: `ansor tune resnet18`, `ansor tune matmul`.

Looking up a name is fast; only using a network imports its module, and PyTorch with it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from ansor.errors import ModelError
from ansor.support.text import did_you_mean
from ansor.te.tensor import Tensor
from ansor.zoo import operators

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class ZooNetwork:
    """A network: `model()` makes the `nn.Module`, in evaluation mode with reproducible random weights; `example_inputs()` its arguments."""

    name: str
    summary: str
    place: str  # module:function

    def model(self) -> torch.nn.Module:
        module, _, function = self.place.partition(":")
        made: torch.nn.Module = getattr(import_module(module), function)()
        return made

    def example_inputs(self) -> tuple[torch.Tensor, ...]:
        return (self.calibration()[0],)

    def calibration(self) -> list[torch.Tensor]:
        """Inputs for quantisation. The first is the example."""
        from ansor.zoo.weights import images

        networks = getattr(import_module(self.place.partition(":")[0]), "NETWORKS", {})
        return networks[self.name].samples() if self.name in networks else list(images())


@dataclass(frozen=True)
class ZooOperator:
    """An operator: `function(*args)` declares it; `args` are its default sizes, named by `parameters`."""

    name: str
    function: Callable[..., list[Tensor]]

    @property
    def summary(self) -> str:
        return inspect.getdoc(self.function) or ""

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(inspect.signature(self.function).parameters)

    @property
    def args(self) -> tuple[int, ...]:
        return tuple(parameter.default for parameter in inspect.signature(self.function).parameters.values())


NETWORKS = {
    entry.name: entry
    for entry in (
        ZooNetwork("resnet18", "ResNet-18, batch 1, 224x224", "ansor.zoo.resnet:resnet18"),
        ZooNetwork("resnet34", "ResNet-34, batch 1, 224x224", "ansor.zoo.resnet:resnet34"),
        ZooNetwork("resnet50", "ResNet-50, batch 1, 224x224", "ansor.zoo.resnet:resnet50"),
        ZooNetwork("mobilenet_v2", "MobileNet-V2, batch 1, 224x224", "ansor.zoo.mobilenet:mobilenet_v2"),
        ZooNetwork("ds_cnn", "DS-CNN, keyword spotting, 49x10 features", "ansor.zoo.tiny:ds_cnn"),
        ZooNetwork("mobilenet_v1_025", "MobileNet-V1, a quarter of the width, 96x96", "ansor.zoo.tiny:mobilenet_v1_025"),
        ZooNetwork("autoencoder", "autoencoder for sound, 640 features", "ansor.zoo.tiny:autoencoder"),
        ZooNetwork("resnet8", "ResNet-8, 32x32", "ansor.zoo.tiny:resnet8"),
    )
}
OPERATORS = {
    function.__name__: ZooOperator(function.__name__, function)
    for function in (
        operators.matmul, operators.batch_matmul, operators.dense, operators.conv1d, operators.conv2d, operators.conv2d_bn_relu, operators.group_conv2d,
        operators.dilated_conv2d, operators.depthwise_conv2d, operators.conv3d, operators.conv2d_transpose, operators.capsule_conv2d, operators.max_pool2d,
        operators.softmax, operators.layer_norm, operators.norm,
    )
}


def find(name: str) -> ZooNetwork | ZooOperator:
    """The built-in network or operator of this name. Raises ModelError with the known names."""
    found = NETWORKS.get(name) or OPERATORS.get(name)
    if found is not None:
        return found
    names = [*NETWORKS, *OPERATORS]
    hint = did_you_mean(name, names)
    raise ModelError(
        f"asked for {name!r}, which is not a built-in network or operator{hint}; built in are {', '.join(names)}; or name a file: FILE.py[:function]"
    )
