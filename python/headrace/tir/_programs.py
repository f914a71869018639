"""Loop functions: texts, what they compute, running them."""

from __future__ import annotations

from typing import Any

from headrace import _core, _node, _public
from headrace._ffi import api

__all__ = ["interpret", "parse", "parse_module", "raise_compute"]


@_node.mixin("tir.PrimFunc")
class _PrimFunc:
    """A loop function: its inputs, then as many outputs as `num_outputs`, which it writes."""

    __slots__ = ()

    def script(self) -> str:
        """The text form, which `tir.parse` reads."""
        return api("relay.ir.AsText")(self, False, None, False)

    def show(self) -> None:
        """Prints the text."""
        print(self.script())


def parse(text: str, source_name: str = "<text>") -> Any:
    """The loop function that a text holds; `str(function)` gives such a text.

    Parameters
    ----------
    text : str
        It starts with `#[tir_version = "1"]` and has one function.
    source_name : str
        What messages call it.

    Returns
    -------
    PrimFunc

    Raises
    ------
    UserError
        That lists all errors with their places; for a function that is not well-formed.
    """
    return api("tir.ParseFunction")(source_name, text)


def parse_module(text: str, source_name: str = "<text>") -> Any:
    """The module of loop functions that a text holds, as `parse` reads one.

    Parameters
    ----------
    text : str
        It starts with `#[tir_version = "1"]`.
    source_name : str
        What messages call it.

    Returns
    -------
    IRModule
    """
    return api("tir.ParseModule")(source_name, text)


def raise_compute(func: Any) -> Any:
    """The compute form of a loop function, element by element, in which it fuses and gets a new schedule.

    Parameters
    ----------
    func : PrimFunc
        One store for each output in a perfect nest of serial loops, or a plain reduction (`src/tir/raise.h`).

    Returns
    -------
    Compute

    Raises
    ------
    UserError
        That says what in the function is in the way.
    """
    return api("tir.Raise")(func)


def interpret(func: Any, *args: Any) -> Any:
    """Runs a loop function in the reference interpreter, which is slow and checks every index.

    Parameters
    ----------
    func : PrimFunc
        The function.
    *args : array
        Its inputs, of the shapes and dtypes of its parameters.

    Returns
    -------
    NDArray or list of NDArray
        The outputs; a single one is not in a list.

    Raises
    ------
    UserError
        For inputs that do not fit, an index out of bounds, an element that is read and was never written.
    """
    outputs = list(api("tir.Interpret")(func, [_core.array(arg) for arg in args]))
    return outputs[0] if len(outputs) == 1 else outputs


_public.publish(__name__, "headrace.tir")
