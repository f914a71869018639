"""Backends in Python: code generators beside the native one, for a first version of a backend.

A backend is an object of a class that derives from `Backend`. The compiler asks it which calls it takes, and gives it
the regions that it took; where a compiled file runs, it loads the bytes that it made:

    class Mine(hr.backend.Backend):
        name = "mine"
        def supports(self, call): ...
        def compile(self, regions, options): ...
        def load(self, data): ...

    hr.backend.register(Mine())
    model = hr.compile("model.onnx", backends=["mine"])

A package offers a backend by an entry point of the group "headrace.backends", whose name is the backend's and whose
value is the class. It is imported when `compile`, `load`, `find` or `check` names the backend.

`python -m headrace.backend check NAME` tests one, as `check` does.
"""

from __future__ import annotations

import difflib
import functools
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any

from headrace import _answers, _arguments, _core, _node, _public
from headrace._answers import Refusal
from headrace._core import DiagnosticError, MissingError, UserError
from headrace.backend import _kit
from headrace.backend._kit import CaseReport, Finding

if TYPE_CHECKING:
    import numpy as np

    Run = Callable[[str, Sequence[np.ndarray], Sequence[np.ndarray]], None]

__all__ = ["Backend", "CaseReport", "Finding", "OnnxNode", "Refusal", "Region", "check", "find", "names", "register"]

_GROUP = "headrace.backends"
_OWN = {
    "numpy": EntryPoint("numpy", "headrace.backends.numpy:NumpyBackend", _GROUP),
    "onnxruntime": EntryPoint("onnxruntime", "headrace.backends.onnxruntime:OnnxRuntimeBackend", _GROUP),
}

_registered: dict[str, Backend] = {}
_lock = threading.RLock()  # held while a backend is registered


@dataclass(frozen=True)
class Region:
    """A part of a model for one backend to compile.

    `name` is the name by which `run` is called; `function` a Relay function, whose expressions have types; `module` an
    IRModule of the function and of what it uses.
    """

    name: str
    function: Any
    module: Any


@dataclass(frozen=True)
class OnnxNode:
    """A node of an ONNX model for which Headrace has no op.

    `op` is its operator, with the domain if that is not the default one, and `opset` the version of that domain;
    `message` the encoded NodeProto; `inputs` the types of its inputs, without those that are left out; `results` those
    that the model declares for its outputs, None where it declares none.
    """

    op: str
    opset: int
    message: bytes
    inputs: list[Any]
    results: list[Any]


class Backend:
    """Base of backends. A subclass has a `name`, and defines `supports` or `patterns`, `compile` and `load`.

    Methods are called from any thread, also while others are under way, so a backend does not change after it was made.
    An exception that a method raises becomes a UserError that says in which method and line.
    """

    name: str = ""
    """What users call it: at most 64 letters, digits, "_" and "-", but not "native", "external" or "default"."""

    version: str = ""
    """The backend's own version, which files that are compiled record."""

    one_call_per_region: bool = False
    """Whether each call, or each match of a pattern, is a region of its own: for what computes one at a time."""

    def supports(self, call: Any) -> bool | str | Refusal:
        """Says whether the backend computes a typed call of an op.

        Parameters
        ----------
        call : relay.Call
            The call: `call.op.name`, `call.attrs`, `call.args`, and types, as `call.args[0].checked_type`.

        Returns
        -------
        bool, str or Refusal
            True, or why not: a sentence in which "it" is the op. `headrace explain` shows it after the backend's name.
            A `Refusal` also has the reason's code, as Refusal("DTYPE_UNSUPPORTED", "its dtype is not float32"); a str
            alone means OP_UNSUPPORTED. False says no without a reason, which the conformance kit finds fault with.
        """
        return "the backend does not compute this op by itself"

    def patterns(self) -> Sequence[tuple[Any, ...]]:
        """Gives what the backend computes as one, the first of the highest priority. Asked once, by `register`.

        Returns
        -------
        list of tuple
            (name, pattern) or (name, pattern, check): the name begins with the backend's and a dot; the pattern is one
            of `relay.dataflow_pattern`, or its text; the check is a function of the matched expression that gives a
            bool, or why not as a str or a Refusal, which `headrace explain` shows. What is matched comes to `compile`
            as a call of a function with the attribute Composite, the name.
        """
        return []

    def compile(self, regions: list[Region], options: dict[str, Any]) -> list[bytes | str | Refusal]:
        """Compiles regions.

        Parameters
        ----------
        regions : list of Region
            The regions. None: the options are checked, and nothing else.
        options : dict
            The options that the user gave for this backend.

        Returns
        -------
        list of bytes, str or Refusal
            For each region its code, which `load` reads; or a str or a Refusal, why the backend does not compile it:
            then the region is compiled natively. Regions of equal bytes are loaded once.
        """
        raise NotImplementedError("it has no method compile")

    def load(self, data: bytes) -> Any:
        """Loads what `compile` made, perhaps in another process.

        Parameters
        ----------
        data : bytes
            The bytes. They come from a file, so they are checked.

        Returns
        -------
        function or object
            `run(name, inputs, outputs)`, or an object with such a method: called with a region's name and its tensors
            as arrays of numpy, it writes every element of the outputs. Inputs cannot be written to. It keeps no array
            after the call: that is an error, and the memory of the call's arrays is never freed. The object may have a
            method `types(name)`, too: the types of the region's inputs and of its outputs by what was loaded, two lists
            of relay.TensorType, or None. They are compared with those of the model before the first run.
        """
        raise NotImplementedError("it has no method load")

    def accepts_version(self, recorded: str) -> bool | str:
        """Says whether `load` reads what another version of the backend compiled.

        Asked before `load`, for a file that records another `version` than the backend has. A region that is refused
        runs natively, or is an error where fallback is off. Without this method, all other versions are refused.

        Parameters
        ----------
        recorded : str
            The version that compiled the file.

        Returns
        -------
        bool or str
            True; or False, or why not as a str, which the event shows.
        """
        return False

    def claim(self, node: OnnxNode) -> list[Any] | str | Refusal:
        """Says whether the backend computes a node of an ONNX model for which there is no op.

        A node that is claimed becomes a call of extern.onnx, which then comes to `supports` and `compile`. Without this
        method, a node whose result types the model declares is claimed when `supports` takes that call.

        Parameters
        ----------
        node : OnnxNode
            The node.

        Returns
        -------
        list of relay.TensorType, str or Refusal
            The types of its results, with known sizes; or why not.
        """
        raise NotImplementedError

    def cost(self, call: Any) -> float | None:
        """Estimates the time of a call that the backend takes, for placement by cost.

        Parameters
        ----------
        call : relay.Call
            A call of an op, or of a composite function.

        Returns
        -------
        float or None
            The seconds; None: as fast as native code.
        """
        return None

    def saved(self, call: Any, producers: list[Any]) -> float:
        """Estimates what a call costs less than `cost` says where its region also computes the calls before it.

        Parameters
        ----------
        call : relay.Call
            A call of an op, or of a composite function.
        producers : list of relay.Call
            Calls that it needs and the backend takes, whose values nothing else uses; the first is one of its operands.

        Returns
        -------
        float
            The seconds, at most what the call costs; 0: nothing is saved.
        """
        return 0.0

    def border(self, type: Any) -> float:
        """Estimates what a tensor takes to enter or to leave a region, beside the call of the region.

        Parameters
        ----------
        type : relay.TensorType
            The type of the tensor.

        Returns
        -------
        float
            The seconds, such as those of a change of layout; `cost` does not count them.
        """
        return 0.0


class _Checked:
    """Calls the methods of a backend for the compiler, and checks what they answer."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.name = backend.name

    def patterns(self) -> list[Any]:
        """The table, whose patterns are read later."""
        table = self._ask("patterns", self.backend.patterns)
        if not isinstance(table, (list, tuple)):
            raise self._wrong("patterns", table, "a list of (name, pattern) or (name, pattern, check)")
        for i, entry in enumerate(table):
            if not isinstance(entry, (list, tuple)) or not 2 <= len(entry) <= 3:
                raise self._wrong(f"patterns[{i}]", entry, "(name, pattern) or (name, pattern, check)")
            if not isinstance(entry[0], str):
                raise self._wrong(f"patterns[{i}]", entry[0], "the name of the pattern as a str")
        return [[name, pattern, *(self._check_of(name, one) for one in check)] for name, pattern, *check in table]

    def _check_of(self, pattern: str, check: Any) -> Callable[[Any], bool | str | Refusal]:
        moment = f"the check of the pattern '{pattern}'"

        def checked(root: Any) -> bool | str | Refusal:
            return self._answer(moment, self._ask(moment, check, root, call=root), "a bool, or why not as a str")

        if not callable(check):
            raise self._wrong(f"the pattern '{pattern}'", check, "a function of an expression as its check")
        return checked

    def supports(self, call: Any) -> bool | str | Refusal:
        """True, or why not."""
        answer = self._ask("supports", self.backend.supports, call, call=call)
        return _said(self._answer("supports", answer, "True, False or a sentence"))

    def _answer(self, moment: str, answer: Any, expected: str) -> bool | str | Refusal:
        if not _answers.is_plain(answer):
            raise self._wrong(moment, answer, expected)
        return _answers.read_answer(answer)

    def compile(self, rows: Iterable[Any], options: Any) -> list[bytes | str | Refusal]:
        """For each (name, function, module) its bytes, or why not."""
        regions = [Region(str(name), function, module) for name, function, module in rows]
        if not regions:
            return self._check_options(dict(options.items()))
        answers = self._ask("compile", self.backend.compile, regions, dict(options.items()))
        expected = "for each region bytes, or a sentence that says why not"
        if not isinstance(answers, (list, tuple)):
            raise self._wrong("compile", answers, f"a list: {expected}")
        if len(answers) != len(regions):
            raise UserError(
                f"the backend '{self.name}': compile gave {len(answers)} answers for {len(regions)} regions; expected "
                f"{expected}"
            )
        for region, answer in zip(regions, answers, strict=True):
            if not isinstance(answer, (bytes, bytearray, str, Refusal)):
                raise self._wrong(f"compile of the region '{region.name}'", answer, expected)
            text = answer.message if isinstance(answer, Refusal) else answer
            if isinstance(text, str) and not _is_utf8(text):
                raise UserError(
                    f"the backend '{self.name}': compile of the region '{region.name}' gave {answer!r}, which is not "
                    "text in UTF-8"
                )
        return [bytes(answer) if isinstance(answer, (bytes, bytearray)) else _said(answer) for answer in answers]

    def _check_options(self, options: dict[str, Any]) -> list[bytes | str | Refusal]:
        """Asks about options alone. A backend that fails without them, too, expects regions."""
        try:
            self.backend.compile([], options)
        except UserError:
            raise
        except Exception as error:
            if options and not self._fails_without_regions():
                raise self._failure("compile", error, None) from error
        return []

    def _fails_without_regions(self) -> bool:
        try:
            self.backend.compile([], {})
        except Exception:
            return True
        return False

    def load(self, data: bytes) -> list[Callable[..., Any] | None]:
        """A function that gives the function of a region's tensors; one that gives its types, or None."""
        loaded = self._ask("load", self.backend.load, data)
        run = getattr(loaded, "run", loaded)
        if not callable(run):
            raise self._wrong("load", loaded, "a function (name, inputs, outputs) or an object with a method run")
        types = getattr(loaded, "types", None)
        return [
            lambda region, num_inputs: functools.partial(self._run, run, region, num_inputs),
            None if types is None else functools.partial(self._types, types),
        ]

    def cost(self, call: Any) -> float | None:
        """Seconds, or None."""
        seconds = self._ask("cost", self.backend.cost, call, call=call)
        if seconds is None:
            return None
        try:
            return float(seconds)
        except (TypeError, ValueError, OverflowError):
            raise self._wrong("cost", seconds, "seconds as a float, or None") from None

    def saved(self, call: Any, producers: Iterable[Any]) -> float:
        """Seconds."""
        return self._seconds("saved", self._ask("saved", self.backend.saved, call, list(producers), call=call))

    def border(self, type: Any) -> float:
        """Seconds."""
        return self._seconds("border", self._ask("border", self.backend.border, type))

    def _seconds(self, moment: str, answer: Any) -> float:
        try:
            seconds = float(answer)
        except (TypeError, ValueError, OverflowError):
            raise self._wrong(moment, answer, "seconds as a float") from None
        if not 0 <= seconds <= 1000:
            raise UserError(f"the backend '{self.name}': {moment} gave {seconds} seconds, expected 0 to 1000")
        return seconds

    def accepts_version(self, recorded: str) -> str | None:
        """None, or why not."""
        answer = self._ask("accepts_version", self.backend.accepts_version, str(recorded))
        answer = self._answer("accepts_version", answer, "True, False or a sentence")
        if isinstance(answer, Refusal):
            return answer.message
        return None if answer is True else answer or ""

    def claim(self, op: str, opset: int, message: bytes, inputs: Any, results: Any) -> Any:
        """The types of the results, or why not."""
        node = OnnxNode(str(op), int(opset), bytes(message), list(inputs), list(results))
        answer = self._ask("claim", self.backend.claim, node)
        if isinstance(answer, (str, Refusal)):
            return _said(answer)
        if not isinstance(answer, (list, tuple)) or not all(
            isinstance(one, _node.class_of("relay.TensorType")) for one in answer
        ):
            raise self._wrong("claim", answer, "a list of relay.TensorType, or a sentence")
        return list(answer)

    def _types(self, types: Callable[[str], Any], region: str) -> list[list[Any]] | None:
        moment = f"types of the region '{region}'"
        answer = self._ask(moment, types, region)
        if answer is None:
            return None
        expected = "(types of inputs, types of outputs), two lists of relay.TensorType; or None"
        tensor_type = _node.class_of("relay.TensorType")
        if not isinstance(answer, (list, tuple)) or len(answer) != 2:
            raise self._wrong(moment, answer, expected)
        for types_of in answer:
            if not isinstance(types_of, (list, tuple)) or not all(isinstance(one, tensor_type) for one in types_of):
                raise self._wrong(moment, types_of, expected)
        return [list(types_of) for types_of in answer]

    def _run(self, run: Run, region: str, num_inputs: int, *tensors: _core.NDArray) -> None:
        arrays = [tensor.numpy() for tensor in tensors]
        for array in arrays[:num_inputs]:
            array.flags.writeable = False
        moment = f"run of the region '{region}'"
        # A tuple, so that `outputs[0] = result`, which writes nothing, is an error.
        result = self._ask(moment, run, region, arrays[:num_inputs], tuple(arrays[num_inputs:]))
        if result is not None:
            raise self._wrong(moment, result, "None; results are written to the outputs, as outputs[0][...] = result")

    def _ask(self, moment: str, method: Callable[..., Any], *args: Any, call: Any = None) -> Any:
        try:
            return method(*args)
        except UserError:
            raise
        except Exception as error:
            raise self._failure(moment, error, call) from error

    def _failure(self, moment: str, error: Exception, call: Any) -> UserError:
        frames = traceback.extract_tb(error.__traceback__)
        source = getattr(sys.modules.get(type(self.backend).__module__), "__file__", None)
        frame = next((one for one in reversed(frames) if one.filename == source), frames[-1])
        span = None if call is None else call.span
        made = (DiagnosticError if span else UserError)(
            f"the backend '{self.name}' failed in {moment}: {type(error).__name__}: {_text_of(error)} "
            f"({frame.filename}:{frame.lineno})"
        )
        made.op = getattr(getattr(call, "op", None), "name", "")
        made.place = f"{span.source_name}:{span.line}:{span.column}" if span else ""
        return made

    def _wrong(self, moment: str, given: Any, expected: str) -> UserError:
        return UserError(f"the backend '{self.name}': {moment} gave {_arguments.kind(given)}, expected {expected}")


def _text_of(error: Exception) -> str:
    """The text of an exception, whose own method may raise another."""
    try:
        return str(error).encode("utf-8", "replace").decode()
    except Exception:
        return "it cannot be shown as text"


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _said(answer: Any) -> Any:
    """The answer, whose "no" has a message."""
    return "it does not say why" if answer is False or answer == "" else answer


def _check_spelling(kind: type[Backend], name: str) -> None:
    """Refuses a class that takes nothing because the method that says what it takes has a name that is nearly right."""
    methods = ("supports", "patterns", "claim")
    if any(getattr(kind, method) is not getattr(Backend, method) for method in methods):
        return
    for own in sorted(set(dir(kind)) - set(dir(Backend))):
        for method in difflib.get_close_matches(own.lstrip("_"), methods, n=1, cutoff=0.8):
            raise UserError(f"the backend '{name}' has no method {method}, and one named {own}; did you mean {method}?")


def register(backend: Backend, override: bool = False) -> None:
    """Makes a backend known to this process, for `compile` and for the files that `load` opens.

    Parameters
    ----------
    backend : Backend
        The backend.
    override : bool
        Whether a backend in Python of that name may be replaced. What was compiled or loaded before keeps the old one.

    Raises
    ------
    UserError
        For what is not a Backend, for one without a method that it must have, and for a name that is not a word or
        is taken.
    """
    if not isinstance(backend, Backend):
        instead = "; give an object of the class" if isinstance(backend, type) else ""
        raise UserError(f"backend: expected a headrace.backend.Backend, got {_arguments.kind(backend)}{instead}")
    name = _arguments.text(backend.name, f"{type(backend).__name__}.name")
    for method in ("compile", "load"):
        if getattr(type(backend), method) is getattr(Backend, method):
            raise UserError(f"the backend '{name}' has no method {method}; define it in {type(backend).__name__}")
    _check_spelling(type(backend), name)
    checked = _Checked(backend)
    with _lock:
        if name in _registered and not override:
            raise UserError(
                f"there is a backend '{name}' already, {_origin(name)}; register(backend, override=True) replaces it"
            )
        _core.register_backend(
            name,
            _arguments.text(backend.version, f"{type(backend).__name__}.version"),
            bool(backend.one_call_per_region),
            checked.patterns(),
            checked.supports,
            checked.compile,
            checked.load,
            checked.cost,
            checked.saved if type(backend).saved is not Backend.saved else None,
            checked.border if type(backend).border is not Backend.border else None,
            checked.claim if type(backend).claim is not Backend.claim else None,
            checked.accepts_version if type(backend).accepts_version is not Backend.accepts_version else None,
        )
        _registered[name] = backend


def _origin(name: str) -> str:
    """Where the backend in Python of that name is from, for messages."""
    if name not in _registered:
        return "that of an installed package"
    known = type(_registered[name])
    return f"that of the class {known.__module__}.{known.__qualname__}"


def find(name: str) -> Backend:
    """Gives the backend of that name, which was registered, or is of an installed package: that is imported then.

    Parameters
    ----------
    name : str
        The name.

    Returns
    -------
    Backend

    Raises
    ------
    MissingError
        When there is none, or its package cannot be imported.
    """
    if _find_installed(_arguments.text(name, "name")):
        return _registered[name]
    if _core.has_backend(name):
        raise MissingError(f"the backend '{name}' is not in Python, so there is no object of it")
    hint = "; `python -m headrace backend check FILE` checks a library" if "/" in name or name.endswith(".so") else ""
    raise MissingError(f"there is no backend '{name}' in Python; there are {', '.join(names())}{hint}")


def names() -> list[str]:
    """Gives the names of the backends in Python, those of installed packages included; nothing is imported.

    Returns
    -------
    list of str
        The names, sorted.
    """
    return sorted({*_registered, *_installed()})


def check(name: str, cases: Iterable[str] | None = None, timeout: float = 60) -> list[CaseReport]:
    """Runs the conformance kit: small programs of what a backend takes, each checked in a child process.

    The children are forked from this process, so a backend that is only registered here is checked, too. The checks are
    listed in docs/bring-your-own-codegen.md. A check that fails is a finding in a report, and raises nothing.

    Parameters
    ----------
    name : str
        The backend: of Python, built in, or loaded by `headrace.load_backend`.
    cases : list of str, optional
        Only cases whose names match one of these, as "nn.conv2d/*".
    timeout : float
        Seconds that a case may take, from 0.1 to 86400.

    Returns
    -------
    list of CaseReport

    Raises
    ------
    UserError
        When there is no such backend or no such case, and for another timeout.
    """
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not 0.1 <= timeout <= 86400:
        raise UserError(f"timeout: {timeout!r} is not a number of seconds from 0.1 to 86400")
    offer([_arguments.text(name, "name")])
    return _kit.check(name, [] if cases is None else _arguments.names(cases, "cases"), timeout)


def offer(wanted: Iterable[str]) -> None:
    """Registers those of these backends that are installed in Python, and that the compiler does not know."""
    for name in wanted:
        if not _core.has_backend(name):
            _find_installed(name)


def _find_checks(name: str) -> None:
    """Imports the module `relay.op.contrib.NAME`, if there is one. Each compile calls it that names a backend."""
    extern_ops = sys.modules.get("headrace.relay._extern_ops")  # there are no folders of such modules without it
    if extern_ops is not None:
        extern_ops.find_checks(name)


def _installed() -> dict[str, EntryPoint]:
    return {**{entry.name: entry for entry in entry_points(group=_GROUP)}, **_OWN}


def _find_installed(name: str) -> bool:
    """Whether there is a backend of that name in Python; one that is installed is registered. The loader calls it."""
    entry = None if name in _registered else _installed().get(name)
    if entry is not None:
        made = _made_by(entry)  # without the lock: it imports a package, which may register a backend as it is imported
        with _lock:
            if name not in _registered:
                register(made)
    return name in _registered


def _made_by(entry: EntryPoint) -> Backend:
    try:
        found = entry.load()
        backend = found() if isinstance(found, type) else found
    except Exception as error:
        raise MissingError(
            f"the backend '{entry.name}' cannot be imported from '{entry.value}': {type(error).__name__}: {error}"
        ) from error
    if isinstance(backend, Backend) and backend.name != entry.name:
        raise MissingError(
            f"the entry point '{entry.name}' of the group '{_GROUP}' is '{entry.value}', a backend named "
            f"'{backend.name}'; give it that name"
        )
    return backend


_public.settle(__name__)
