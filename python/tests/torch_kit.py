"""Modules in the style of torchvision's, for the suites of headrace.torch. Import it after torch was found."""

from __future__ import annotations

import torch
from torch import nn


class Residual(nn.Module):
    """Two convolutions beside a shortcut, as in ResNet-18."""

    def __init__(self, inner: int, outer: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outer)
        self.conv2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outer)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut = None
        if stride != 1 or inner != outer:
            self.shortcut = nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        beside = x if self.shortcut is None else self.shortcut(x)
        out = self.relu(self.norm1(self.conv1(x)))
        out = self.norm2(self.conv2(out))
        out += beside
        return self.relu(out)


def residual_network() -> nn.Module:
    """Takes f32[N,3,H,W]."""
    return nn.Sequential(
        nn.Conv2d(3, 16, 7, 2, 3, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, 1),
        Residual(16, 16, 1),
        Residual(16, 32, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(1),
        nn.Linear(32, 10),
    )


class SqueezeExcitation(nn.Module):
    """Scales channels by what two dense layers make of their means."""

    def __init__(self, channels: int, squeezed: int) -> None:
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Conv2d(channels, squeezed, 1)
        self.fc2 = nn.Conv2d(squeezed, channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale = nn.functional.relu(self.fc1(self.pool(x)))
        return x * nn.functional.hardsigmoid(self.fc2(scale))


class InvertedResidual(nn.Module):
    """Expands, filters each channel, excites and projects, as in MobileNetV3."""

    def __init__(self, inner: int, expanded: int, outer: int, kernel: int, stride: int) -> None:
        super().__init__()
        self.block = nn.Sequential(
            nn.Conv2d(inner, expanded, 1, bias=False),
            nn.BatchNorm2d(expanded, eps=0.001),
            nn.Hardswish(inplace=True),
            nn.Conv2d(expanded, expanded, kernel, stride, kernel // 2, groups=expanded, bias=False),
            nn.BatchNorm2d(expanded, eps=0.001),
            nn.Hardswish(inplace=True),
            SqueezeExcitation(expanded, 8),
            nn.Conv2d(expanded, outer, 1, bias=False),
            nn.BatchNorm2d(outer, eps=0.001),
        )
        self.has_shortcut = stride == 1 and inner == outer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = self.block(x)
        return out + x if self.has_shortcut else out


def mobile_network() -> nn.Module:
    """Takes f32[N,3,H,W]."""
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, 2, 1, bias=False),
        nn.BatchNorm2d(16),
        nn.Hardswish(),
        InvertedResidual(16, 32, 16, 3, 1),
        InvertedResidual(16, 48, 24, 5, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(1),
        nn.Linear(24, 32),
        nn.Hardswish(),
        nn.Dropout(0.2),
        nn.Linear(32, 10),
    )


class Encoder(nn.Module):
    """A transformer that reads tokens, with learned positions and a mask of padding."""

    def __init__(self, tokens: int = 50, width: int = 32, length: int = 24) -> None:
        super().__init__()
        self.tokens = nn.Embedding(tokens, width)
        self.positions = nn.Parameter(torch.randn(1, length, width) * 0.1)
        layer = nn.TransformerEncoderLayer(width, 4, 64, 0.1, "gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, 5)

    def forward(self, ids: torch.Tensor) -> dict[str, torch.Tensor]:
        x = self.tokens(ids) + self.positions[:, : ids.shape[1]]
        hidden = self.layers(x, src_key_padding_mask=ids == 0)
        return {"hidden": hidden, "logits": self.head(hidden[:, 0])}


def settled(module: nn.Module) -> nn.Module:
    """The module in eval mode, with statistics of batches that are not the initial ones."""
    generator = torch.Generator().manual_seed(7)
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.running_mean.normal_(0, 0.2, generator=generator)
            part.running_var.uniform_(0.5, 1.5, generator=generator)
    return module.eval()
