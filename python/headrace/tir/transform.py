"""Passes over loop functions, written in Python."""

from __future__ import annotations

from headrace import _node, _public
from headrace.transform import prim_func_pass

__all__ = ["PrimFuncPass", "prim_func_pass"]

PrimFuncPass = _node.class_of("transform.PrimFuncPass")


_public.settle(__name__)
