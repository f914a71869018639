"""The machines that code is generated for: targets, their kinds and tags."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from headrace import _core, _node, _public
from headrace._container import Array
from headrace._ffi import api

__all__ = [
    "Target",
    "TargetFeatures",
    "TargetKind",
    "VirtualDevice",
    "create",
    "list_kinds",
    "list_tags",
    "register_kind",
    "register_tag",
]

_scopes = threading.local()
_DEVICES = ("cpu", "gpu", "cuda", "llvm", "ext_dev")  # the keys of Relay's dicts of targets
_NATIVE = "llvm"  # the kind of the native code generator; in a list, all others name backends


class TargetFeatures(list):
    """Features of the processor that a target asks for, as "+avx2"; `has_NAME` tells of any whether code may use it.

    NAME is LLVM's name with underscores for its dashes and dots: `has_avx512f`, `has_sse4_2`. It is False for a name
    that the target's machine does not know, and for all features of a target that is not of kind llvm.
    """

    def __init__(self, target: Any) -> None:
        super().__init__(target.mattr)
        self._target = target

    def __getattr__(self, name: str) -> bool:
        if not name.startswith("has_"):
            raise AttributeError(f"the features of a target have no '{name}'; ask for has_NAME, such as has_avx2")
        known = {feature.replace("-", "_").replace(".", "_") for feature in api("target.Features")(self._target)}
        return name[4:] in known


@_node.mixin("TargetKind")
class _TargetKind:
    """A kind of target, by its name. It equals its name, too.

    Parameters
    ----------
    name : str
        Such as "llvm".

    Raises
    ------
    UserError
        That lists the kinds, when there is none of that name.
    """

    __slots__ = ()

    def __init__(self, name: str) -> None:
        _core.Object.__init__(self, api("target.GetKind")(name))

    def __eq__(self, other: object) -> bool:
        return other == self.name if isinstance(other, str) else self.same_as(other)

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"TargetKind({self.name!r})"

    def set_attr(self, name: str, value: Any) -> None:
        """Sets a hook by which the backend of this name compiles whole modules.

        Parameters
        ----------
        name : str
            "RelayToTIR": a pass, or a function from IRModule to IRModule, that takes all functions marked with this
            kind as their Compiler; it may replace any by a PrimFunc of the same name, over the tensors of its
            parameters, then of its results, or by a runtime.Module that has a function of the name, in the list
            `external_mods` of the attributes of the module that it returns. "TIRToRuntime": a function of an IRModule
            of these PrimFuncs and a Target, which gives a runtime.Module; without it they are compiled natively.
        value : Pass or function
            None takes the hook away.

        Raises
        ------
        UserError
            For another name, and a value that cannot be called.
        """
        if value is not None and not callable(value):
            raise _core.UserError(f"{self.name}: {name}: expected a pass or a function, got {type(value).__name__}")
        function = None if value is None else lambda *args: value(*args)
        api("target.SetKindHook")(self.name, name, function)

    def get_attr(self, name: str) -> Any:
        """The hook of that name as a function; None where there is none."""
        return api("target.KindHook")(self.name, name)

    @property
    def options(self) -> list[str]:
        """The names of its options."""
        return list(self.describe_options())

    def describe_options(self) -> dict[str, dict[str, Any]]:
        """By option: "type" (str, int, bool or Array[str]), "default" (None: there is none), "doc"."""
        rows = api("target.KindOptions")(self)
        return {row["name"]: {key: _plain(row[key]) for key in ("type", "default", "doc")} for row in rows}

    @staticmethod
    def options_from_name(kind_name: str) -> dict[str, str]:
        """The type of each option of a kind.

        Parameters
        ----------
        kind_name : str
            The kind; UserError that lists the kinds when there is none.

        Returns
        -------
        dict of str to str
            Such as {"mcpu": "str", "mattr": "Array[str]"}.
        """
        return {name: row["type"] for name, row in TargetKind(kind_name).describe_options().items()}


@_node.mixin("Target")
class _Target:
    """A target: a kind, its options, keys that code may ask for, a host. Equal by all of these.

    In `with target:` it is the one that `relay.build` and its like take where they are given none.

    Parameters
    ----------
    target : str, dict or Target
        "llvm -mcpu=x86-64-v3", a tag such as "cpu/x86-64-v3", the JSON form, or {"kind": "llvm", "mcpu": "x86-64-v3"}.
        Beside the kind's options there are keys, host and tag.
    host : str, dict or Target, optional
        The host's, in place of the one that `target` names.

    Raises
    ------
    UserError
        For an unknown kind, tag or option, an option that would mean nothing, a value that is none of the option's.
    """

    __slots__ = ()

    def __init__(self, target: Any, host: Any = None) -> None:
        made = _to_target(target)
        _core.Object.__init__(self, made if host is None else api("target.WithHost")(made, _to_target(host)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and api("ir.StructuralEqual")(self, other, False)

    def __hash__(self) -> int:
        return api("ir.StructuralHash")(self, False)

    def __str__(self) -> str:
        return api("target.ToString")(self)

    def __repr__(self) -> str:
        return f"Target({str(self)!r})"

    def __enter__(self) -> Any:
        _stack().append(self)
        return self

    def __exit__(self, *error: object) -> None:
        _stack().pop()

    def export(self) -> dict[str, Any]:
        """Kind, tag, keys, host and options as a dict, which Target() takes."""
        return _plain(api("target.Export")(self))

    def with_host(self, host: Any) -> Any:
        """The target with another host.

        Parameters
        ----------
        host : str, dict or Target, optional
            None takes it away.

        Returns
        -------
        Target
        """
        return api("target.WithHost")(self, None if host is None else _to_target(host))

    @property
    def mcpu(self) -> str:
        """The processor, by LLVM's name; empty: this machine's."""
        return self.attrs.get("mcpu", "")

    @property
    def mattr(self) -> list[str]:
        """Features of the processor that were asked for, as "+avx2"."""
        return list(self.attrs.get("mattr", []))

    @property
    def features(self) -> TargetFeatures:
        """`mattr`, which also tells what code may use: `features.has_avx512f`."""
        return TargetFeatures(self)

    @property
    def device_type(self) -> int:
        """The DLPack number of the devices that the code runs on."""
        return self.kind.default_device_type

    def get_target_device_type(self) -> int:
        """As `device_type`."""
        return self.device_type

    @staticmethod
    def current(allow_none: bool = True) -> Any:
        """The target of the innermost `with` of this thread.

        Parameters
        ----------
        allow_none : bool
            Give None, instead of an error, outside of any.

        Returns
        -------
        Target or None
        """
        if _stack():
            return _stack()[-1]
        if not allow_none:
            raise _core.UserError("there is no current target: write `with hr.Target(...):` around the call")
        return None

    @staticmethod
    def list_kinds() -> list[str]:
        """The names of the kinds of targets, sorted."""
        return list_kinds()


@_node.mixin("VirtualDevice")
class _VirtualDevice:
    """Where a value is to live, as a program says it: on a device that need not be here. Equal by all three.

    Parameters
    ----------
    device : Device, optional
        The device; number 0 of the kind that `target` is for, when it is left out.
    target : str, dict or Target, optional
        What code for it is made for.
    memory_scope : str
        The kind of memory; empty: the device's usual one.

    Raises
    ------
    UserError
        When neither a device nor a target is given, for a memory scope that is not a word.
    """

    __slots__ = ()

    def __init__(self, device: Any = None, target: Any = None, memory_scope: str = "") -> None:
        to = None if target is None else _to_target(target)
        if device is None and to is not None:
            device = api("target.Device")(to.device_type, 0)
        if not isinstance(device, _core.Device):
            raise _core.UserError(
                f'VirtualDevice: device: expected a Device, as headrace.device("cuda"), got {type(device).__name__}'
            )
        made = api("target.VirtualDevice")(device, to, memory_scope)
        api("target.ParseVirtualDevices")(str(made))
        _core.Object.__init__(self, made)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VirtualDevice) and api("ir.StructuralEqual")(self, other, False)

    def __hash__(self) -> int:
        return api("ir.StructuralHash")(self, False)

    def __str__(self) -> str:
        return api("target.VirtualDeviceToString")(self)

    def __repr__(self) -> str:
        return f"VirtualDevice({str(self)!r})"

    @property
    def device(self) -> Any:
        """The Device."""
        return api("target.DeviceOf")(self)

    @property
    def device_type_int(self) -> int:
        """As `device_type`, the DLPack number of the device's kind."""
        return self.device_type


def create(target: Any) -> Any:
    """A target, as `Target` makes it.

    Parameters
    ----------
    target : str, dict or Target
        What it is.

    Returns
    -------
    Target
    """
    return _node.class_of("Target")(target)


def chosen_target(value: Any, *parts: str) -> Any:
    """The target to compile for: `value`, else that of the innermost `with`; None without either, or with `parts`."""
    if value is not None:
        return Target(value)
    return None if any(parts) else Target.current()


def chosen_targets(value: Any, *parts: str) -> tuple[Any, list[Any]]:
    """The target to compile for, and those that name backends beside the native one, in the order of their priority.

    The first is that of `value`, else that of the innermost `with`; None without either, or with `parts`.
    """
    backends: list[Any] = []
    if isinstance(value, Mapping) and any(not isinstance(key, str) or key in _DEVICES for key in value):
        native = [_checked_device(getattr(device, "value", device), Target(one)) for device, one in value.items()]
        value, backends = _split(native)
    elif isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        value, backends = _split([Target(one) for one in value])
    return chosen_target(value, *parts), backends


def _split(targets: list[Any]) -> tuple[Any, list[Any]]:
    natives = [one for one in targets if one.kind.name == _NATIVE]
    if not targets or len(natives) > 1:
        raise _core.UserError(
            f"target: got {len(natives)} targets of kind {_NATIVE} in a list of {len(targets)}; give one, and the "
            f'backends beside it: ["{_NATIVE}", "ccompiler"]'
        )
    return (natives[0] if natives else None), [one for one in targets if one.kind.name != _NATIVE]


def _checked_device(device: Any, target: Any) -> Any:
    kind = device if isinstance(device, _core.Device) else api("target.Device")(device, 0)
    if target.kind.name == _NATIVE and kind.device_type != target.device_type:
        raise _core.UserError(f"target: {target.kind.name} is for the CPU, and the dict has it for {kind}")
    return target


def list_kinds() -> list[str]:
    """The names of the kinds of targets.

    Returns
    -------
    list of str
        Sorted.
    """
    return list(api("target.KindNames")())


def list_tags() -> dict[str, Any]:
    """The targets that have a tag.

    Returns
    -------
    dict of str to Target
        By tag; those of processors are cpu/NAME with LLVM's names.
    """
    return {tag: Target(tag) for tag in api("target.Tags")()}


def register_tag(name: str, config: Any, override: bool = False) -> Any:
    """Gives a target a short name.

    Parameters
    ----------
    name : str
        GROUP/NAME.
    config : str, dict or Target
        What Target() takes.
    override : bool
        Whether a tag of that name may be replaced.

    Returns
    -------
    Target
        The target of that tag.

    Raises
    ------
    UserError
        For a name that is taken or has not this form, a config that makes no target.
    """
    if not isinstance(config, Mapping):
        # The new tag stands for the target itself, not for a tag that named it.
        config = {key: value for key, value in Target(config).export().items() if key != "tag"}
    return api("target.RegisterTag")(name, dict(config), bool(override))


def register_kind(
    name: str,
    device_type: int = 1,
    default_keys: Iterable[str] = (),
    options: Mapping[str, Any] | None = None,
    parser: Callable[[dict[str, Any]], Mapping[str, Any]] | None = None,
) -> Any:
    """Makes a kind of target known, for a backend of one's own.

    Targets of that kind can be made, compared, saved; code for them is the backend's to make.

    Parameters
    ----------
    name : str
        The kind.
    device_type : int
        The DLPack number of its devices: 1 is the CPU, 2 CUDA, 12 a device of one's own.
    default_keys : list of str
        Keys of each target of that kind.
    options : dict of str to str or dict, optional
        By name: the type, "str", "int", "bool" or "Array[str]"; or {"type": ..., "default": ..., "doc": ...}.
    parser : function, optional
        Sees "keys" and the options of each target that is made, as a dict, and gives the dict as it is to be. It must
        leave a dict that it gave alone.

    Returns
    -------
    TargetKind

    Raises
    ------
    UserError
        For a name that is taken or none, a type that there is not, a default of another type.
    """
    if isinstance(default_keys, str):
        raise _core.UserError(f"default_keys: expected a list of str, got one str; write [{default_keys!r}]")
    rows = [_option_row(option, given) for option, given in (options or {}).items()]
    parse = None if parser is None else lambda config: parser(_plain(config))
    return api("target.RegisterKind")(name, device_type, list(default_keys), rows, parse)


def _option_row(name: str, given: Any) -> dict[str, Any]:
    row = {"type": given} if isinstance(given, str) else dict(given)
    unknown = row.keys() - {"type", "default", "doc"}
    if unknown or "type" not in row:
        raise _core.UserError(f'option \'{name}\': write {{"type": "int", "default": 1, "doc": "..."}}, got {given!r}')
    return {"default": None, "doc": "", **row, "name": name}


def _stack() -> list[Any]:
    if not hasattr(_scopes, "targets"):
        _scopes.targets = []
    return _scopes.targets


def _to_target(target: Any) -> Any:
    if target is None:
        raise _core.UserError("target: expected a str, a dict or a Target, got None")
    if isinstance(target, Mapping) and any(not isinstance(key, str) or key in _DEVICES for key in target):
        raise _core.UserError(
            f'target: {dict(target)!r} is a dict by device; here is one target, such as "llvm", or '
            '{"kind": "llvm", "mcpu": "znver4"}'
        )
    if isinstance(target, Sequence) and not isinstance(target, (str, bytes)):
        raise _core.UserError(f"target: got a list of {len(target)}; here is one target: give it alone")
    return api("target.Target")(target)


def _plain(value: Any) -> Any:
    """A value of C++ as Python's own containers hold it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, Array) else value


TargetKind = _node.class_of("TargetKind")
Target = _node.class_of("Target")
VirtualDevice = _node.class_of("VirtualDevice")


_public.settle(__name__)
