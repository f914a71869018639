"""The runtime alone: artifacts, modules, functions."""

from headrace._core import Module, PackedFunc, cpu, load_module

__all__ = ["Module", "PackedFunc", "cpu", "load_module"]
