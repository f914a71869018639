"""From programs to results: the interpreter and compiled code."""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from headrace import _arguments, _core, _hints, _public
from headrace._compat import executor_choices as choices
from headrace._compat.graph_executor import GraphModule, graph_json_of
from headrace._container import ADT
from headrace._ffi import api
from headrace._numpy import cast_array
from headrace.ir import IRModule
from headrace.relay import _classes as nodes
from headrace.relay import transform as relay_passes
from headrace.relay.transform import InferType
from headrace.target import Target, chosen_targets
from headrace.transform import PassContext, Sequential

__all__ = ["GraphExecutorFactoryModule", "bind_params_by_name", "build", "create_executor", "optimize"]

_GRAPH, _CPP = choices.Executor("graph"), choices.Runtime("cpp")


class GraphExecutorFactoryModule:
    """A compiled module: `lib["default"](device)` makes an executor of it.

    Parameters
    ----------
    module : runtime.Module
        The code.
    ir_mod : IRModule
        What it was made from.
    target : Target
        What it was made for.
    params : dict of str to NDArray
        The parameters that were bound.
    """

    def __init__(self, module: _core.Module, ir_mod: Any, target: Any, params: Mapping[str, _core.NDArray]) -> None:
        self.module = module
        self.ir_mod = ir_mod
        self.target = target
        self.params = dict(params)

    def __getitem__(self, item: str) -> _core.PackedFunc:
        name = _arguments.text(item, "the name of a function, as in lib['default']")
        if not self.module.implements_function(name, True):
            raise AttributeError(
                f"the module has no function '{name}', but 'default': lib['default'](headrace.cpu()) makes an executor"
            )
        return self.module[name]

    def __iter__(self) -> Iterator[Any]:
        warnings.warn(
            "a build is one object; to unpack it into graph, library and parameters is the old way: "
            'lib["default"](headrace.cpu()) makes an executor',
            DeprecationWarning,
            stacklevel=2,
        )
        return iter((self.get_graph_json(), self.module, self.get_params()))

    def get_graph_json(self) -> str:
        """The steps of a run as JSON, by the keys of Relay's graphs; `graph_executor.create` takes it.

        Nodes with the op "null" are inputs and constants ("p0", "p1" ...), those with "tvm_op" calls of kernels, whose
        names are `func_name` among their attributes, and copies ("__copy"). Memory that several steps write parts of
        makes all of them inputs of the step that reads it; views are not nodes.

        Returns
        -------
        str
        """
        return graph_json_of(self.module)

    def get_executor_config(self) -> str:
        """Returns `get_graph_json()`; Relay has both names."""
        return self.get_graph_json()

    def get_lib(self) -> _core.Module:
        """The code."""
        return self.module

    @property
    def lib(self) -> _core.Module:
        """The code, by the name that Relay has for it."""
        return self.module

    @property
    def graph_json(self) -> str:
        """The text that `get_graph_json()` returns."""
        return self.get_graph_json()

    def get_params(self) -> dict[str, _core.NDArray]:
        """Copies of the parameters that were bound: they are in the code already."""
        return {name: tensor.copyto(tensor.device) for name, tensor in self.params.items()}

    def export_library(self, file_name: Any, fcompile: Any = None, addons: Any = None, **kwargs: Any) -> str:
        """Writes the artifact, as `Module.export_library` does; no compiler is needed.

        Parameters
        ----------
        file_name : path
            The file.
        fcompile : str or function, optional
            A compiler that links it.
        addons : list of path, optional
            What that links too.
        **kwargs
            workspace_dir, and what fcompile takes.

        Returns
        -------
        str
            The file's name.
        """
        return self.module.export_library(file_name, fcompile, addons, **kwargs)

    def get_source(self, fmt: str = "") -> str:
        """The kernels as text: LLVM ("ll", the default), assembly ("s") or C ("c")."""
        return self.module.get_source(fmt)

    def save(self, file_name: Any, fmt: str = "") -> None:
        """Writes the module in the format "so", "o", "ll", "s" or "c", as `Module.save` does."""
        self.module.save(_arguments.path(file_name, "file_name"), fmt)


def build(
    ir_mod: Any,
    target: Any = None,
    target_host: Any = None,
    executor: choices.Executor = _GRAPH,
    runtime: choices.Runtime = _CPP,
    workspace_memory_pools: None = None,
    constant_memory_pools: None = None,
    params: Mapping[str, Any] | None = None,
    mod_name: str = "default",
    extern_target: Any = None,
) -> GraphExecutorFactoryModule:
    """Compiles a module.

    Parameters
    ----------
    ir_mod : IRModule or Function
        The program.
    target : str, dict, Target, or a list or dict by device of these, optional
        What it is for; without it the target of the innermost `with`, or else this machine. A list, or a dict by
        device, holds that target and the backends beside the native one, in the order of their priority:
        ["llvm", "ccompiler"].
    target_host : str, dict or Target, optional
        None, or the same target.
    executor : backend.Executor
        Executor("graph"): there is one.
    runtime : backend.Runtime
        Runtime("cpp"): there is one.
    workspace_memory_pools, constant_memory_pools : None
        The compiler plans memory itself.
    params : dict of str to tensor, optional
        Tensors for parameters of `main`, which become constants; other names are left alone. An executor takes them
        again, as it does in Relay, and changes nothing; other elements for these names are an error there.
    mod_name : str
        "default".
    extern_target : str, dict, Target, or a list of these, optional
        More backends, after those of `target`, in the order of their priority; without it those of the PassContext.

    Returns
    -------
    GraphExecutorFactoryModule

    Notes
    -----
    Within a PassContext its level (0 to 4), passes, config and instruments hold; without one, the level is 3.
    """
    _check_how(executor, runtime, workspace_memory_pools, constant_memory_pools)
    if mod_name != "default":
        raise _core.UserError(f"build: mod_name is {mod_name!r}; there is only 'default'")
    chosen, backends = _targets(target)
    backends += _extern_targets(extern_target)
    if target_host is not None:
        chosen = chosen.with_host(target_host)
    module, tensors = with_params(ir_mod, params)
    level = PassContext.current().opt_level if PassContext.is_active() else 3
    with chosen:  # functions that compile regions may ask for the current target
        code = api("relay.build_module.Build")(module, chosen, backends, level, 0, tensors)
    return GraphExecutorFactoryModule(code, module, chosen, tensors)


# Relay's passes before fusing, in its order; each runs at its level.
_OPTIMIZING = (
    "RemoveUnusedFunctions ToBasicBlockNormalForm Legalize SimplifyInference EliminateCommonSubexpr "
    "CombineParallelConv2D CombineParallelDense CombineParallelBatchMatmul FoldConstant FoldScaleAxis SimplifyExpr "
    "CanonicalizeCast CanonicalizeOps FlattenAtrousConv AlterOpLayout FastMath FoldConstant"
)


def optimize(mod: Any, target: Any = None, params: Mapping[str, Any] | None = None) -> tuple[IRModule, dict[str, Any]]:
    """Runs the passes that Relay's build runs before it fuses, in Relay's order.

    `build` runs passes of its own, which give programs that compile to faster code.

    Parameters
    ----------
    mod : IRModule or Function
        The program.
    target, params
        As of `build`.

    Returns
    -------
    tuple of IRModule and dict of str to tensor
        The program, and the parameters as they were given: they are constants of it.

    Notes
    -----
    Within a PassContext its level, passes, config and instruments hold; without one, the level is 3.
    """
    chosen, _ = _targets(target)
    module, tensors = with_params(mod, params)
    passes = Sequential([getattr(relay_passes, name)() for name in _OPTIMIZING.split()])
    with chosen, contextlib.nullcontext() if PassContext.is_active() else PassContext(opt_level=3):
        return passes(relay_passes.InferType()(module)), tensors


def with_params(mod: Any, params: Mapping[str, Any] | None) -> tuple[IRModule, dict[str, Any]]:
    """The module with parameters of `main` as constants, and these."""
    module = _as_module(mod)
    tensors = _tensors(params, "params")
    if tensors:
        module = module.copy()
        module.update_func("main", api("relay.build_module.BindParamsByName")(module["main"], tensors))
    return module, tensors


def _check_how(executor: Any, runtime: Any, *pools: Any) -> None:
    """Checks the arguments that have one possible value: a wrong type tells of an argument at the wrong position."""
    for value, kind in ((executor, choices.Executor), (runtime, choices.Runtime)):
        if not isinstance(value, kind):
            word = kind.__name__.lower()
            raise _core.UserError(
                f"build: {word}: expected a relay.backend.{kind.__name__}, got {_arguments.kind(value)}; parameters "
                "are given by name, params=..."
            )
    for name, pool in zip(("workspace", "constant"), pools, strict=True):
        if pool is not None:
            raise _core.UserError(f"build: {name}_memory_pools: the compiler plans memory itself; leave it out")


def bind_params_by_name(func: Any, params: Mapping[str, Any]) -> Any:
    """A function whose parameters of those names became constants; other names are left alone.

    Parameters
    ----------
    func : Function
        The function.
    params : dict of str to tensor
        Values by parameter.

    Returns
    -------
    Function
    """
    function = _arguments.node(func, "bind_params_by_name: func", "relay.Function")
    return api("relay.build_module.BindParamsByName")(function, _tensors(params, "bind_params_by_name: params"))


def _tensors(params: Mapping[str, Any] | None, what: str) -> dict[str, _core.NDArray]:
    given = _arguments.entries(params, what)
    return {name: _arguments.copied(value, f"parameter '{name}'") for name, value in given.items()}


def _targets(target: Any) -> tuple[Target, list[Target]]:
    """The target to compile for and backends: the argument, else the innermost `with`'s target, else this machine."""
    chosen, backends = chosen_targets(target)
    return chosen or Target("llvm"), backends


def _extern_targets(value: Any) -> list[Target]:
    """The backends that `build` is given by `extern_target`, else those of the PassContext around it."""
    if value is None:
        value = PassContext.current().config.get("relay.AnnotateTarget.targets", [])
        value = [name for text in ([value] if isinstance(value, str) else value) for name in str(text).split(",")]
    given = [value] if isinstance(value, (str, Mapping, Target)) else value
    if not isinstance(given, Sequence):
        raise _core.UserError(f"extern_target: expected the name of a backend or a list, got {_arguments.kind(value)}")
    return [Target(one) for one in given]


def _as_module(program: Any) -> Any:
    if isinstance(program, IRModule):
        return program
    if isinstance(program, nodes.RelayExpr):
        return IRModule.from_expr(program)
    raise _core.UserError(f"expected an IRModule or a function, got {_arguments.kind(program)}")


class Executor:
    """Runs the functions of a module; `create_executor` makes one."""

    def __init__(self, mod: Any) -> None:
        self.mod = mod
        self._events: dict[Any, list[dict[str, Any]]] = {}

    @property
    def fallbacks(self) -> list[dict[str, Any]]:
        """Regions that their backends did not compute for "debug", because a backend is missing or failed.

        Each is a dict as in `CompiledModel.fallbacks`. `run` is 0 for a backend that is missing, else it counts the
        calls of the region.
        """
        return [event for events in self._events.values() for event in events]

    def _runner(self, module: Any) -> Callable[[list[Any]], Any]:
        """A function that runs `main` of a module, which it does not change."""
        raise NotImplementedError

    def evaluate(self, expr: Any = None, binds: Mapping[Any, Any] | None = None) -> Any:
        """A function of `expr`'s parameters, or the value of an expression that is not a function.

        What the module has now is what the function computes, whatever is added to the module later. "graph" compiles
        it here, in the PassContext around this call.

        Parameters
        ----------
        expr : RelayExpr, optional
            What is evaluated, which may use the module's functions; `main` when it is left out.
        binds : dict of Var to tensor or RelayExpr, optional
            Values of free variables: tensors, which are copied, or expressions.

        Returns
        -------
        function or value
            Tensors as NDArray, tuples as ADT.

        Raises
        ------
        UserError
            For a program that InferType refuses; when it runs, for arguments that do not fit its parameters.
        """
        if expr is not None:
            expr = _arguments.expression(expr, "evaluate: expr")
        if binds := _arguments.entries(binds, "evaluate: binds"):
            variables = [_arguments.node(var, "evaluate: a key of binds", "relay.Var") for var in binds]
            values = {var: _bound(binds[var], var) for var in variables}
            expr = api("relay.ir.Bind")(_arguments.expression(expr, "evaluate: expr"), values)
        if expr is None or isinstance(expr, nodes.GlobalVar):
            function = self.mod["main" if expr is None else expr]
        elif isinstance(expr, nodes.Function):
            function = expr
        else:
            return self._runner(self._with_main(nodes.Function([], expr)))([])
        module = self._with_main(_with_distinct_names(function))
        runner = self._runner(module)

        def run(*args: Any, **kwargs: Any) -> Any:
            return runner(_in_order(function.params, args, kwargs))

        run.evaluated = module  # its ports, for a stage of a pipeline
        return run

    def _with_main(self, function: Any) -> Any:
        module = self.mod.copy()
        if "main" not in module or not module["main"].same_as(function):
            module.update_func("main", function)
        return module


def _in_order(params: Any, args: Any, kwargs: Mapping[str, Any]) -> list[Any]:
    """The arguments in the order of the parameters. Those by a name that no parameter has are left out, as in Relay."""
    names = [param.name_hint for param in params]
    left = names[len(args) :]
    twice = [name for name in kwargs if name in names[: len(args)]]
    missing = [name for name in left if name not in kwargs]
    if len(args) > len(names) or twice or missing:
        unknown = [name for name in kwargs if name not in names]
        raise _core.UserError(
            f"the parameters are {', '.join(names) or 'none'}; got {len(args)} in order, missing: "
            f"{', '.join(missing) or 'none'}, given twice: {', '.join(twice) or 'none'}, unknown: "
            f"{', '.join(unknown) or 'none'}"
        )
    return [_argument(value, param) for value, param in zip([*args, *(kwargs[n] for n in left)], params, strict=True)]


def _bound(value: Any, var: Any) -> Any:
    """The expression that stands for a free variable."""
    if isinstance(value, nodes.RelayExpr):
        return value
    return nodes.Constant(_arguments.copied(value, var.name_hint))


def _with_distinct_names(function: Any) -> Any:
    """A function whose parameters have names of their own, since compiled code knows inputs by name."""
    names = [param.name_hint for param in function.params]
    if len(set(names)) == len(names):
        return function
    taken, params = set(names), []
    for i, param in enumerate(function.params):
        name = param.name_hint
        if name in names[:i]:
            name = next(f"{name}_{k}" for k in range(i, i + len(names) + 1) if f"{name}_{k}" not in taken)
            taken.add(name)
        params.append(param if name == param.name_hint else nodes.Var(name, param.type_annotation))
    renamed = zip(function.params, params, strict=True)
    body = api("relay.ir.Bind")(function.body, {old: new for old, new in renamed if not old.same_as(new)})
    return function.copy_with(params=params, body=body)


def _argument(value: Any, param: Any) -> Any:
    if isinstance(value, nodes.Constant):
        return value.data
    declared = param.type_annotation
    if isinstance(value, (list, tuple)) and isinstance(declared, nodes.TupleType):
        return _tuple_argument(value, declared, param.name_hint)
    if isinstance(value, (list, tuple)) and any(not isinstance(item, (int, float, list, tuple)) for item in value):
        return ADT(tag=0, items=[_argument(item, param) for item in value])
    if isinstance(value, _core.Object):
        return value
    dtype = str(declared.dtype) if isinstance(declared, nodes.TensorType) else ""
    value = cast_array(value, dtype)
    shared = _core.try_array(value)
    if shared is not None:
        return shared
    return _core.array(value, f"argument '{param.name_hint}'", dtype)


def _tuple_argument(value: Sequence[Any], declared: Any, name: str) -> Any:
    if len(value) != len(declared.fields):
        raise _core.UserError(f"argument '{name}': expected {declared}, got {len(value)} values")
    params = [nodes.Var(f"{name}.{i}", typ) for i, typ in enumerate(declared.fields)]
    return ADT(tag=0, items=[_argument(item, part) for item, part in zip(value, params, strict=True)])


class DebugExecutor(Executor):
    """The reference interpreter: the definition of what a program computes. Types are inferred first.

    Functions that the program marks `Compiler` run on their backends, also in branches and recursive functions.
    """

    def __init__(self, mod: Any, fallback: str) -> None:
        super().__init__(mod)
        self._fallback = fallback

    def _runner(self, module: Any) -> Callable[[list[Any]], Any]:
        typed = api("relay.backend.InferTypeIfSettled")(module)
        interpret, fallbacks = api("relay.backend.MakeInterpreter")(typed, self._fallback)
        key = object()

        def run(args: list[Any]) -> Any:
            try:
                return interpret("main", args)
            finally:
                if rows := fallbacks():
                    keys = ("region", "backend", "reason", "reason_name", "message", "run")
                    self._events[key] = [dict(zip(keys, row, strict=True)) for row in rows]

        return run


class GraphExecutor(Executor):
    """Compiles the functions of a module and runs them with the graph executor; made by `create_executor("graph")`."""

    def __init__(self, mod: Any, device: Any, target: Any, backends: list[Any]) -> None:
        super().__init__(mod)
        self.device = device
        self.target = target
        self._backends = backends

    def _runner(self, module: Any) -> Callable[[list[Any]], Any]:
        executor = GraphModule(build(module, [self.target, *self._backends])["default"](self.device))
        result_type = InferType()(module)["main"].checked_type.ret_type
        lock = threading.RLock()  # threads may share the function that evaluate returns

        def run(args: list[Any]) -> Any:
            with lock:
                for i, arg in enumerate(args):
                    executor.set_input(i, arg)
                executor.run()
                given = [executor.get_output(i) for i in range(executor.get_num_outputs())]
                outputs = [output.copyto(output.device) for output in given]
            return _of_type(result_type, iter(outputs))

        return run


def _of_type(result_type: Any, tensors: Iterator[Any]) -> Any:
    """The value of a type, which nests 200 deep at most, of tensors in order."""
    if isinstance(result_type, nodes.TupleType):
        return ADT(tag=0, items=[_of_type(field, tensors) for field in result_type.fields])
    return next(tensors)


def create_executor(
    kind: str = "debug",
    mod: Any = None,
    device: Any = None,
    target: Any = None,
    params: Mapping[str, Any] | None = None,
    fallback: str = "native",
) -> Executor:
    """Makes an executor, which runs programs in the interpreter or as compiled code.

    Parameters
    ----------
    kind : str
        "debug": the reference interpreter; "graph": compiled code.
    mod : IRModule, optional
        Functions that what is evaluated may use.
    device : Device, optional
        The CPU.
    target : str, dict, Target, or a list or dict by device of these, optional
        What "graph" compiles for, as `build` takes it.
    params : dict of str to tensor, optional
        Values of parameters of `main`.
    fallback : str
        For "debug", when the backend of a region is missing or fails in a run: "native" evaluates the region in the
        interpreter, or natively, and reports it in the executor's `fallbacks`; "none" raises the error.

    Returns
    -------
    Executor
    """
    module = IRModule() if mod is None else _as_module(mod)
    if isinstance(device, _core.Device):
        _arguments.present(device, "device")
    if params:
        module = module.copy()
        module.update_func("main", bind_params_by_name(module["main"], params))
    if kind == "debug":
        return DebugExecutor(module, fallback)
    if kind == "graph":
        if fallback != "native":
            raise _core.UserError('create_executor: fallback is for the kind "debug"; hr.load takes it for a file')
        return GraphExecutor(module, device or _core.cpu(), *_targets(target))
    told = f"create_executor: there is no kind '{kind}'; the kinds are debug and graph"
    instead = _hints.instead("relay.vm") if kind == "vm" else None
    raise _core.UserError(f"{told}: {instead}" if instead else told)


_public.publish(__name__, "headrace.relay")
