"""The dimensions that an exported module leaves open, as users write them and as torch.export takes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headrace._core import UserError
from headrace.torch._package import torch_package

__all__: list[str] = []


def named_axes(spec: Any) -> Any:
    """Returns the tree in which dimensions are names, from one with names and objects of torch.export.Dim.

    torch's ONNX exporter gives dimensions the names of such a tree. UserError for a name that is no identifier.
    """
    torch = torch_package()

    def name_of(leaf: Any) -> Any:
        if isinstance(leaf, torch.export.Dim):
            return leaf.__name__
        if isinstance(leaf, str) and not leaf.isidentifier():
            raise UserError(f"dynamic: expected a name like 'batch' for a dimension, got {leaf!r}")
        return leaf

    if spec is not None and not isinstance(spec, (Mapping, list, tuple)):
        raise UserError(f'dynamic: expected a dict by input, as in {{"x": {{0: "batch"}}}}, got {spec!r}')
    return _mapped(spec, name_of)


def with_dims(axes: Any) -> Any:
    """Returns the tree with objects of torch.export.Dim in place of names. Equal names become the same object."""
    torch = torch_package()
    known: dict[str, Any] = {}

    def dim_of(leaf: Any) -> Any:
        if not isinstance(leaf, str):
            return leaf
        if leaf not in known:
            known[leaf] = torch.export.Dim(leaf)
        return known[leaf]

    return _mapped(axes, dim_of)


def _mapped(tree: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(tree, Mapping):
        return {key: _mapped(value, change) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(_mapped(value, change) for value in tree)
    return change(tree)
