"""Helpers for tests of passes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from headrace import _public, nd
from headrace._arguments import kind
from headrace._compat.natural_numbers import add_nat_definitions, count, make_nat_expr, make_nat_value
from headrace._compat.networks.init import create_workload
from headrace._compat.prelude import Prelude
from headrace._compat.relay_build import create_executor
from headrace._compat.temporary_op_attr import TempOpAttr
from headrace._compat.testing import enabled_targets
from headrace._core import UserError
from headrace._numpy import np
from headrace.ir import IRModule
from headrace.relay import _classes as nodes
from headrace.relay.analysis import post_order_visit
from headrace.relay.transform import InferType, gradient
from headrace.transform import Pass

__all__ = [
    "TempOpAttr",
    "add_nat_definitions",
    "check_grad",
    "count",
    "count_ops",
    "create_workload",
    "enabled_targets",
    "gradient",
    "make_nat_expr",
    "make_nat_value",
    "rand",
    "run_infer_type",
    "run_opt_pass",
]


def rand(dtype: str, *shape: int) -> nd.NDArray:
    """A tensor of random elements in [0, 1), other ones each time.

    Parameters
    ----------
    dtype : str
        Its dtype.
    *shape : int
        Its dimensions.

    Returns
    -------
    NDArray
    """
    return nd.array(np.random.default_rng().random(shape).astype(dtype))


def run_opt_pass(expr: Any, opt_pass: Pass, import_prelude: bool = False) -> Any:
    """Runs InferType and then a pass on an expression.

    Parameters
    ----------
    expr : RelayExpr
        A function; or an expression, whose free variables may have types.
    opt_pass : Pass
        The pass.
    import_prelude : bool
        Whether the expression may use the prelude's types and functions.

    Returns
    -------
    RelayExpr
        A function for a function, an expression for another.
    """
    if not isinstance(opt_pass, Pass):
        raise UserError(f"run_opt_pass: opt_pass: expected a Pass, got {kind(opt_pass)}")
    module = IRModule.from_expr(expr)
    if import_prelude:
        Prelude(module)
    main = opt_pass(InferType()(module))["main"]
    return main if isinstance(expr, nodes.Function) else main.body


def count_ops(expr: Any) -> Counter[str]:
    """How often each op is called in an expression, functions within it included.

    Parameters
    ----------
    expr : RelayExpr
        The expression.

    Returns
    -------
    Counter
        By the op's name.
    """
    counts: Counter[str] = Counter()

    def count_call(node: Any) -> None:
        if isinstance(node, nodes.Call) and isinstance(node.op, nodes.Op):
            counts[node.op.name] += 1

    post_order_visit(expr, count_call)
    return counts


def _inputs_of(function: Any, scale: float, mean: float) -> list[Any]:
    """Normally distributed numbers for the parameters of a typed function."""
    random = np.random.default_rng()
    types = [param.checked_type for param in function.params]
    return [np.asarray(random.normal(mean, scale, t.concrete_shape)).astype(t.dtype) for t in types]


def _by_differences(run: Callable[..., nd.NDArray], inputs: Sequence[Any], tested: np.ndarray, eps: float) -> Any:
    """The gradient by one of the inputs, an element at a time, of the sum of the results."""
    result = np.zeros(tested.shape)
    for index in np.ndindex(*tested.shape):
        element = tested[index]
        sums = []
        for moved in (element + eps, element - eps):
            tested[index] = moved
            sums.append(run(*inputs).numpy().astype("float64"))
        tested[index] = element
        result[index] = np.sum((sums[0] - sums[1]) / (2 * eps))
    return result


def check_grad(
    func: Any,
    inputs: list[Any] | None = None,
    test_inputs: list[Any] | None = None,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    scale: float | None = None,
    mean: float = 0,
    mode: str = "higher_order",
    target_devices: list[tuple[Any, Any]] | None = None,
    executor_kind: str = "debug",
) -> None:
    """Raises AssertionError unless the gradients of a function are near its differences.

    Parameters
    ----------
    func : Function
        The function, of one result.
    inputs : list of numpy.ndarray, optional
        Its arguments, whose elements are changed for a while; random numbers when they are left out.
    test_inputs : list of numpy.ndarray, optional
        Which of `inputs`, the same arrays, have their gradients checked; all when it is left out.
    eps : float
        How far an element is moved to either side.
    atol, rtol : float
        How far a gradient may be off: `atol + rtol * abs(difference)`.
    scale : float, optional
        The standard deviation of random inputs; 10 * eps when it is left out.
    mean : float
        The mean of random inputs.
    mode : str
        As of `relay.transform.gradient`.
    target_devices : list of (str, Device), optional
        What it is checked on; `enabled_targets()` when it is left out.
    executor_kind : str
        As of `relay.create_executor`.

    Raises
    ------
    UserError
        For no inputs to test, and one that is none of `inputs`; for what `gradient` refuses.
    """
    forward = run_infer_type(func)
    backward = run_infer_type(gradient(forward, mode=mode))
    inputs = _inputs_of(forward, 10 * eps if scale is None else scale, mean) if inputs is None else inputs
    tested = inputs if test_inputs is None else test_inputs
    places = [next((i for i, given in enumerate(inputs) if given is array), None) for array in tested]
    if not places or None in places:
        raise UserError("check_grad: test_inputs: give at least one, and arrays that are among inputs")
    for target, device in enabled_targets() if target_devices is None else target_devices:
        executor = create_executor(executor_kind, device=device, target=target)
        run, run_backward = executor.evaluate(forward), executor.evaluate(backward)
        gradients = run_backward(*inputs)[1]
        for array, place in zip(tested, places, strict=True):
            expected = _by_differences(run, inputs, array, eps)
            found = gradients[place].numpy().astype("float64")
            np.testing.assert_allclose(found, expected, atol=atol, rtol=rtol)


def run_infer_type(expr: Any) -> Any:
    """The expression with its types, as `run_opt_pass` with InferType gives it.

    Parameters
    ----------
    expr : RelayExpr
        A function; or an expression, whose free variables may have types.

    Returns
    -------
    RelayExpr
    """
    return run_opt_pass(expr, InferType())


_public.publish(__name__, "headrace.relay.testing")
