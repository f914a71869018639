"""Passes, sequences of them, and the contexts they run in."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from headrace import _core, _elsewhere, _node
from headrace._ffi import api
from headrace.ir import IRModule

__all__ = [
    "Pass",
    "PassContext",
    "PassInfo",
    "PrintIR",
    "Sequential",
    "function_pass",
    "module_pass",
    "pass_registry",
    "prim_func_pass",
]

_node.constructor("transform.PassInfo", "opt_level name required traceable", "What a pass is called and when it runs.")
_node.default("transform.PassInfo", required=())


@_node.mixin("transform.Pass")
class _Pass:
    """A step from module to module; a call runs it, whatever its level is."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """What it is called."""
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
            For what is no module, or what the pass refuses.
        """
        if not isinstance(mod, IRModule):
            raise _core.UserError(
                f"{self.name} is a pass over a module, got {type(mod).__name__}; write IRModule.from_expr(...) around "
                "an expression or a function"
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
        Passes of a sequence run up to this level; 2 is the default.
    required_pass : list of str
        Passes that run whatever the level is.
    disabled_pass : list of str
        Passes that do not run; names in any spelling.
    config : dict
        Options of passes by key; `PassContext.list_configs()` has the keys.
    instruments : list of PassInstrument
        They are told of each pass.
    trace : Trace, optional
        Not supported: give None.

    Raises
    ------
    UserError
        For an unknown key of `config`, or a value of another kind.
    """

    __slots__ = ()

    def __init__(
        self,
        opt_level: int = 2,
        required_pass: Iterable[str] | None = None,
        disabled_pass: Iterable[str] | None = None,
        instruments: Iterable[Any] | None = None,
        config: Mapping[str, Any] | None = None,
        trace: Any = None,
    ) -> None:
        if trace is not None:
            raise _core.UserError("trace: traces of passes are not kept; use an instrument")
        fields = {
            "opt_level": opt_level,
            "required_pass": _names(required_pass, "required_pass"),
            "disabled_pass": _names(disabled_pass, "disabled_pass"),
            "instruments": list(instruments or []),
            "config": dict(config or {}),
        }
        _core.Object.__init__(self, _node.make("transform.PassContext", fields))
        try:
            api("transform.CheckConfig")(self.config)
        except _core.UserError:
            for told in map(_elsewhere.config_hint, fields["config"].keys() - PassContext.list_configs().keys()):
                if told:
                    raise _core.UserError(told) from None
            raise

    def __enter__(self) -> Any:
        api("transform.EnterPassContext")(self)
        return self

    def __exit__(self, *error: object) -> None:
        api("transform.ExitPassContext")()

    def override_instruments(self, instruments: Iterable[Any] | None) -> None:
        """Other instruments for the rest of the block: those of now leave, these enter.

        Parameters
        ----------
        instruments : list of PassInstrument, optional
            None for no instruments.

        Raises
        ------
        UserError
            When this is not the context of the innermost `with` of this thread.
        """
        current = PassContext.current()
        # What stands for this context since an earlier call has the same config, and no other context has.
        if not (PassContext.is_active() and current.config.same_as(self.config)):
            raise _core.UserError(
                "override_instruments: this is not the context of the innermost `with`; write "
                "PassContext.current().override_instruments([...]) within one"
            )
        other = current.copy_with(instruments=list(instruments or []))
        api("transform.ExitPassContext")()
        api("transform.EnterPassContext")(other)

    @staticmethod
    def current() -> Any:
        """The context of the innermost `with` of this thread; one with the defaults outside of any."""
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


def _names(value: Iterable[str] | None, what: str) -> list[str]:
    if isinstance(value, str):
        raise _core.UserError(f"{what}: expected a list of str, got one str; write [{value!r}]")
    return list(value or [])


Pass = _node.class_of("transform.Pass")
PassInfo = _node.class_of("transform.PassInfo")
PassContext = _node.class_of("transform.PassContext")


class Sequential(Pass):
    """Passes one after another, as one.

    Parameters
    ----------
    passes : list of Pass
        They run up to the level of the context, except those it disables. What a pass requires and what no pass before
        it is, runs just before it.
    opt_level : int
        The sequence's own level.
    name : str
        What it is called.
    required : list of str, optional
        Passes that run before it.
    """

    def __init__(
        self,
        passes: Iterable[Any] | None = None,
        opt_level: int = 0,
        name: str = "sequential",
        required: Iterable[str] | None = None,
    ) -> None:
        info = PassInfo(opt_level, name, _names(required, "required"))
        listed = list(passes or [])
        for one in listed:
            if not isinstance(one, Pass):
                raise _core.UserError(f"passes: expected passes, got {type(one).__name__}")
        _core.Object.__init__(self, api("transform.Sequential")(listed, info))


def _decorate(
    make: str,
    func: Any,
    opt_level: int | None,
    name: str | None,
    required: Iterable[str] | None,
    traceable: bool,
    arity: int,
) -> Any:
    if opt_level is None:
        raise _core.UserError("opt_level: a pass says its level, as in @module_pass(opt_level=0)")

    def decorate(body: Any) -> Any:
        info = PassInfo(opt_level, name or body.__name__, _names(required, "required"), traceable)
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

    return factory


def module_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Iterable[str] | None = None,
    traceable: bool = False,
) -> Any:
    """Makes a pass of a function, or of a class with a method transform_module.

    Parameters
    ----------
    pass_func : function or class, optional
        Of (module, context), which gives the new module; without it, a decorator is returned.
    opt_level : int
        The level from which on it runs in a sequence.
    name : str, optional
        What it is called; else as the function.
    required : list of str, optional
        Passes that run before it.
    traceable : bool
        Kept in its info.

    Returns
    -------
    Pass, or the decorator; of a class, a function that makes passes
    """
    return _decorate("transform.MakeModulePass", pass_func, opt_level, name, required, traceable, 2)


def function_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Iterable[str] | None = None,
    traceable: bool = False,
) -> Any:
    """Makes a pass of a function of (function, module, context), which is called for each function of Relay.

    Functions marked SkipOptimization, Primitive or Compiler are left alone. A class has the method transform_function.
    Parameters as `module_pass`.
    """
    return _decorate("relay._transform.MakeFunctionPass", pass_func, opt_level, name, required, traceable, 3)


def prim_func_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Iterable[str] | None = None,
    traceable: bool = False,
) -> Any:
    """As `function_pass`, for loop functions."""
    return _decorate("tir.transform.MakePrimFuncPass", pass_func, opt_level, name, required, traceable, 3)


def pass_registry() -> dict[str, Any]:
    """Level and summary of each pass of Headrace, by name, in the order of the compiler's lists."""
    return {info.name: info for info in api("transform.PassRegistry")()}


def PrintIR(header: str = "", show_meta_data: bool = False) -> Any:
    """A pass that prints the module and gives it back.

    Parameters
    ----------
    header : str
        A line above it.
    show_meta_data : bool
        Whether the data of large constants is printed too.

    Returns
    -------
    Pass
    """

    def show(mod: Any, context: Any) -> Any:
        print(f"{header}\n{mod.astext(show_meta_data)}" if header else mod.astext(show_meta_data))
        return mod

    return module_pass(show, opt_level=0, name="PrintIR")
