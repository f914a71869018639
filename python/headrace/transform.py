"""Passes, sequences of them, and the contexts they run in."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType
from typing import Any

from headrace import _arguments, _core, _hints, _node, _public
from headrace._ffi import api
from headrace.ir import IRModule

__all__ = [
    "ApplyPassToFunction",
    "ModulePass",
    "Pass",
    "PassContext",
    "PassInfo",
    "PrintIR",
    "Sequential",
    "function_pass",
    "module_pass",
    "pass_registry",
    "prim_func_pass",
    "register_pass_config",
]

_node.constructor(
    "transform.PassInfo",
    "opt_level name required traceable runs_after",
    "What a pass is called and when it runs.",
)
_node.default("transform.PassInfo", required=())


@_node.mixin("transform.Pass")
class _Pass:
    """A step from module to module; a call runs it, whatever its level is."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """The pass's name."""
        return self.info.name

    def __call__(self, mod: Any) -> Any:
        """Runs the pass in the current PassContext.

        Parameters
        ----------
        mod : IRModule
            The module, which stays as it is.

        Returns
        -------
        IRModule
            The same object when nothing changed.

        Raises
        ------
        UserError
            For what is not a module, or what the pass refuses.
        """
        if not isinstance(mod, IRModule):
            raise _core.UserError(
                f"{self.name} is a pass over a module, got {_arguments.kind(mod)}; write IRModule.from_expr(...) "
                "around an expression or a function"
            )
        return api("transform.RunPass")(self, mod, PassContext.current())

    def __repr__(self) -> str:
        return f"Pass({self.info.name}, opt_level={self.info.opt_level})"


@_node.mixin("transform.PassContext")
class _PassContext:
    """How passes run, from `with` to the end of the block, in this thread.

    Parameters
    ----------
    opt_level : int
        From 0 to 4: passes of a sequence run up to this level; 2 is the default.
    required_pass : list of str
        Passes that run whatever the level is.
    disabled_pass : list of str
        Passes that do not run; names in any spelling.
    config : dict
        Options of passes by key; `PassContext.list_configs()` has the keys.
    instruments : list of PassInstrument
        Objects whose methods are called around each pass.
    trace : function, optional
        Called with (module, info, is_before) around each pass that runs and whose info says `traceable`: before it with
        True and after it with False.
    extern_target : str or list of str, optional
        Backends in the order of their priority, for `relay.build` and for AnnotateTarget without targets of its own:
        another way to write "relay.AnnotateTarget.targets" in `config`.

    Raises
    ------
    UserError
        For a level outside of 0 to 4, an unknown key of `config`, or a value of another kind.
    """

    __slots__ = ()

    def __init__(
        self,
        opt_level: int = 2,
        required_pass: Iterable[str] | None = None,
        disabled_pass: Iterable[str] | None = None,
        instruments: Iterable[Any] | None = None,
        config: Mapping[str, Any] | None = None,
        trace: Callable[[Any, Any, bool], Any] | None = None,
        extern_target: str | Iterable[str] | None = None,
    ) -> None:
        fields = {
            "opt_level": _arguments.integer(opt_level, "opt_level"),
            "required_pass": _names(required_pass, "required_pass"),
            "disabled_pass": _names(disabled_pass, "disabled_pass"),
            "instruments": _instruments(instruments),
            "config": _with_extern_target(_arguments.entries(config, "config"), extern_target),
            "trace": trace,
        }
        _core.Object.__init__(self, _node.make("transform.PassContext", fields))
        try:
            api("transform.CheckContext")(self)
        except _core.UserError:
            for told in map(_hints.config_hint, fields["config"].keys() - PassContext.list_configs().keys()):
                if told:
                    raise _core.UserError(told) from None
            raise

    def __enter__(self) -> Any:
        api("transform.EnterPassContext")(self)
        return self

    def __exit__(self, *error: object) -> None:
        api("transform.ExitPassContext")(self)

    def override_instruments(self, instruments: Iterable[Any] | None) -> None:
        """Other instruments for the rest of the block: those of now leave, these enter.

        On `PassContext.current()` outside of a `with` it is for all that this thread runs in none.

        Parameters
        ----------
        instruments : list of PassInstrument, optional
            None for no instruments.

        Raises
        ------
        UserError
            When this is not the context that passes of this thread run in now. An error of an instrument leaves it
            without instruments.
        """
        api("transform.OverrideInstruments")(self, _instruments(instruments))

    @staticmethod
    def current() -> Any:
        """The context of the innermost `with` of this thread; outside of any the thread's own, with the defaults."""
        return api("transform.GetCurrentPassContext")()

    @staticmethod
    def is_active() -> bool:
        """Whether this thread is in a `with` of a context."""
        return api("transform.IsInPassContext")()

    @staticmethod
    def list_configs() -> dict[str, dict[str, Any]]:
        """Kind, doc and default of each key of `config`; None where no one value is the default."""
        return {
            str(name): {"type": str(kind), "doc": str(doc), "default": default}
            for name, kind, doc, default in api("transform.ConfigKeys")()
        }


def register_pass_config(key: str, kind: str, doc: str = "") -> None:
    """Makes a key of `PassContext(config=...)` known, for passes and backends of one's own.

    The options of a backend, `relay.ext.NAME.options`, need no registration.

    Parameters
    ----------
    key : str
        One word, such as "my.pass.depth".
    kind : str
        "bool", "int", "float", "str", "Array[str]" or "dict" (by str).
    doc : str
        What it does; `PassContext.list_configs()` shows it.

    Raises
    ------
    UserError
        For a key that is registered already or is not a word, and for another kind.
    """
    api("transform.RegisterConfigKey")(
        _arguments.text(key, "key"), _arguments.text(kind, "kind"), _arguments.text(doc, "doc")
    )


def _listed(value: Iterable[Any] | None, what: str) -> list[Any]:
    if value is not None and not isinstance(value, Iterable):
        raise _core.UserError(f"{what}: expected a list, got {_arguments.kind(value)}")
    return [] if value is None else list(value)


def _instruments(value: Iterable[Any] | None) -> list[Any]:
    listed = _listed(value, "instruments")
    base = _node.class_of("instrument.PassInstrument")
    for one in listed:
        if isinstance(one, type):
            how = "" if issubclass(one, base) else "write @hr.instrument.pass_instrument above it, and "
            raise _core.UserError(f"instruments: {one.__name__} is a class; {how}make one: {one.__name__}()")
        if not isinstance(one, base):
            raise _core.UserError(f"instruments: expected instruments of passes, got {_arguments.kind(one)}")
    return listed


def _check_pass(value: Any, what: str) -> None:
    """UserError for what is not a pass, which says how one is made of it."""
    if isinstance(value, Pass):
        return
    if hasattr(value, "makes_pass"):
        raise _core.UserError(f"{what}, got a function that makes one; make one: {value.__name__}()")
    how = "; @hr.transform.module_pass(opt_level=0) makes a pass of it" if isinstance(value, FunctionType) else ""
    raise _core.UserError(f"{what}, got {_arguments.kind(value)}{how}")


def _names(value: Iterable[str] | None, what: str) -> list[str]:
    return [] if value is None else _arguments.names(value, what)


def _with_extern_target(config: dict[str, Any], value: Any) -> dict[str, Any]:
    """The configuration with the backends of a context's `extern_target`."""
    key = "relay.AnnotateTarget.targets"
    if value is None:
        return config
    if key in config:
        raise _core.UserError(f"extern_target: config has '{key}', too; give one of them")
    return {**config, key: _arguments.names([value] if isinstance(value, str) else value, "extern_target")}


Pass = _node.class_of("transform.Pass")


@_node.mixin("transform.Sequential")
class _Sequential:
    """Passes one after another, as one.

    Parameters
    ----------
    passes : list of Pass
        They run up to the level of the context, except those it disables. What a pass requires runs just before it,
        whatever the level is. An order that a pass' `runs_after` speaks against is an error before any runs.
    opt_level : int
        The sequence's own level.
    name : str
        The name.
    required : list of str, optional
        Passes that run before it.
    traceable : bool
        Whether the trace of a context is called for the sequence, too, and not for its passes alone.
    """

    __slots__ = ()

    def __init__(
        self,
        passes: Iterable[Any] | None = None,
        opt_level: int = 0,
        name: str = "sequential",
        required: Iterable[str] | None = None,
        traceable: bool = True,
    ) -> None:
        info = PassInfo(opt_level, name, _names(required, "required"), traceable)
        listed = _listed(passes, "passes")
        for one in listed:
            _check_pass(one, "passes: expected passes")
        _core.Object.__init__(self, api("transform.Sequential")(listed, info))


PassInfo = _node.class_of("transform.PassInfo")
PassContext = _node.class_of("transform.PassContext")
ModulePass = _node.class_of("transform.ModulePass")
Sequential = _node.class_of("transform.Sequential")


def _decorate(
    make: str,
    func: Any,
    opt_level: int | None,
    name: str | None,
    required: Iterable[str] | None,
    traceable: bool,
    runs_after: Iterable[str] | None,
    arity: int,
) -> Any:
    if opt_level is None:
        raise _core.UserError("opt_level: a pass says its level, as in @module_pass(opt_level=0)")

    def decorate(body: Any) -> Any:
        if not callable(body):
            raise _core.UserError(f"pass_func: expected a function or a class, got {_arguments.kind(body)}")
        info = PassInfo(
            opt_level,
            name or body.__name__,
            _names(required, "required"),
            traceable,
            _names(runs_after, "runs_after"),
        )
        if isinstance(body, type):
            return _pass_class(make, body, info, arity)
        return api(make)(body, info)

    return decorate if func is None else decorate(func)


def _pass_class(make: str, cls: type, info: Any, arity: int) -> Callable[..., Any]:
    """A class with transform_module or transform_function becomes a factory of passes."""
    method = "transform_module" if arity == 2 else "transform_function"
    if not hasattr(cls, method):
        raise _core.UserError(f"the pass {cls.__name__} has no method {method}")

    @functools.wraps(cls, updated=())
    def factory(*args: Any, **kwargs: Any) -> Any:
        return api(make)(getattr(cls(*args, **kwargs), method), info)

    factory.makes_pass = True
    return factory


def module_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Iterable[str] | None = None,
    traceable: bool = True,
    runs_after: Iterable[str] | None = None,
) -> Any:
    """Makes a pass of a function, or of a class with a method transform_module.

    Parameters
    ----------
    pass_func : function or class, optional
        Called with (module, context), which gives the new module; without it, a decorator is returned.
    opt_level : int
        The level from which on it runs in a sequence.
    name : str, optional
        What it is called; else as the function.
    required : list of str, optional
        Passes that run before it each time, whatever the level is.
    traceable : bool
        Whether the trace of a context is called for the pass.
    runs_after : list of str, optional
        Passes that it comes after in a sequence that has both.

    Returns
    -------
    Pass, or the decorator; of a class, a function that makes passes
    """
    return _decorate("transform.MakeModulePass", pass_func, opt_level, name, required, traceable, runs_after, 2)


def function_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Iterable[str] | None = None,
    traceable: bool = True,
    runs_after: Iterable[str] | None = None,
) -> Any:
    """Makes a pass of a function, which is called for each function of Relay.

    Functions marked SkipOptimization, Primitive or Compiler are left alone.

    Parameters
    ----------
    pass_func : function or class, optional
        Called with (function, module, context), which gives the new function; or a class whose method
        transform_function is one. Without it, a decorator is returned.
    opt_level : int
        The level from which on it runs in a sequence.
    name : str, optional
        What it is called; else as the function.
    required : list of str, optional
        Passes that run before it each time, whatever the level is.
    traceable : bool
        Whether the trace of a context is called for the pass.
    runs_after : list of str, optional
        Passes that it comes after in a sequence that has both.

    Returns
    -------
    Pass, or the decorator; of a class, a function that makes passes
    """
    return _decorate(
        "relay._transform.MakeFunctionPass", pass_func, opt_level, name, required, traceable, runs_after, 3
    )


def prim_func_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Iterable[str] | None = None,
    traceable: bool = True,
    runs_after: Iterable[str] | None = None,
) -> Any:
    """Makes a pass of a function, which is called for each loop function.

    Parameters
    ----------
    pass_func : function or class, optional
        Called with (function, module, context), which gives the new function; or a class whose method
        transform_function is one. Without it, a decorator is returned.
    opt_level : int
        The level from which on it runs in a sequence.
    name : str, optional
        What it is called; else as the function.
    required : list of str, optional
        Passes that run before it each time, whatever the level is.
    traceable : bool
        Whether the trace of a context is called for the pass.
    runs_after : list of str, optional
        Passes that it comes after in a sequence that has both.

    Returns
    -------
    Pass, or the decorator; of a class, a function that makes passes
    """
    return _decorate("tir.transform.MakePrimFuncPass", pass_func, opt_level, name, required, traceable, runs_after, 3)


def pass_registry() -> dict[str, Any]:
    """Level and summary of each pass of Headrace.

    Returns
    -------
    dict of str to PassInfo
        By name, in the order of the compiler's lists.
    """
    return {info.name: info for info in api("transform.PassRegistry")()}


def PrintIR(header: str = "", show_meta_data: bool = False) -> Any:
    """A pass that prints the module to the standard error, as Relay's, and gives it back.

    Parameters
    ----------
    header : str
        A word for the line above it, `PrintIR(header):`.
    show_meta_data : bool
        Whether the data of large constants is printed too.

    Returns
    -------
    Pass
    """

    def show(mod: Any, context: Any) -> Any:
        print(f"PrintIR({header}):\n{mod.astext(show_meta_data)}", file=sys.stderr)
        return mod

    return module_pass(show, opt_level=0, name="PrintIR")


def ApplyPassToFunction(transform: Any, func_name_regex: str, error_if_no_function_matches_regex: bool = False) -> Any:
    """A pass that sees some functions of a module only.

    Parameters
    ----------
    transform : Pass
        What to run.
    func_name_regex : str
        It sees the functions whose whole names match; those that they refer to are there for their types, and stay.
    error_if_no_function_matches_regex : bool
        Whether it is an error that none does.

    Returns
    -------
    Pass

    Raises
    ------
    UserError
        For what is not a pass, and what is not a regular expression.
    """
    _check_pass(transform, "transform: expected a pass")
    try:
        pattern = re.compile(func_name_regex)
    except re.error as error:
        raise _core.UserError(f"func_name_regex: {func_name_regex!r} is not a regular expression: {error}") from None

    def run(mod: Any, context: Any) -> Any:
        names = [str(var.name_hint) for var in mod.get_global_vars()]
        chosen = {name for name in names if pattern.fullmatch(name)}
        if not chosen and error_if_no_function_matches_regex:
            raise _core.UserError(f"no function's name matches {func_name_regex!r}; there are {', '.join(names)}")
        after = transform(mod) if chosen else mod
        if after.same_as(mod):
            return mod
        result = IRModule(after.functions, after.type_definitions, after.attrs)
        for name in names:
            if name not in chosen:
                result.update_func(name, mod[name])
        return result

    return module_pass(run, opt_level=0, name=f"ApplyPassToFunction({transform.info.name})")


_public.settle(__name__)
