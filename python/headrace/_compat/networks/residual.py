"""Residual networks (He et al., "Identity Mappings in Deep Residual Networks", 2016), over two and three axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headrace._compat.networks import layers
from headrace._compat.networks.pieces import as_function
from headrace._core import UserError
from headrace.relay import nn
from headrace.relay._build_ir import var

# By the number of layers: the units of each stage, for images that are not small.
_STAGES = {
    18: (2, 2, 2, 2),
    34: (3, 4, 6, 3),
    50: (3, 4, 6, 3),
    101: (3, 4, 23, 3),
    152: (3, 8, 36, 3),
    200: (3, 24, 36, 3),
    269: (3, 30, 48, 8),
}


@dataclass(frozen=True)
class Plan:
    """The units of each stage, the channels before the first stage and after each, and whether units are narrowed."""

    units: Sequence[int]
    channels: Sequence[int]
    bottle_neck: bool


@dataclass(frozen=True)
class Convs:
    """Convolutions of a rank in a layout, and what goes with them."""

    rank: int
    layout: str
    kernel_layout: str

    def conv(self, data: Any, channels: int, size: Any, stride: Any, name: str, padding: Any = None) -> Any:
        """A convolution; a number is the size or stride of each axis; the padding is half of the kernel."""
        sizes = (size,) * self.rank if isinstance(size, int) else size
        function = layers.conv2d if self.rank == 2 else layers.conv3d
        return function(
            data,
            channels=channels,
            kernel_size=sizes,
            strides=(stride,) * self.rank if isinstance(stride, int) else stride,
            padding=tuple(n // 2 for n in sizes) if padding is None else padding,
            data_layout=self.layout,
            kernel_layout=self.kernel_layout,
            name=name,
        )

    def norm(self, data: Any, name: str, **kwargs: Any) -> Any:
        """Normalization of the channels."""
        return layers.batch_norm_infer(data, epsilon=2e-5, axis=self.layout.index("C"), name=name, **kwargs)

    def height(self, shape: Sequence[int]) -> int:
        """The height of data of that shape."""
        return shape[self.layout.index("H")]


def plan_of(what: str, num_layers: int, height: int) -> Plan:
    """The plan of a network for images of that height; UserError for a number of layers that none has."""
    if height > 28:
        if num_layers not in _STAGES:
            raise UserError(f"{what}: num_layers is {num_layers}; it is {', '.join(map(str, _STAGES))}")
        if num_layers >= 50:
            return Plan(_STAGES[num_layers], (64, 256, 512, 1024, 2048), True)
        return Plan(_STAGES[num_layers], (64, 64, 128, 256, 512), False)
    if num_layers >= 164 and (num_layers - 2) % 9 == 0:
        return Plan(((num_layers - 2) // 9,) * 3, (16, 64, 128, 256), True)
    if num_layers < 164 and (num_layers - 2) % 6 == 0:
        return Plan(((num_layers - 2) // 6,) * 3, (16, 16, 32, 64), False)
    raise UserError(
        f"{what}: num_layers is {num_layers}; for images up to 28 high it is 6 * n + 2 below 164, or "
        "9 * n + 2 from 164 on"
    )


def unit(convs: Convs, data: Any, channels: int, stride: Any, dim_match: bool, name: str, bottle_neck: bool) -> Any:
    """Convolutions, each after normalization and relu, and a way around them: a convolution unless `dim_match`."""
    inner = int(channels * 0.25)
    steps = ((inner, 1), (inner, 3), (channels, 1)) if bottle_neck else ((channels, 3), (channels, 3))
    net, first = data, None
    for i, (outputs, size) in enumerate(steps, 1):
        net = nn.relu(convs.norm(net, f"{name}_bn{i}"))
        first = net if first is None else first
        net = convs.conv(net, outputs, size, stride if i == 1 else 1, f"{name}_conv{i}")
    return net + (data if dim_match else convs.conv(first, channels, 1, stride, f"{name}_sc"))


def _stem(convs: Convs, data: Any, channels: int, height: int) -> Any:
    """The layers before the first stage. Planes that are not small are halved twice, volumes once and in planes."""
    if height <= 32:
        return convs.conv(data, channels, 3, 1, "conv0")
    is_plane = convs.rank == 2
    net = convs.conv(data, channels, (7, 7) if is_plane else (3, 7, 7), (2, 2) if is_plane else (1, 2, 2), "conv0")
    net = nn.relu(convs.norm(net, "bn0"))
    if not is_plane:
        return net
    return nn.max_pool2d(net, pool_size=(3, 3), strides=(2, 2), padding=(1, 1), layout=convs.layout)


def network(convs: Convs, plan: Plan, num_classes: int, data_shape: Sequence[int], dtype: str) -> Any:
    """The function of "data" and of weights, which have no types yet."""
    data = convs.norm(var("data", shape=data_shape, dtype=dtype), "bn_data", scale=False)
    net = _stem(convs, data, plan.channels[0], convs.height(data_shape))
    for stage, (count, channels) in enumerate(zip(plan.units, plan.channels[1:], strict=True), 1):
        for i in range(1, count + 1):
            stride = 2 if i == 1 and stage > 1 else 1
            net = unit(convs, net, channels, stride, i > 1, f"stage{stage}_unit{i}", plan.bottle_neck)
    net = nn.relu(convs.norm(net, "bn1"))
    pool = nn.global_avg_pool2d if convs.rank == 2 else nn.global_avg_pool3d
    net = nn.batch_flatten(pool(net, layout=convs.layout))
    return as_function(nn.softmax(layers.dense_add_bias(net, units=num_classes, name="fc1")))


def checked_stages(what: str, units: Sequence[int], num_stages: int, filter_list: Sequence[int]) -> None:
    """Raises UserError unless there are as many units as stages, and one number of channels more."""
    if len(units) != num_stages or len(filter_list) != num_stages + 1:
        raise UserError(
            f"{what}: num_stages is {num_stages}, with {len(units)} units and {len(filter_list)} numbers of channels;"
            " there is one number of units for each stage, and of channels for each and before the first"
        )
