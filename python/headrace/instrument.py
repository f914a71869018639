"""Instruments: objects that are called around each pass, and may prevent it from running."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from headrace import _arguments, _core, _node, _public
from headrace._ffi import api

__all__ = [
    "DumpIR",
    "PassInstrument",
    "PassPrintingInstrument",
    "PassTimingInstrument",
    "PrintAfterAll",
    "PrintBeforeAll",
    "PrintChanges",
    "VerifyEach",
    "VerifyText",
    "pass_instrument",
]

_HOOKS = ("enter_pass_ctx", "exit_pass_ctx", "should_run", "run_before_pass", "run_after_pass")


@_node.mixin("instrument.PassInstrument")
class _PassInstrument:
    """Base of instruments. A subclass defines the hooks it needs.

    enter_pass_ctx() and exit_pass_ctx() are called where a `with PassContext(instruments=[...])` begins and ends,
    should_run(mod, info) -> bool before each pass, run_before_pass(mod, info) and run_after_pass(mod, info) around it.
    An error of a hook ends the run; the context around is current again.
    """

    __slots__ = ()

    def __init__(self, name: str | None = None, *, native: Any = None, **hooks: Callable[..., Any]) -> None:
        if native is None:
            native = _node.make(
                "instrument.PassInstrument", {"name": name or type(self).__name__, **hooks, **_hooks_of(self)}
            )
        _core.Object.__init__(self, native)


def _hooks_of(instance: Any) -> dict[str, Callable[..., Any]]:
    """The hooks that the instance's class defines, each as a function that finds the instance again."""
    cls = type(instance)
    plain = _node.class_of("instrument.PassInstrument")
    return {
        hook: getattr(instance, hook) for hook in _HOOKS if getattr(cls, hook, None) is not getattr(plain, hook, None)
    }


PassInstrument = _node.class_of("instrument.PassInstrument")


def pass_instrument(pi_cls: type | None = None) -> Any:
    """Makes an instrument of a class with some of the hooks of `PassInstrument`.

    Parameters
    ----------
    pi_cls : type, optional
        The class; without it, a decorator is returned.

    Returns
    -------
    function
        Its call makes the instance of `pi_cls` and gives an instrument; attributes are the instance's.
    """

    def decorate(cls: type) -> type:
        class Instrument(PassInstrument):
            def __init__(self, *args: Any, **kwargs: Any) -> None:
                instance = cls(*args, **kwargs)
                hooks = {hook: getattr(instance, hook) for hook in _HOOKS if hasattr(instance, hook)}
                PassInstrument.__init__(self, cls.__name__, **hooks)
                object.__setattr__(self, "_instance", instance)

            def __getattr__(self, name: str) -> Any:
                return getattr(object.__getattribute__(self, "_instance"), name)

        Instrument.__name__ = Instrument.__qualname__ = cls.__name__
        Instrument.__doc__ = cls.__doc__
        Instrument.__module__ = cls.__module__
        return Instrument

    return decorate if pi_cls is None else decorate(pi_cls)


class PassTimingInstrument(PassInstrument):
    """Times the passes."""

    def __init__(self) -> None:
        PassInstrument.__init__(self, native=api("instrument.MakePassTimingInstrument")())

    def render(self) -> str:
        """How long each pass took, as a table; ask before the `with` of its context ends, or after."""
        return api("instrument.RenderTimePassProfiles")(self)


class PrintAfterAll(PassInstrument):
    """Prints the module after each pass.

    Parameters
    ----------
    sink : function of str, optional
        Takes the text in place of `print`.
    """

    def __init__(self, sink: Callable[[str], Any] = print) -> None:
        PassInstrument.__init__(self, native=api("instrument.MakeDumpInstrument")(False, sink))


class PrintBeforeAll(PassInstrument):
    """Prints the module before each pass. Parameters as `PrintAfterAll`."""

    def __init__(self, sink: Callable[[str], Any] = print) -> None:
        def show(mod: Any, info: Any) -> None:
            sink(f"// ---- before {info.name}\n{mod.astext(show_meta_data=False)}")

        PassInstrument.__init__(self, run_before_pass=show)


class PassPrintingInstrument(PassInstrument):
    """Prints the module before and after some passes.

    Parameters
    ----------
    print_before_pass_names, print_after_pass_names : list of str
        Names of passes.
    sink : function of str, optional
        Takes the text in place of `print`.
    """

    def __init__(
        self,
        print_before_pass_names: Iterable[str] = (),
        print_after_pass_names: Iterable[str] = (),
        sink: Callable[[str], Any] = print,
    ) -> None:
        def show(when: str, names: list[str]) -> Callable[[Any, Any], None]:
            def hook(mod: Any, info: Any) -> None:
                if info.name in names:
                    sink(f"// ---- {when} {info.name}\n{mod.astext(show_meta_data=False)}")

            return hook

        PassInstrument.__init__(
            self,
            run_before_pass=show("before", _arguments.names(print_before_pass_names, "print_before_pass_names")),
            run_after_pass=show("after", _arguments.names(print_after_pass_names, "print_after_pass_names")),
        )


class PrintChanges(PassInstrument):
    """Prints what each pass changed, as a diff. Parameters as `PrintAfterAll`."""

    def __init__(self, sink: Callable[[str], Any] = print) -> None:
        PassInstrument.__init__(self, native=api("instrument.MakeDumpInstrument")(True, sink))


class DumpIR(PassInstrument):
    """Writes into a folder what the program is, and what each pass changed, as a diff.

    Parameters
    ----------
    dump_dir : path
        The folder, which is made where it is missing.
    """

    def __init__(self, dump_dir: Any) -> None:
        PassInstrument.__init__(self, native=api("instrument.MakeDumpFolderInstrument")(str(dump_dir)))


class VerifyEach(PassInstrument):
    """Checks the rules of the IR after each pass; InternalError names the pass that broke one."""

    def __init__(self) -> None:
        PassInstrument.__init__(self, native=api("instrument.MakeVerifyInstrument")())


class VerifyText(PassInstrument):
    """Prints the program before and after each pass, reads it back and compares; InternalError names the pass."""

    def __init__(self) -> None:
        PassInstrument.__init__(self, native=api("instrument.MakeRoundTripInstrument")())


_public.settle(__name__)
