"""The networks that `networks.py` compares, from the libraries transformers and timm or written here, with seeded random weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

Inputs = tuple[torch.Tensor, ...]
IMAGE, TOKENS = 224, 128
MEL_BINS, MEL_FRAMES = 80, 3000


_BASIC = {"layer_type": "basic", "depths": [2, 2, 2, 2], "hidden_sizes": [64, 128, 256, 512], "embedding_size": 64}
_B0 = {"width_coefficient": 1.0, "depth_coefficient": 1.0, "hidden_dim": 1280}
_EAGER = {"attn_implementation": "eager"}  # torch.onnx.export supports it for every model
_LLAMA = {"vocab_size": 32000, "hidden_size": 512, "intermediate_size": 1376, "num_hidden_layers": 8, "num_attention_heads": 8, "use_cache": False, **_EAGER}


@dataclass(frozen=True)
class Network:
    """A model that returns one tensor. make: the module; inputs: its arguments for a batch size."""

    name: str
    make: Callable[[], nn.Module]
    inputs: Callable[[int], Inputs]

    def model(self) -> nn.Module:
        """The model in evaluation mode, with the same weights in each process. Batch norms have the statistics of a batch, as after training; weights that a
        library leaves zero, which would hide all layers before them, are drawn.
        """
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(0)
            model = self.make()
            for weight in model.parameters():
                if weight.dim() > 1 and not weight.any():
                    nn.init.normal_(weight, std=0.02)
            norms = [part for part in model.modules() if isinstance(part, _BatchNorm)]
            for norm in norms:
                nn.init.uniform_(norm.weight, 0.5, 1.5)
                norm.momentum = 1.0
            if norms:
                model.train()(*self.inputs(2))
        return model.eval()


class _Taken(nn.Module):
    """One field of the output object of a transformers model."""

    def __init__(self, model: nn.Module, field: str) -> None:
        super().__init__()
        self.model, self.field = model, field

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        taken: torch.Tensor = self.model(x)[self.field]
        return taken


class Generator(nn.Sequential):
    """The generator of DCGAN (Radford, Metz and Chintala 2015), 64x64."""

    def __init__(self, latent: int = 100, width: int = 64) -> None:
        layers: list[nn.Module] = [nn.ConvTranspose2d(latent, 8 * width, 4, 1, 0, bias=False), nn.BatchNorm2d(8 * width), nn.ReLU()]
        for into, out in ((8, 4), (4, 2), (2, 1)):
            layers += [nn.ConvTranspose2d(into * width, out * width, 4, 2, 1, bias=False), nn.BatchNorm2d(out * width), nn.ReLU()]
        super().__init__(*layers, nn.ConvTranspose2d(width, 3, 4, 2, 1, bias=False), nn.Tanh())


class _Block3d(nn.Module):
    """A basic block of a 3-d ResNet (Hara, Kataoka and Satoh 2017)."""

    def __init__(self, into: int, out: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv3d(into, out, 3, stride, 1, bias=False), nn.BatchNorm3d(out), nn.ReLU(), nn.Conv3d(out, out, 3, 1, 1, bias=False), nn.BatchNorm3d(out),
        )  # fmt: skip
        same = stride == 1 and into == out
        self.shortcut = nn.Identity() if same else nn.Sequential(nn.Conv3d(into, out, 1, stride, bias=False), nn.BatchNorm3d(out))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.shortcut(x))


def resnet3d_18(classes: int = 400) -> nn.Module:
    """A 3-d ResNet-18 for 16 frames of 112x112."""
    layers: list[nn.Module] = [nn.Conv3d(3, 64, (3, 7, 7), (1, 2, 2), (1, 3, 3), bias=False), nn.BatchNorm3d(64), nn.ReLU()]
    for into, out, stride in ((64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1)):
        layers.append(_Block3d(into, out, stride))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(512, classes))


def _transformers(kind: str, field: str, **sizes: Any) -> Callable[[], nn.Module]:
    """A model of transformers by the names of its classes, `Model` or `Model:Config`."""
    model, _, config = kind.partition(":")

    def make() -> nn.Module:
        import transformers

        shape = getattr(transformers, config or f"{model.removesuffix('Model').removesuffix('ForImageClassification')}Config")(**sizes)
        return _Taken(getattr(transformers, model)(shape), field)

    return make


def _whisper() -> nn.Module:
    """The encoder of Whisper tiny."""
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    return _Taken(WhisperEncoder(WhisperConfig(**_EAGER)), "last_hidden_state")


def _images(batch: int) -> Inputs:
    return (_random(batch, 3, IMAGE, IMAGE),)


def _tokens(batch: int) -> Inputs:
    return (torch.randint(0, 30000, (batch, TOKENS), generator=torch.Generator().manual_seed(1)),)


def _random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


NETWORKS: Mapping[str, Network] = {
    one.name: one
    for one in (
        Network("resnet18", _transformers("ResNetForImageClassification", "logits", **_BASIC), _images),
        Network("resnet50", _transformers("ResNetForImageClassification", "logits"), _images),
        Network("mobilenet_v1", _transformers("MobileNetV1ForImageClassification", "logits"), _images),
        Network("mobilenet_v2", _transformers("MobileNetV2ForImageClassification", "logits"), _images),
        Network("efficientnet_b0", _transformers("EfficientNetForImageClassification", "logits", **_B0), _images),
        Network("regnet", _transformers("RegNetForImageClassification", "logits"), _images),
        Network("convnext_t", _transformers("ConvNextForImageClassification", "logits"), _images),
        Network("vit_b", _transformers("ViTForImageClassification", "logits", **_EAGER), _images),
        Network("bert", _transformers("BertModel", "last_hidden_state", **_EAGER), _tokens),
        Network("distilbert", _transformers("DistilBertModel", "last_hidden_state", **_EAGER), _tokens),
        Network("gpt2", _transformers("GPT2LMHeadModel:GPT2Config", "logits", use_cache=False, **_EAGER), _tokens),
        Network("llama_small", _transformers("LlamaForCausalLM:LlamaConfig", "logits", **_LLAMA), _tokens),
        Network("whisper_encoder", _whisper, lambda batch: (_random(batch, MEL_BINS, MEL_FRAMES),)),
        Network("dcgan", Generator, lambda batch: (_random(batch, 100, 1, 1),)),
        Network("resnet3d_18", resnet3d_18, lambda batch: (_random(batch, 3, 16, 112, 112),)),
    )
}

TIMM = "timm:"
OTHERS = tuple(
    f"{TIMM}{name}"
    for name in (
        "ghostnet_100", "hrnet_w18_small", "res2net50_26w_4s", "resnest14d", "efficientvit_b0", "edgenext_xx_small", "mobilevit_s", "mobilevitv2_050",
        "levit_128s", "pvt_v2_b0", "poolformer_s12", "mixer_s32_224", "resmlp_12_224", "coatnet_nano_rw_224", "xcit_nano_12_p16_224", "cait_xxs24_224",
        "deit_tiny_patch16_224", "twins_pcpvt_small", "focalnet_tiny_srf", "fastvit_t8", "repvgg_a0", "mobileone_s0", "lcnet_050", "eca_nfnet_l0",
        "cspdarknet53", "dla34", "ese_vovnet19b_dw", "rexnet_100", "mobilenetv4_conv_small", "efficientformer_l1",
    )  # fmt: skip
)
"""30 models of timm, chosen before any of them was run. The first comparison showed the slow sums of MobileOne, after which parallel branches became one
convolution."""


def network(name: str) -> Network:
    """A network by its name: one of NETWORKS, or `timm:` and the name of any model of timm, for images of the size it was made for.

    Raises ValueError, with what to do, for an unknown name or without timm.
    """
    if not name.startswith(TIMM):
        if name not in NETWORKS:
            raise ValueError(f"asked for the network {name!r}, which is none of {', '.join(NETWORKS)}; models of the library timm are called {TIMM}NAME")
        return NETWORKS[name]
    try:
        import timm
    except ImportError as error:
        raise ValueError(f"asked for the network {name!r}, but the library timm cannot be imported ({error}); pip install timm") from error
    model = name.removeprefix(TIMM)
    if not timm.is_model(model):
        raise ValueError(f"asked for the network {name!r}, which timm {timm.__version__} does not have; timm.list_models() lists those it has")
    return Network(name, partial(timm.create_model, model), lambda batch: (_random(batch, *timm.get_pretrained_cfg(model).input_size),))
