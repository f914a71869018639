"""What code is made for."""

from __future__ import annotations

import json
from typing import Any

from headrace import _core, _node
from headrace._ffi import api

_DEVICE_TYPES = {"llvm": 1}
_KEYS = {"llvm": ["cpu"]}


@_node.mixin("Target")
class _Target:
    """A target: a kind and its options.

    Parameters
    ----------
    target : str, dict or Target
        "llvm -mcpu=x86-64-v3", its JSON form, or {"kind": "llvm", "mcpu": "x86-64-v3"}.
    host : Target, optional
        The host's; there are only targets that are their own host.
    """

    __slots__ = ()

    def __init__(self, target: Any, host: Any = None) -> None:
        if host is not None and Target(host) != Target(target):
            raise _core.UserError("host: code for a host other than the target is not made")
        _core.Object.__init__(self, _parse(target))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and self.export() == other.export()

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        return api("target.ToString")(self)

    def __repr__(self) -> str:
        return f"Target({str(self)!r})"

    def export(self) -> dict[str, Any]:
        """Kind and options as a dict, which Target() takes."""
        options = {
            key: list(value) if not isinstance(value, (str, int)) else value for key, value in self.attrs.items()
        }
        return {"kind": self.kind, "keys": self.keys, **options}

    @property
    def keys(self) -> list[str]:
        """Names of what code for the target may use, the most special first."""
        return list(_KEYS.get(self.kind, []))

    @property
    def host(self) -> Any:
        """The host's target: this one."""
        return self

    @property
    def mcpu(self) -> str:
        """The processor, by LLVM's name; empty: this machine's."""
        return self.attrs.get("mcpu", "")

    @property
    def features(self) -> list[str]:
        """Features of the processor that were asked for, as "+avx2"."""
        return list(self.attrs.get("mattr", []))

    @property
    def device_type(self) -> int:
        """The DLPack number of the devices that the code runs on."""
        return _DEVICE_TYPES[self.kind]

    @staticmethod
    def list_kinds() -> list[str]:
        """The kinds of targets."""
        return sorted(_DEVICE_TYPES)


def _parse(target: Any) -> Any:
    if isinstance(target, _core.Object):
        if target.type_key != "Target":
            raise _core.UserError(f"target: expected a str, a dict or a Target, got {target.type_key}")
        return target
    if isinstance(target, str) and target.lstrip().startswith("{"):
        try:
            target = json.loads(target)
        except ValueError as error:
            raise _core.UserError(f"target: {error}") from None
    if isinstance(target, dict):
        return _from_dict(target)
    if not isinstance(target, str):
        raise _core.UserError(f"target: expected a str, a dict or a Target, got {type(target).__name__}")
    return api("target.Parse")(target)


def _from_dict(options: dict[str, Any]) -> Any:
    kind = options.get("kind")
    if not isinstance(kind, str):
        raise _core.UserError('target: the dict needs a "kind", as in {"kind": "llvm"}')
    keys = options.get("keys", _KEYS.get(kind))
    if list(keys or []) != _KEYS.get(kind, keys):
        raise _core.UserError(f"target: the keys of {kind} are {_KEYS[kind]}, got {keys}")
    attrs = {key: value for key, value in options.items() if key not in ("kind", "keys") and value is not None}
    return api("target.Make")(kind, attrs)


Target = _node.class_of("Target")
