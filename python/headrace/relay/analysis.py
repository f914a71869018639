"""Analyses of programs, which do not change them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from headrace import _arguments, _core, _public
from headrace._ffi import api
from headrace.ir import IRModule, Type, structural_equal, structural_hash
from headrace.relay import _classes as nodes
from headrace.relay._call_graph import CallGraph as CallGraph
from headrace.relay._features import Feature as Feature
from headrace.relay._features import detect_feature as detect_feature
from headrace.relay._macs import get_total_mac_number as get_total_mac_number
from headrace.relay.type_functor import types_within

__all__ = [
    "CallGraph",
    "Feature",
    "FusionBorder",
    "all_dtypes",
    "all_type_vars",
    "all_vars",
    "bound_type_vars",
    "bound_vars",
    "check_basic_block_normal_form",
    "check_constant",
    "check_kind",
    "count_layers",
    "detect_feature",
    "extract_fused_functions",
    "extract_intermdeiate_expr",
    "find_breaches",
    "free_type_vars",
    "free_vars",
    "fusion_borders",
    "get_total_mac_number",
    "list_op_freqs",
    "post_order_visit",
    "unmatched_cases",
    "well_formed",
]

_post_order = api("relay.analysis.post_order")


def post_order_visit(expr: Any, fvisit: Callable[[Any], Any]) -> None:
    """Calls `fvisit` once for each expression below `expr`, operands first.

    Parameters
    ----------
    expr : RelayExpr
        Where to begin; it is visited last.
    fvisit : function
        Called with each expression.
    """
    if not callable(fvisit):
        raise _core.UserError(f"post_order_visit: fvisit: expected a function, got {_arguments.kind(fvisit)}")
    for node in _post_order(_arguments.expression(expr, "post_order_visit: expr")):
        fvisit(node)


def free_vars(expr: Any) -> list[Any]:
    """The variables that `expr` uses and does not bind, in order of their first use.

    Parameters
    ----------
    expr : RelayExpr
        Any expression.

    Returns
    -------
    list of Var
    """
    return list(api("relay.analysis.free_vars")(_arguments.expression(expr, "free_vars: expr")))


def all_vars(expr: Any) -> list[Any]:
    """The variables that `expr` uses or binds, each once.

    Parameters
    ----------
    expr : RelayExpr
        Any expression.

    Returns
    -------
    list of Var
    """
    return list(api("relay.analysis.all_vars")(_arguments.expression(expr, "all_vars: expr")))


def bound_vars(expr: Any) -> list[Any]:
    """The variables that `expr` binds: parameters, let variables, pattern variables.

    Parameters
    ----------
    expr : RelayExpr
        Any expression.

    Returns
    -------
    list of Var
    """
    expr = _arguments.expression(expr, "bound_vars: expr")
    free = set(free_vars(expr))
    return [var for var in all_vars(expr) if var not in free]


class _TypeVars:
    """Type parameters in order of first use; those that a function type within binds apart."""

    def __init__(self) -> None:
        self.used: dict[Any, None] = {}
        self.bound: dict[Any, None] = {}

    def add_expr(self, root: Any) -> None:
        def add(expr: Any) -> None:
            if isinstance(expr, nodes.Function):
                self.bound.update(dict.fromkeys(expr.type_params))
                self.used.update(dict.fromkeys(expr.type_params))
                self.add(expr.ret_type)
            elif isinstance(expr, nodes.Var):
                self.add(expr.type_annotation)
            elif isinstance(expr, nodes.Call):
                for typ in expr.type_args:
                    self.add(typ)

        for expr in _post_order(root):
            add(expr)

    def add(self, root: Any) -> None:
        for typ in () if root is None else types_within(root):
            if isinstance(typ, nodes.FuncType):
                self.bound.update(dict.fromkeys(typ.type_params))
                self.used.update(dict.fromkeys(typ.type_params))
            elif isinstance(typ, nodes.TypeVar):
                self.used[typ] = None


def _type_vars(node: Any, what: str) -> _TypeVars:
    found = _TypeVars()
    if isinstance(node, Type):
        found.add(node)
    else:
        found.add_expr(_arguments.expression(node, what))
    return found


def all_type_vars(expr: Any, mod: Any = None) -> list[Any]:
    """The type variables in an expression or type, each once.

    Parameters
    ----------
    expr : RelayExpr or Type
        What is looked through.
    mod : IRModule, optional
        Not needed: variables of types do not cross functions.

    Returns
    -------
    list of TypeVar
    """
    return list(_type_vars(expr, "all_type_vars: expr").used)


def bound_type_vars(expr: Any, mod: Any = None) -> list[Any]:
    """The type variables that an expression or type binds.

    Parameters
    ----------
    expr : RelayExpr or Type
        What is looked through.
    mod : IRModule, optional
        Not needed: variables of types do not cross functions.

    Returns
    -------
    list of TypeVar
    """
    return list(_type_vars(expr, "bound_type_vars: expr").bound)


def free_type_vars(expr: Any, mod: Any = None) -> list[Any]:
    """The type variables that an expression or type uses and does not bind.

    Parameters
    ----------
    expr : RelayExpr or Type
        What is looked through.
    mod : IRModule, optional
        Not needed: variables of types do not cross functions.

    Returns
    -------
    list of TypeVar
    """
    found = _type_vars(expr, "free_type_vars: expr")
    return [var for var in found.used if var not in found.bound]


def all_dtypes(expr: Any) -> set[str]:
    """The dtypes of the tensors in an expression, as far as types are written or were inferred.

    Parameters
    ----------
    expr : RelayExpr
        What is looked through.

    Returns
    -------
    set of str
    """
    found: set[str] = set()

    def add(node: Any) -> None:
        for root in (node.checked_type_, getattr(node, "type_annotation", None), getattr(node, "ret_type", None)):
            types = () if root is None else types_within(root)
            found.update(typ.dtype for typ in types if isinstance(typ, nodes.TensorType))
        if isinstance(node, nodes.Constant):
            found.add(node.data.dtype)

    for node in _post_order(_arguments.expression(expr, "all_dtypes: expr")):
        add(node)
    return found


def check_constant(expr: Any) -> bool:
    """Whether an expression is a constant, or a tuple of such.

    Parameters
    ----------
    expr : RelayExpr
        Any expression.

    Returns
    -------
    bool
    """
    below = _post_order(_arguments.expression(expr, "check_constant: expr"))
    return all(isinstance(node, (nodes.Constant, nodes.Tuple)) for node in below)


def check_basic_block_normal_form(expr: Any) -> bool:
    """Checks that an expression is as `ToBasicBlockNormalForm` leaves it.

    Parameters
    ----------
    expr : RelayExpr
        Any expression.

    Returns
    -------
    bool
        True.

    Raises
    ------
    UserError
        For an expression that several blocks use without a let that binds it around them, as Relay's check.
    """
    expr = _arguments.expression(expr, "check_basic_block_normal_form: expr")
    if api("relay.analysis.check_basic_block_normal_form")(expr):
        return True
    raise _core.UserError(
        "check_basic_block_normal_form: several blocks use an expression that no let binds around them; "
        "relay.transform.ToBasicBlockNormalForm() binds it"
    )


def count_layers(expr: Any, valid_ops: Sequence[str]) -> int:
    """How many calls of some ops the longest chain of operands has.

    Parameters
    ----------
    expr : RelayExpr or IRModule
        The program; of a module its `main`.
    valid_ops : list of str
        The ops that count, such as "nn.conv2d".

    Returns
    -------
    int
    """
    if isinstance(expr, IRModule):
        expr = expr["main"]
    expr = _arguments.expression(expr, "count_layers: expr")
    counted = set(_arguments.names(valid_ops, "count_layers: valid_ops"))
    depths: dict[Any, int] = {}
    for node in _post_order(expr):
        counts = isinstance(node, nodes.Call) and isinstance(node.op, nodes.Op) and node.op.name in counted
        below = (depths.get(child, 0) for child in api("relay.ir.Children")(node))
        depths[node] = max(below, default=0) + int(counts)
    return depths[expr]


def find_breaches(mod_or_expr: Any) -> list[str]:
    """The rules of the IR that a program breaks.

    Parameters
    ----------
    mod_or_expr : IRModule, RelayExpr or PrimFunc
        The program.

    Returns
    -------
    list of str
        Each as "place: rule"; none when the program is well-formed.
    """
    return _breaches(mod_or_expr, "find_breaches: mod_or_expr")


def well_formed(expr: Any) -> bool:
    """Whether every variable is bound once and used where it is bound; see `find_breaches` for what is wrong.

    Parameters
    ----------
    expr : IRModule, RelayExpr or PrimFunc
        The program.

    Returns
    -------
    bool
    """
    return not _breaches(expr, "well_formed: expr")


def _breaches(program: Any, what: str) -> list[str]:
    keys = ("ir.IRModule", "relay.Expr", "tir.PrimFunc")
    return list(api("relay.analysis.breaches")(_arguments.node(program, what, *keys)))


def check_kind(t: Any, mod: Any = None) -> nodes.TypeKind:
    """The kind of a type; UserError when it is not put together as types are.

    Parameters
    ----------
    t : Type
        The type.
    mod : IRModule, optional
        With the data types that it names.

    Returns
    -------
    TypeKind
    """
    typ = _arguments.node(t, "check_kind: t", "ir.Type")
    return nodes.TypeKind(api("relay.analysis.check_kind")(typ, _module_or_empty(mod, "check_kind: mod")))


def _module_or_empty(mod: Any, what: str) -> Any:
    return IRModule() if mod is None else _arguments.module(mod, what)


def unmatched_cases(match: Any, mod: Any = None) -> list[Any]:
    """Patterns that cover what the clauses of a match do not.

    Parameters
    ----------
    match : Match
        The match.
    mod : IRModule, optional
        With the data types of its patterns.

    Returns
    -------
    list of Pattern
        Empty when every value is covered.
    """
    _arguments.node(match, "unmatched_cases: match", "relay.Match")
    return list(api("relay.analysis.unmatched_cases")(match, _module_or_empty(mod, "unmatched_cases: mod")))


def list_op_freqs(mod: Any) -> dict[str, int]:
    """How often each op is called in a module's functions.

    Parameters
    ----------
    mod : IRModule
        The module.

    Returns
    -------
    dict of str to int
        By the op's name.
    """
    calls = (expr for expr in _expressions_of(mod, "list_op_freqs: mod") if isinstance(expr, nodes.Call))
    return dict(Counter(call.op.name for call in calls if isinstance(call.op, nodes.Op)))


def _expressions_of(mod: Any, what: str) -> Iterator[Any]:
    for function in _arguments.module(mod, what).functions.values():
        yield from _post_order(function)


def extract_fused_functions(mod: Any) -> dict[str, Any]:
    """The primitive functions of a module after SimplifyInference and FuseOps.

    Parameters
    ----------
    mod : IRModule
        The module; the functions of one that was fused stay as they are.

    Returns
    -------
    dict of str to Function
        As fused_0, fused_1 ... in their order; of functions that are structurally equal the first.
    """
    if isinstance(mod, IRModule):
        for name, options in (("SimplifyInference", {}), ("FuseOps", {"fuse_opt_level": 3})):
            made = api("relay._transform.GetPass")(name, options)
            mod = api("transform.RunPass")(made, mod, api("transform.GetCurrentPassContext")())
    functions = (
        expr for expr in _expressions_of(mod, "extract_fused_functions: mod") if isinstance(expr, nodes.Function)
    )
    found: list[Any] = []
    buckets: dict[int, list[Any]] = {}
    for function in functions:
        if not function.attrs.get("Primitive"):
            continue
        alike = buckets.setdefault(structural_hash(function), [])
        if not any(structural_equal(function, other) for other in alike):
            alike.append(function)
            found.append(function)
    return {f"fused_{i}": function for i, function in enumerate(found)}


def extract_intermdeiate_expr(mod: Any, expr_id: int) -> Any:
    """The program up to one of the intermediate values of `main`, as Relay names the function.

    Parameters
    ----------
    mod : IRModule
        The module.
    expr_id : int
        The value's number: calls, tuples and fields of tuples count from 0, operands before what reads them.

    Returns
    -------
    IRModule
        Of a function of the variables that the value needs.
    """
    body = _arguments.module(mod, "extract_intermdeiate_expr: mod")["main"].body
    kinds = (nodes.Call, nodes.Tuple, nodes.TupleGetItem)
    found = [node for node in _post_order(body) if isinstance(node, kinds)]
    if not 0 <= expr_id < len(found):
        raise _core.UserError(f"extract_intermdeiate_expr: expr_id is {expr_id}; main has {len(found)} such values")
    return IRModule.from_expr(found[expr_id])


class FusionBorder(NamedTuple):
    """A place where FuseOps stopped.

    Attributes
    ----------
    producer : Call
        The op call whose result is stored, the last one of its kernel.
    users : list of Call
        The op calls of other kernels that read it; empty when only a let, a branch, a match or a function's end does.
    reason : str
        The code of `headrace/reason.h`, such as "FUSE_DEPTH".
    message : str
        A sentence that names the ops.
    """

    producer: Any
    users: list[Any]
    reason: str
    message: str


def fusion_borders(mod: Any) -> list[FusionBorder]:
    """Why FuseOps stops where it does.

    Parameters
    ----------
    mod : IRModule
        A program before FuseOps; it is typed where it has no types yet.

    Returns
    -------
    list of FusionBorder
        One for each kernel that FuseOps makes in the current PassContext, but for those that only the program's result
        is made of; operands first. None where the context disables FuseOps.
    """
    return [
        FusionBorder(border["producer"], list(border["users"]), border["reason"], border["message"])
        for border in api("relay.analysis.fusion_borders")(_arguments.module(mod, "fusion_borders: mod"))
    ]


class _TypeSolver:
    """The type solver without a program; `solver("Unify")` is a function, and so are the other names of C++."""

    def __init__(self) -> None:
        self._function = api("relay.analysis.TypeSolver")()

    def __call__(self, name: str) -> Callable[..., Any]:
        return self._function(name)


class _ffi_api:
    """The functions of the C++ side that Relay's own tests call."""

    _test_type_solver = _TypeSolver


_public.settle(__name__)
