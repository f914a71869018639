"""Model files to callables."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from headrace import _arguments, _core, _native, _node, _public
from headrace._compile_cache import CompileCache, cache_of, key_of, key_of_module
from headrace._ffi import get_global_func
from headrace._keywords import suggests_keywords
from headrace._model_source import ModelSource

__all__ = [
    "CompiledModel",
    "compile",
    "load",
    "load_backend",
]


class CompiledModel(_core.Model):
    """A program that is ready to run: call it with the inputs in order, or by name.

    Inputs are numpy arrays or any DLPack tensors, read in place where they are dense, or lists and numbers, which get
    the input's dtype where it holds their values. A call gives a new NDArray, or a tuple of them in the model's order.
    Threads that call one model take turns; to run side by side, `load` the artifact once for each. A model that was
    compiled for another processor describes itself; a call raises MissingError.
    """

    def __init__(
        self, executor: _core.Executor | _core.Elsewhere, path: str | None = None, program: str = "default"
    ) -> None:
        super().__init__(executor.call)
        self._executor, self._path, self._program = executor, path, program
        self._names = [spec.name for spec in executor.inputs]
        if isinstance(executor, _core.Executor):
            executor.warn_fallbacks()  # a backend may be missing from the start

    @property
    def path(self) -> str | None:
        """The file of the artifact; None for a model that was compiled in memory."""
        return self._path

    @property
    def program(self) -> str:
        """The name of the program in the artifact."""
        return self._program

    @property
    def inputs(self) -> list[_core.TensorSpec]:
        """Name, dtype and shape of each input."""
        return self._executor.inputs

    @property
    def outputs(self) -> list[_core.TensorSpec]:
        """Name, dtype and shape of each output."""
        return self._executor.outputs

    @property
    def threads(self) -> int:
        """Threads that a call runs on."""
        return self._executor.threads

    @property
    def fallbacks(self) -> list[dict[str, Any]]:
        """Regions of other backends that run natively, because the backend is missing or failed.

        A RuntimeWarning tells of each once, when the model is made or in the call in which the backend fails. Each is a
        dict of `region`, `backend`, `reason` (a number of headrace/reason.h), `reason_name` (its name there, such as
        "BACKEND_FAILED"), `message` (what the backend said) and `run` (the call in which it failed, counted from 1; 0
        where the backend was missing from the start).
        """
        return self._executor.fallbacks

    def run(self, inputs: Sequence[Any]) -> list[_core.NDArray]:
        """All outputs as a list."""
        return self._executor.run(_arguments.tensors(inputs))

    def _run_into(
        self, inputs: Sequence[Any], places: Sequence[Any], times: list[int] | None = None
    ) -> list[_core.NDArray]:
        """As `run`, with outputs in the memory of those places that are arrays and fit; adds each step's time (ns)."""
        return self._executor.run_into(_arguments.tensors(inputs), places, times)

    def __repr__(self) -> str:
        ports = [", ".join(map(repr, specs)) for specs in (self.inputs, self.outputs)]
        return f"CompiledModel({' -> '.join(ports)})"

    if TYPE_CHECKING:  # it is C++'s

        def __call__(self, /, *args: Any, **kwargs: Any) -> Any: ...

    def _in_order(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        left = self._names[len(args) :]
        unknown = [name for name in kwargs if name not in left]
        missing = [name for name in left if name not in kwargs]
        if unknown or missing:
            problems = [f"unknown or given twice: {', '.join(unknown)}"] if unknown else []
            problems += [f"missing: {', '.join(missing)}"] if missing else []
            raise _core.UserError(f"the inputs are {', '.join(self._names)}; {'; '.join(problems)}")
        return (*args, *(kwargs[name] for name in left))


@suggests_keywords
def compile(
    model: Any,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    dims: Mapping[str, int] | None = None,
    bound: Mapping[str, Any] | None = None,
    weights: str | PathLike[str] | None = None,
    threads: int = 0,
    target: Any = None,
    cpu: str = "",
    features: str = "",
    opt_level: int = 3,
    jobs: int = 0,
    disabled_passes: Iterable[str] = (),
    backends: Iterable[str] = (),
    backend_options: Mapping[str, Mapping[str, Any]] | None = None,
    placement: str = "order",
    costs: str | PathLike[str] | None = None,
    plan: str | PathLike[str] | None = None,
    output: str | PathLike[str] | None = None,
    fallback: str = "native",
    cache: bool | str | PathLike[str] | None = None,
) -> CompiledModel:
    """Compiles a model for this machine, in memory or to the file `output`.

    Parameters
    ----------
    model : path, bytes, onnx.ModelProto or IRModule
        A file (.onnx, .relay), or the bytes of an ONNX file, which have all its data; or a Relay module, whose "main"
        is compiled and says its shapes itself.
    shapes : dict of str to tuple of int, optional
        The shapes of inputs whose shape the model leaves open.
    dims : dict of str to int, optional
        The sizes of dimensions that an ONNX model names, in every input that has them: {"batch": 1, "sequence": 128}.
    bound : dict of str to tensor, optional
        Inputs that become constants.
    weights : path, optional
        The data of a Relay text's constants, where it is not in the text (safetensors, `headrace-opt --weights`).
    threads : int
        0 is one a processor.
    target : str, dict, Target, or a list or dict by device of these, optional
        What to compile for, as Relay users write it: "llvm -mcpu=x86-64-v3". Without it and its parts, the target of
        the innermost `with`, or else this machine. A list also names backends: ["llvm", "ccompiler"].
    cpu, features : str
        Instead: its parts, by LLVM's names ("x86-64-v3", "+avx2,-avx512f").
    opt_level : int
        From 0 (each op by itself) to 4; `headrace-opt --list-passes` shows what runs from which level on.
    jobs : int
        Threads that compile; the result does not depend on it.
    disabled_passes : list of str
        Passes that do not run.
    backends : list of str
        Backends beside the native one, in the order of their priority.
    backend_options : dict of str to dict
        Options of backends, by the backend's name.
    placement : str
        How backends are chosen: "order" (each op goes to the first that takes it) or "cost" (the plan of least cost).
    costs : path, optional
        For placement by cost: what `headrace profile` measured; "cache": what `headrace profile --backends` keeps on
        this machine. Without it, costs are estimates.
    plan : path, optional
        A file that says which backend computes each op, as `headrace explain --save-plan` writes it. `backends` may
        then be left out.
    output : path, optional
        The artifact to write, ending in .so or in nothing; with code for another processor what is returned refuses
        calls. Other formats are written by `relay.build(...).export_library`.
    fallback : str
        What happens to a region of another backend where that is missing here, or fails: as for `load`.
    cache : bool or path
        True, or a folder: another process that compiles the same model with the same options on this machine loads what
        this one compiled. None: as the environment variable HEADRACE_CACHE, which names a folder, says. Compiles with
        `backends`, `plan` or `output`, and those of a process that registered ops are not cached.

    Returns
    -------
    CompiledModel

    Raises
    ------
    UserError
        For a bad model or option; MissingError, which is one, where LLVM's part of Headrace is not installed.
    """
    if _native.is_runtime_alone:
        raise _native.missing("headrace.compile")
    from headrace.target import chosen_targets  # needs the compiler, and `load` does without it

    chosen, beside = chosen_targets(target, cpu, features)
    is_module = isinstance(model, _node.class_of("ir.IRModule"))
    if is_module and (shapes or dims or bound or weights is not None):
        raise _core.UserError(
            "shapes, dims, bound and weights are for models in files; a module has its shapes and constants in itself "
            "(relay.build_module.bind_params_by_name binds parameters)"
        )
    source = None if is_module else ModelSource(model, "model")
    arguments: dict[str, Any] = {
        "shapes": _arguments.shapes(shapes),
        "dims": _arguments.dims(dims),
        "bound": _arguments.mapping(bound, "bound", 'bound={"x": array}'),
        "weights": "" if weights is None else _arguments.path(weights, "weights"),
        "target": chosen,
        "cpu": _arguments.text(cpu, "cpu"),
        "features": _arguments.text(features, "features"),
        "opt_level": _arguments.integer(opt_level, "opt_level"),
        "jobs": _arguments.integer(jobs, "jobs"),
        "threads": _arguments.integer(threads, "threads"),
        "disabled_passes": _arguments.names(disabled_passes, "disabled_passes"),
        **checked_backends(backends, backend_options, placement, costs, beside),
        "plan": "" if plan is None else _arguments.path(plan, "plan"),
        "output": None if output is None else _arguments.path(output, "output"),
        "falls_back": _arguments.falls_back(fallback),
    }
    with contextlib.nullcontext() if source is None else source.named():
        executor = _compile_cached(model if source is None else source.path, arguments, cache_of(cache))
    return CompiledModel(executor, None if output is None else _arguments.path(output, "output"))


def checked_backends(
    backends: Iterable[str],
    backend_options: Mapping[str, Mapping[str, Any]] | None,
    placement: str,
    costs: str | PathLike[str] | None,
    beside: Iterable[Any] = (),
) -> dict[str, Any]:
    """The arguments of these names, in which those of the targets `beside` are, too; finds backends in Python."""
    from headrace import backend  # needs the compiler, and `load` does without it

    given = _arguments.mapping(backend_options, "backend_options", 'backend_options={"ccompiler": {"cc": "clang"}}')
    options = {one.kind.name: dict(one.attrs) for one in beside if one.attrs}
    for name, own in given.items():
        options.setdefault(name, {}).update(_arguments.mapping(own, f"backend_options[{name!r}]", '{"cc": "clang"}'))
    named = [*_arguments.names(backends, "backends"), *(one.kind.name for one in beside)]
    backend.offer(named)
    return {
        "backends": named,
        "backend_options": options,
        "placement": _arguments.text(placement, "placement"),
        "costs": "" if costs is None else _arguments.path(costs, "costs"),
    }


def _compile_cached(program: Any, arguments: Mapping[str, Any], cache: CompileCache | None) -> Any:
    """Compiles a file or a module, or loads what the cache has of the same compile."""
    key = None if cache is None else _key_of(cache, program, arguments)
    if cache is None or key is None:
        return _core.compile(program, **arguments)

    def compile_to(file: str) -> Any:
        executor = _core.compile(program, **{**arguments, "output": file})
        if _key_of(cache, program, arguments) != key:
            raise _core.UserError("the model was written to while it was compiled")  # store() gives nothing then
        return executor

    found = cache.find(key, arguments["threads"])
    if found is None:
        found = cache.store(key, compile_to)
    return _core.compile(program, **arguments) if found is None else found


def _key_of(cache: CompileCache, program: Any, arguments: Mapping[str, Any]) -> str | None:
    if not _is_cacheable(arguments):
        return None
    apart = ("bound", "weights", "costs", "plan", "jobs", "output", "target")
    options = {name: value for name, value in arguments.items() if name not in apart}
    options["target"] = str(arguments["target"])
    files = {name: arguments[name] for name in ("weights", "costs")}
    if not isinstance(program, str):
        return key_of_module(cache, program, files, options)
    return key_of(cache, program, files, options, arguments["bound"])


def _is_cacheable(arguments: Mapping[str, Any]) -> bool:
    """Whether the key names all that decides the result: no other backends, no target but the native one's."""
    target = arguments["target"]
    is_native = target is None or target.kind.name == "llvm"
    is_plain = is_native and arguments["falls_back"]
    return is_plain and not (arguments["backends"] or arguments["plan"] or arguments["output"])


def load(
    artifact: str | PathLike[str],
    *,
    program: str = "default",
    threads: int = 0,
    cpus: Iterable[int] | None = None,
    own_threads: bool = False,
    fallback: str = "native",
    region_timeout: float = 0,
) -> CompiledModel:
    """Opens an artifact that was compiled before.

    Parameters
    ----------
    artifact : path
        The file.
    program : str
        Which of its programs.
    threads : int
        0 is one for each of `cpus`, or else what the artifact says.
    cpus : iterable of int
        Processors, as the system counts them, each once, on which the model gets threads of its own; the calling thread
        is not moved. None: the model shares the threads of all models of the process that have as many.
    own_threads : bool
        Whether the model gets threads of its own without `cpus`, too, so that it never waits for another model's run.
        `threads` says how many.
    fallback : str
        What happens to a region of another backend where that is missing, or fails: "native" runs the region's native
        form, if the file has one, and `CompiledModel.fallbacks` says so; "none" raises the error.
    region_timeout : float
        The seconds that such a region may take in one run; one that takes longer has failed, and is not called again.
        0: any time. Otherwise each region works on copies of its tensors, in a thread of its own.

    Returns
    -------
    CompiledModel

    Raises
    ------
    UserError
        For a file that is not an artifact (a model is for `compile`), and for a processor that is named twice or that
        this process may not use.
    """
    name = artifact_path(artifact)
    program = _arguments.text(program, "program")
    if cpus is not None and (isinstance(cpus, str) or not isinstance(cpus, Iterable)):
        raise _core.UserError(f"cpus: expected a list of processors' numbers, got {_arguments.kind(cpus)}")
    processors = [] if cpus is None else [_arguments.integer(cpu, f"cpus[{i}]") for i, cpu in enumerate(cpus)]
    return CompiledModel(
        _core.open_executor(
            name,
            program,
            _arguments.integer(threads, "threads"),
            processors,
            falls_back=_arguments.falls_back(fallback),
            region_timeout=_arguments.seconds(region_timeout, "region_timeout"),
            owns_threads=bool(own_threads),
        ),
        name,
        program,
    )


def artifact_path(artifact: str | PathLike[str]) -> str:
    """The path of an artifact; UserError for that of a model."""
    name = _arguments.path(artifact, "artifact")
    if name.endswith((".onnx", ".relay")):
        raise _core.UserError(
            f"artifact: '{name}' is a model, which headrace.compile compiles; load opens what that wrote"
        )
    return name


def load_backend(library: str | PathLike[str]) -> str:
    """Loads a backend from a shared library that answers headrace/backend_abi.h, or code generators in C++.

    Afterwards `compile(backends=[name])` may name it, and `load` opens files whose regions it runs. A library that
    registers `relay.ext.NAME` in C++ is for one version of Headrace.

    Parameters
    ----------
    library : path
        The library. One that was loaded before changes nothing.

    Returns
    -------
    str
        The name of the backend; "" where the library registered its backends itself.

    Raises
    ------
    UserError
        For a library that is not a backend, is built with the C++ headers of another version, or has a name that is
        taken; MissingError, which is one, where it, or a library that it needs, is not there.
    """
    return str(get_global_func("headrace.load_backend")(_arguments.path(library, "library")))


_public.settle(__name__)
