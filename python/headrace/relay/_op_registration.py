"""Registering ops: what users say of an op of theirs, and of how passes treat any op."""

from __future__ import annotations

import functools
from enum import IntEnum
from typing import Any

from headrace import _core, _op, _public, tir
from headrace._ffi import api, register_func
from headrace.ir import Op, TupleType, register_op_attr

__all__ = [
    "MIXED_PRECISION_ALWAYS",
    "MIXED_PRECISION_FOLLOW",
    "MIXED_PRECISION_NEVER",
    "Op",
    "OpPattern",
    "get",
    "register",
    "register_alter_op_layout",
    "register_bounded_form",
    "register_commuting_factors",
    "register_compute",
    "register_convert_op_layout",
    "register_gradient",
    "register_keep_layout",
    "register_keeps_elements",
    "register_legalize",
    "register_mixed_precision_conversion",
    "register_op_attr",
    "register_packed_func",
    "register_pattern",
    "register_prim_func",
    "register_stateful",
    "register_treats_apart",
    "register_work",
    "reset_legalize",
    "why_opaque",
]

get = Op.get
get.__module__ = "headrace.relay.op"


class OpPattern(IntEnum):
    """How an op may take part in a fused group, from the most to the least willing."""

    ELEMWISE = 0
    BROADCAST = 1
    INJECTIVE = 2
    COMM_REDUCE = 3
    OUT_ELEMWISE_FUSABLE = 4
    TUPLE = 7
    OPAQUE = 8


def register(op_name: str, describe: str = "", override: bool = False) -> Op:
    """Makes an op known. `docs/user-ops.md` shows what more to say of it.

    Parameters
    ----------
    op_name : str
        Such as "my.scale"; `relay.my.scale` is its function then. Where Python cannot write that ("my.class") or
        `relay` has something else of the name, call what this gives, or `relay.op.get(op_name)`.
    describe : str
        What it does.
    override : bool
        Whether an op that was registered at run time under that name may be replaced. Programs that were made before
        keep the op that they were made with.

    Returns
    -------
    Op

    Raises
    ------
    UserError
        When the name is taken, or means something else in text.
    """
    return api("relay.op.Register")(op_name, describe, override)


def register_compute(op_name: str, compute: Any = None, level: int = 10) -> Any:
    """Sets what computes an op, element by element: what fuses and is scheduled as other ops are.

    Parameters
    ----------
    op_name : str
        An op that was registered at run time.
    compute : function or PrimFunc, optional
        Called with (attrs, inputs, out_type): the attributes, the arguments as `tir.Tensor` (tuples are flattened), the
        type of the result. It gives a `tir.Tensor`, a list of them, or a `tir.Compute`. A PrimFunc computes all calls;
        it fuses when its loops are plain enough (`Op.why_opaque` says why not). Without it, a decorator is returned.
    level : int
        Accepted for the sake of old programs; the last one that is set counts.

    Returns
    -------
    What was given, or the decorator
    """

    return register_op_attr(op_name, "FTVMCompute", compute, level)


def _set_compute(op: Any, given: Any) -> None:
    if isinstance(given, tir.PrimFunc):
        api("relay.op.SetLoops")(op, given)
    elif callable(given):
        api("relay.op.SetForm")(op, lambda *call: _form(op.name, given, *call))
    else:
        raise _core.UserError(f"{op.name}: compute: expected a function or a PrimFunc, got {type(given).__name__}")


_op.SETTERS["FTVMCompute"] = _set_compute


def _tensors(function: Any, attrs: Any, inputs: list[Any], out_types: Any) -> tuple[list[Any], Any]:
    """Calls `function` with tensors for the inputs; returns these tensors and its result."""
    tensors = [tir.Tensor(buffer) for buffer in inputs]
    out_type = out_types[0] if len(out_types) == 1 else TupleType(list(out_types))
    return tensors, function(attrs, tensors, out_type)


def _form(op_name: str, compute: Any, attrs: Any, inputs: Any, out_types: Any) -> Any:
    tensors, given = _tensors(compute, attrs, inputs, out_types)
    if isinstance(given, tir.Compute):
        return given
    outputs = list(given) if isinstance(given, (list, tuple)) else [given]
    for output in outputs:
        if not isinstance(output, tir.Tensor):
            raise _core.UserError(
                f"{op_name}: the compute gave {given!r}; expected a tir.Tensor, a list of them, or a tir.Compute"
            )
    try:
        return tir.compute_form(tensors, [_copy(output) if output in tensors else output for output in outputs])
    except _core.UserError as error:
        raise _core.UserError(f"{op_name}: its compute: {error}") from None


def _copy(tensor: tir.Tensor) -> tir.Tensor:
    return tir.compute(tensor.shape, lambda *i: tensor[i], f"{tensor.name}_copy")


def register_prim_func(op_name: str, make: Any = None) -> Any:
    """Sets what gives the loops of each call of an op.

    Parameters
    ----------
    op_name : str
        An op that was registered at run time.
    make : function, optional
        Called with (attrs, inputs, out_type), as for `register_compute`. It gives a PrimFunc of the inputs, then the
        results. Without it, a decorator is returned.

    Returns
    -------
    The function, or the decorator
    """

    def decorate(given: Any) -> Any:
        api("relay.op.SetLoopsOfCall")(get(op_name), lambda *call: _tensors(given, *call)[1])
        return given

    return decorate if make is None else decorate(make)


def _writing(op_name: str, function: Any) -> Any:
    """The function, which must write its results: what it gives instead would be lost."""

    @functools.wraps(function, updated=())
    def call(*arrays: Any) -> None:
        given = function(*arrays)
        is_written = isinstance(given, _core.NDArray) and any(given.same_as(array) for array in arrays)
        if given is not None and not is_written:  # `lambda x, out: out.copyfrom(x)` gives out
            raise _core.UserError(
                f"{op_name}: its function gave a {type(given).__name__}; it has to write its results into the arrays"
                " behind the inputs, as out.copyfrom(...) does, and to give nothing"
            )

    return call


def register_packed_func(op_name: str, function: Any = None, func_name: str = "", override: bool = False) -> Any:
    """Lets a function compute an op: with an NDArray for each input, then for each output, which it writes.

    Programs that were compiled call it by its name: who loads an artifact registers it first. It does not get the op's
    attributes. The arrays are views that end with the call; inputs are not to be written.

    Parameters
    ----------
    op_name : str
        An op that was registered at run time.
    function : function, optional
        The function; or the name of a global function, which may be registered later. Without it, a decorator is
        returned.
    func_name : str
        The name of the global function that `function` becomes; that of the op when it is left out.
    override : bool
        Whether a global function of that name may be replaced.

    Returns
    -------
    What was given, or the decorator
    """

    def decorate(given: Any) -> Any:
        name = given if isinstance(given, str) else func_name or op_name
        if not isinstance(given, str):
            register_func(name, _writing(op_name, given), override)
        api("relay.op.SetFunction")(get(op_name), name)
        return given

    return decorate if function is None else decorate(function)


def register_pattern(op_name: str, pattern: OpPattern | str, level: int = 10) -> None:
    """Says how an op may fuse, where its compute form is not to tell that by itself.

    Parameters
    ----------
    op_name : str
        An op that was registered at run time.
    pattern : OpPattern or str
        A pattern, or its name. ELEMWISE and BROADCAST promise that the op reads its inputs so; a compute form that
        does otherwise is an error at the call.
    level : int
        Accepted for the sake of old programs.
    """
    if isinstance(pattern, str):
        if pattern not in OpPattern.__members__:
            raise _core.UserError(
                f"{op_name}: there is no pattern {pattern!r}; the patterns: {', '.join(OpPattern.__members__)}"
            )
        pattern = OpPattern[pattern]
    register_op_attr(op_name, "TOpPattern", int(pattern), level)


def register_stateful(op_name: str, stateful: bool = True, level: int = 10) -> None:
    """Says that an op has effects, so that no pass drops, doubles or moves its calls.

    Parameters
    ----------
    op_name : str
        An op that was registered at run time.
    stateful : bool
        Whether it has.
    level : int
        Accepted for the sake of old programs.
    """
    register_op_attr(op_name, "TOpIsStateful", bool(stateful), level)


def why_opaque(call: Any) -> str:
    """Why a call of an op, which InferType typed, is not fused with others; empty when it may be.

    Parameters
    ----------
    call : Call
        The call.

    Returns
    -------
    str
    """
    return api("relay.op.WhyOpaque")(call)


def register_keeps_elements(op_name: str, how: str = "view") -> None:
    """Says that an op gives its first argument's elements in their order, in another shape and the same dtype.

    A call may then be a view of the argument's memory, which nothing computes, and `SimplifyExpr` joins it with other
    views. A type relation that gives another dtype or number of elements is an error at the call.

    Parameters
    ----------
    op_name : str
        An op that was registered at run time.
    how : str
        "view": `FuseOps` leaves the call alone. "broadcast": the op mostly serves a broadcast and fuses as its pattern
        says. "note": the op marks its operand, and no pass joins it with views.
    """
    api("relay.op.SetKeepsElements")(get(op_name), how)


def register_commuting_factors(op_name: str, factors: Any = None) -> Any:
    """Says which multiplications commute with an op, so that `FoldScaleAxis` moves them past it into weights.

    Parameters
    ----------
    op_name : str
        An op that was registered at run time.
    factors : str or function, optional
        "any" when op(x * s) equals op(x) * s for all factors s along one axis of the first argument x, "positive" when
        it does for factors above 0. Or a function of (attrs, axis), the latter None for one factor for all elements,
        which gives one of the two or None. Without it, a decorator for such a function is returned.

    Returns
    -------
    What was given, or the decorator
    """

    def decorate(given: Any) -> Any:
        api("relay.op.SetCommutingFactors")(get(op_name), given)
        return given

    return decorate if factors is None else decorate(factors)


def register_keep_layout(op_name: str, axis_attrs: Any = ()) -> None:
    """Says that an op gives the same for transposed data, transposed: `ConvertLayout` keeps the layout through it.

    Parameters
    ----------
    op_name : str
        An op that was registered at run time. Its result has the axes of its first argument, in their order.
    axis_attrs : list of str
        Its attributes, of kind "int", that are the number of an axis of the first argument. They are renumbered.
    """
    api("relay.op.SetKeepLayout")(get(op_name), list(axis_attrs))


def register_bounded_form(op_name: str, make: Any = None) -> Any:
    """Sets what `BoundOutputs` takes for calls of an op whose result has an axis of a data-dependent size.

    Parameters
    ----------
    op_name : str
        An op that was registered at run time.
    make : function, optional
        Called with (attrs, inputs). It gives a tuple expression: a buffer of the call's type with a number in place of
        `?`, and a Tensor[(1), int64], how many indices of that axis count; or None. Inputs that are not constants are
        variables of the arguments' types. Without it, a decorator is returned.

    Returns
    -------
    The function, or the decorator
    """

    def decorate(given: Any) -> Any:
        api("relay.op.SetBoundedForm")(get(op_name), given)
        return given

    return decorate if make is None else decorate(make)


def register_treats_apart(op_name: str, treats: Any = None) -> Any:
    """Sets whether an op may follow results of a data-dependent size, in a buffer with room for the most.

    Elementwise ops, and ops of users whose compute form is elementwise, need no such word.

    Parameters
    ----------
    op_name : str
        An op that was registered at run time.
    treats : function, optional
        Called with (attrs, argument, axis, result_axis): the number of the argument that has an axis of unknown size,
        that axis, and the axis of the result. It gives True when each index of the result's axis depends on no other
        index of the argument's, and no element at an index makes the call fail. Without it, a decorator is returned.

    Returns
    -------
    The function, or the decorator
    """

    def decorate(given: Any) -> Any:
        api("relay.op.SetTreatsApart")(get(op_name), given)
        return given

    return decorate if treats is None else decorate(treats)


def register_work(op_name: str, work: Any = None) -> Any:
    """Sets how much calls of an op compute, from which placement by cost and layouts estimate their time.

    Without it a call counts as what its pattern says: a matrix product, or one operation an element.

    Parameters
    ----------
    op_name : str
        An op that was registered at run time.
    work : function, optional
        Called with (attrs, arg_types, out_type): attributes, the types of the arguments, and that of the result. It
        gives the number of additions and multiplications, 0 or more. Without it, a decorator is returned.

    Returns
    -------
    The function, or the decorator
    """

    def decorate(given: Any) -> Any:
        api("relay.op.SetWork")(get(op_name), given)
        return given

    return decorate if work is None else decorate(work)


def register_legalize(op_name: str, legalize_op: Any = None, level: int = 10) -> Any:
    """Sets what `relay.transform.Legalize` makes of calls of an op.

    Parameters
    ----------
    op_name : str
        The op.
    legalize_op : function, optional
        Called with (attrs, inputs, types): attributes, arguments, and the types of the arguments and of the result. It
        gives an expression, or None to leave the call alone. Without it, a decorator is returned.
    level : int
        Accepted for the sake of old programs; the last one that is set counts.

    Returns
    -------
    The function, or the decorator
    """

    def decorate(function: Any) -> Any:
        api("relay.op.RegisterLegalize")(op_name, function, "FTVMLegalize")
        return function

    return decorate if legalize_op is None else decorate(legalize_op)


def reset_legalize(op_name: str) -> None:
    """Takes away what `register_legalize` set.

    Parameters
    ----------
    op_name : str
        The op.
    """
    api("relay.op.RegisterLegalize")(op_name, None, "FTVMLegalize")


def register_alter_op_layout(op_name: str, alter_layout: Any = None, level: int = 10) -> Any:
    """Sets what `relay.transform.AlterOpLayout` makes of calls of an op.

    Parameters
    ----------
    op_name : str
        The op.
    alter_layout : function, optional
        Called with (attrs, inputs, tinfos, out_type): attributes, arguments, the types of the arguments, and that of
        the result. It gives a call of the op over the arguments, in other layouts, which the pass converts them and the
        result to; another expression of the call's type; or None to leave the call alone. Without it, a decorator is
        returned.
    level : int
        Accepted for the sake of old programs; the last one that is set counts.

    Returns
    -------
    The function, or the decorator
    """
    return register_op_attr(op_name, "FTVMAlterOpLayout", alter_layout, level)


def register_convert_op_layout(op_name: str, convert_layout: Any = None, level: int = 10) -> Any:
    """Sets what `relay.transform.ConvertLayout` makes of calls of an op that its layouts name.

    Parameters
    ----------
    op_name : str
        The op, one that was registered at run time or one of Headrace's.
    convert_layout : function, optional
        Called with (attrs, inputs, tinfos, desired_layouts): attributes, arguments, the types of the arguments and of
        the result, and the op's list of layouts. It gives an expression of the call's type over the arguments, which
        have the layout that was written, or None to leave the call alone. Without it, a decorator is returned.
    level : int
        Accepted for the sake of old programs; the last one that is set counts.

    Returns
    -------
    The function, or the decorator
    """
    return register_op_attr(op_name, "FTVMConvertOpLayout", convert_layout, level)


# The categories of ops in ToMixedPrecision.
MIXED_PRECISION_ALWAYS = 0
MIXED_PRECISION_FOLLOW = 1
MIXED_PRECISION_NEVER = 2


def register_mixed_precision_conversion(op_name: str, func: Any = None, level: int = 10) -> Any:
    """Sets what `relay.transform.ToMixedPrecision` may do with calls of an op; it counts before the pass' own lists.

    Parameters
    ----------
    op_name : str
        The op.
    func : function, optional
        Called with (call, mixed_precision_type), the latter "float16" or "bfloat16". It gives MIXED_PRECISION_ALWAYS
        (its operands are worth a cast), _FOLLOW (where they are small already) or _NEVER; or a list of that, the type
        that sums are kept in, and the type of the result, which must be mixed_precision_type. Without it, a decorator
        is returned.
    level : int
        Accepted for the sake of old programs; the last one that is set counts.

    Returns
    -------
    The function, or the decorator
    """
    return register_op_attr(op_name, "FTVMMixedPrecisionConversionType", func, level)


def register_gradient(op_name: str, fgradient: Any = None, level: int = 10) -> Any:
    """Sets what `relay.transform.FirstOrderGradient` takes for the gradient of an op.

    Parameters
    ----------
    op_name : str
        The op.
    fgradient : function, optional
        Called with (call, grad): the call, typed, and the gradient by its result. It gives a list: for each argument an
        expression of the argument's type, or None where there is no gradient. Without it, a decorator is returned.
    level : int
        Accepted for the sake of old programs; the last one that is set counts.

    Returns
    -------
    The function, or the decorator
    """
    return register_op_attr(op_name, "FPrimalGradient", fgradient, level)


_public.publish(__name__, "headrace.relay.op")
