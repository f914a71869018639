"""Ray itself, which is imported when something of `headrace.ray` first needs it."""

from __future__ import annotations

from types import ModuleType

from headrace._core import MissingError

__all__: list[str] = []


RAY_IS_GONE = "this process is no longer connected to Ray (ray.shutdown); make a new pipeline after ray.init()"


def is_connected() -> bool:
    """Whether this process is connected to a cluster. Ask before calls of Ray's that would start one of their own."""
    return bool(ray_package().is_initialized())


def ray_package() -> ModuleType:
    """Returns the module `ray`. Raises MissingError, with the command that installs it, where it is not installed."""
    try:
        import ray
    except ImportError as error:
        raise MissingError(
            f"headrace.ray needs Ray, and its import failed ({error}); install it by pip install '.[ray]' in "
            "Headrace's folder"
        ) from None
    return ray
