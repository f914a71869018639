"""Lists of onnxruntime's execution providers: there is one, the CPU's."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from headrace import _arguments, _public
from headrace.error import SessionError

__all__ = ["get_all_providers", "get_available_providers", "get_device"]

CPU_PROVIDER = "CPUExecutionProvider"


def get_available_providers() -> list[str]:
    """The names of the providers that sessions take.

    Returns
    -------
    list of str
        Always ["CPUExecutionProvider"].
    """
    return [CPU_PROVIDER]


def get_all_providers() -> list[str]:
    """The names of the providers that sessions take.

    Returns
    -------
    list of str
        Always ["CPUExecutionProvider"].
    """
    return [CPU_PROVIDER]


def get_device() -> str:
    """The kind of device that sessions run on.

    Returns
    -------
    str
        Always "CPU".
    """
    return "CPU"


def known_providers(providers: Any, provider_options: Any) -> list[str]:
    """Those of a list of names, or of (name, options), that are known; warns of others and of repeated ones."""
    if providers is None:
        return []
    if isinstance(providers, str):
        raise SessionError(f"providers: expected a list of str, got one str; write [{providers!r}]")
    if not isinstance(providers, Sequence):
        raise SessionError(f"providers: expected a list, got {_arguments.kind(providers)}")
    names = [_name(item) for item in providers]
    if provider_options is not None:
        _check_options(providers, provider_options)
    known: list[str] = []
    for name in names:
        if name in known:
            warnings.warn(f"providers: '{name}' is given twice", UserWarning, stacklevel=4)
        elif name == CPU_PROVIDER:
            known.append(name)
        else:
            warnings.warn(
                f"providers: '{name}' is not available and is skipped; there is {CPU_PROVIDER!r}",
                UserWarning,
                stacklevel=4,
            )
    return known


def _name(item: Any) -> str:
    if isinstance(item, str):
        return item
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str) and isinstance(item[1], Mapping):
        return item[0]
    raise SessionError(f"providers: expected names, or pairs of a name and a dict, got {item!r:.60}")


def _check_options(providers: Sequence[Any], options: Any) -> None:
    if isinstance(options, str) or not isinstance(options, Sequence):
        raise SessionError(f"provider_options: expected a list of dicts, got {_arguments.kind(options)}")
    if not all(isinstance(own, Mapping) for own in options):
        raise SessionError("provider_options: expected a list of dicts")
    if len(options) != len(providers):
        raise SessionError(f"providers and provider_options differ in length: {len(providers)} and {len(options)}")
    if not all(isinstance(item, str) for item in providers):
        raise SessionError("providers: give options in the pairs or as provider_options, not both")


_public.publish(__name__, "headrace.session")
