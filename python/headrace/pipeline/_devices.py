"""Devices that stages run on, beside the CPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headrace import _arguments, _core, _native, _public
from headrace._core import UserError

__all__ = ["SimulatedDevice"]

_EXT_DEV = 12  # DLPack's number of devices that are not of its kinds


@dataclass(frozen=True)
class SimulatedDevice:
    """A device that this machine does not have, with memory of its own behind a link.

    Stages on it run here, and take the time that they would take there. Tensors are copied to its memory and back by
    stages of their own, which take the time of the link: one transfer at a time in each direction. Stages of one
    pipeline whose devices are equal share one.

    Parameters
    ----------
    number : int
        Tells the devices of a pipeline apart.
    speed : float
        A stage takes 1 / speed of its time here. Above 1 the time is that of here, and only plans count with the speed.
    memory : int, optional
        Its bytes, for weights, working memory and tensors; without it, any.
    link : float, optional
        Bytes per second in each direction; without it, a transfer takes its latency.
    latency : float
        Seconds that each transfer takes beside its bytes.
    """

    number: int = 0
    speed: float = 1.0
    memory: int | None = None
    link: float | None = None
    latency: float = 0.0

    def __post_init__(self) -> None:
        _arguments.integer(self.number, "number")
        text_of(str(self))

    def __str__(self) -> str:
        fields = [f"speed={self.speed}"]
        if self.memory is not None:
            fields.append(f"memory={self.memory}B")
        if self.link is not None:
            fields.append(f"link={self.link}B/s")
        if self.latency:
            fields.append(f"latency={self.latency}s")
        return f"sim:{self.number}({', '.join(fields)})"

    @property
    def device_type(self) -> int:
        """The number of its kind: that of ext_dev."""
        return _EXT_DEV

    @property
    def device_id(self) -> int:
        """Its number."""
        return self.number


def text_of(device: Any) -> str:
    """A device as plans have it: the text of one that is simulated, and "" for the CPU.

    Raises UserError for another device, and for wrong numbers.
    """
    if device is None:
        return ""
    if isinstance(device, SimulatedDevice) or (isinstance(device, str) and device.startswith("sim")):
        if _native.is_runtime_alone:
            raise _native.missing("a simulated device")
        return _core.simulated_device(str(device))
    if str(getattr(device, "device_type", device)).lower() not in ("cpu", "1", "llvm"):
        raise UserError(f"device: {device} is not a CPU; stages run on CPUs, and on simulated devices")
    return ""


_public.publish(__name__, "headrace.pipeline")
