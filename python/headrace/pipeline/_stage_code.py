"""The code of a stage: how it is called, in this process or another, one request at a time or in batches, and saved."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

from headrace import _arguments, _core, compiler
from headrace._core import UserError
from headrace._memory_file import MemoryFile
from headrace.pipeline import _processes


@dataclass
class SavedCode:
    """A stage's code as the file of a pipeline keeps it: the bytes of an artifact, or the name of a function."""

    program: str = ""  # empty: the first of the artifact
    function: str = ""
    code: Any = None  # the function
    model: Callable[[], bytes] | None = None
    others: list[SavedCode] = field(default_factory=list)  # programs for other batches


@dataclass(frozen=True)
class BatchOptions:
    """How a stage takes several requests in one call."""

    max_batch: int
    max_delay: float
    retry_alone: bool
    any_rows: bool

    def native(self, others: Sequence[tuple[int, str]] = ()) -> Any:
        """These options for the runtime; `others` are models and programs for other batches."""
        return _core.PipelineBatch(self.max_batch, self.max_delay, self.retry_alone, self.any_rows, list(others))


@dataclass(frozen=True)
class ModuleOptions:
    """How the Relay module of a stage is compiled."""

    target: Any = None
    backends: Sequence[str] = ()
    params: Mapping[str, Any] | None = None
    build: Callable[..., Any] | None = None

    def are_given(self) -> bool:
        """Whether the stage has any of them."""
        return self.target is not None or bool(self.backends) or self.params is not None or self.build is not None


def _is_relay(code: Any) -> bool:
    """Whether this is a Relay module. Nothing is one before Relay was imported; the runtime alone does not have it."""
    ir = sys.modules.get("headrace.ir")
    return ir is not None and isinstance(code, ir.IRModule)


def _relay_stages() -> Any:
    return importlib.import_module("headrace.pipeline._relay_stages")


def compiled_code(code: Any, stage: str, options: ModuleOptions, threads: int) -> Any:
    """The code of a stage, in which Relay modules are compiled; other code as it is."""
    if isinstance(code, Mapping) and any(_is_relay(program) for program in code.values()):
        return {batch: compiled_code(program, stage, options, threads) for batch, program in code.items()}
    if _is_relay(code):
        return _relay_stages().compile_stage(code, stage, options, threads)
    if isinstance(code, tuple) and code and _is_relay(code[0]):
        raise UserError(
            "the code is a tuple; relay.frontend.from_onnx gives (mod, params): the module is the code, and params are "
            "an option, as in Stage(mod, params=params)"
        )
    for program in code.values() if isinstance(code, Mapping) else [code]:
        if isinstance(program, (str, PathLike)) and str(program).endswith((".onnx", ".relay")):
            file = Path(program).stem
            raise UserError(
                f"'{program}' is a model, and a stage takes what was compiled of it: "
                f"hr.compile('{program}', output='{file}.so'), and '{file}.so' as the stage"
            )
    if options.are_given():
        raise UserError(
            "target, backends, params and build are of a stage whose code is a Relay module; its "
            f"code is {_arguments.kind(code)}"
        )
    return code


def _evaluated(code: Any) -> Any:
    """The Relay module that a function runs which `Executor.evaluate` returned; None for other code."""
    module = getattr(code, "evaluated", None)
    return module if _is_relay(module) else None


def batch_options(
    code: Any, max_batch: int | None, max_delay: float, retry_alone: bool, rows: str | None
) -> BatchOptions | None:
    """How a stage takes several requests in one call; None for one that takes one at a time."""
    if isinstance(code, Mapping):
        if not code:
            raise UserError("the dict of programs is empty; it has a program for each batch: {1: 'm1.so', 8: 'm8.so'}")
        for batch in code:
            if isinstance(batch, bool) or not isinstance(batch, int) or batch < 1:
                raise UserError(f"the dict of programs has the batch {batch!r}; a batch is an integer from 1 on")
        max_batch = max(code) if max_batch is None else max_batch
    if max_batch is None:
        if max_delay or retry_alone or rows is not None:
            raise UserError("max_delay, retry_alone and rows are of stages that take batches; give a max_batch")
        return None
    if not 1 <= _arguments.integer(max_batch, "max_batch") <= _core.MOST_IN_BATCH:
        raise UserError(f"max_batch is {max_batch}; it lies from 1 to {_core.MOST_IN_BATCH}")
    if rows not in (None, "any"):
        raise UserError(f"rows is {rows!r}; it is 'any', or None for one row a request")
    return BatchOptions(max_batch, _arguments.seconds(max_delay, "max_delay"), bool(retry_alone), rows == "any")


def saved_code(code: Any, stage: str, in_process: bool, earlier: Sequence[SavedCode]) -> SavedCode:
    """A stage's code as a file keeps it; `earlier` is what stages before it are saved as."""
    if isinstance(code, Mapping):
        first, *others = (saved_code(code[key], stage, in_process, earlier) for key in sorted(code))
        return replace(first, others=others)
    if in_process and _function_name(code):
        return SavedCode(function=_function_name(code), code=_function_name(code))
    if isinstance(code, (str, PathLike)):
        return SavedCode(model=_file_reader(code, stage))
    module = getattr(code, "module", code)
    if isinstance(module, _core.Module):
        return SavedCode(model=module.save_to_binary)
    if isinstance(code, compiler.CompiledModel):
        return SavedCode(program=code.program, model=None if code.path is None else _file_reader(code.path, stage))
    if _evaluated(code) is not None:
        return SavedCode(code=code)
    name = name_of(code) or stage
    if any(other.function == name and other.code != code for other in earlier):
        name = stage  # another function has that name
    return SavedCode(function=name, code=code)


def _file_reader(path: str | PathLike[str], stage: str) -> Callable[[], bytes]:
    """Returns a reader of a stage's model file; it raises UserError if the file has changed since this call."""
    file = Path(path).absolute()

    def stamp() -> tuple[int, ...] | None:
        try:
            found = file.stat()
        except OSError:
            return None
        return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)

    loaded = stamp()

    def read() -> bytes:
        if loaded is None or stamp() != loaded:
            raise UserError(f"stage '{stage}': the file '{file}' is gone or has changed since the stage was made")
        return file.read_bytes()

    return read


def name_of(code: Any) -> str:
    """The name of a stage that is given none; empty where the code has none."""
    if isinstance(code, Mapping):
        batches = [batch for batch in code if isinstance(batch, int)]
        return name_of(code[min(batches)]) if batches else ""
    if _processes.is_import_name(code):
        return code.rsplit(":", 1)[1].rsplit(".", 1)[-1]
    if isinstance(code, (str, PathLike)):
        return str(code).rsplit("/", 1)[-1].removesuffix(".so")
    name = "" if _evaluated(code) is not None else getattr(code, "__name__", "")
    return name if isinstance(name, str) and name.isidentifier() else ""


def codes_of(
    code: Any,
    inputs: Sequence[str] | None,
    outputs: int | Sequence[str],
    given: Mapping[str, Any],
    batch: BatchOptions | None,
    files: ArtifactFiles,
) -> list[Any]:
    """The code of each replica."""
    programs = code if isinstance(code, Mapping) else {0: code}
    executors = {key: _executors_of(program, given, files) for key, program in programs.items()}
    if None in executors.values() and not given["falls_back"]:
        raise UserError(f"fallback is of stages that run programs, got {_arguments.kind(code)}")
    if None not in executors.values():
        if isinstance(code, Mapping):
            _check_batches(executors)
        of_replicas = zip(*(executors[key] for key in sorted(executors)), strict=True)
        if batch is None:
            return [_core.executor_stage(one) for (one,) in of_replicas]
        return [_core.batch_executor_stage(list(ones), batch.any_rows) for ones in of_replicas]
    if (module := _evaluated(code)) is not None and batch is None:
        names, count = _relay_stages().evaluated_ports(module)
        code, inputs = _relay_stages().in_order(code, count), names if inputs is None else inputs
        outputs = count if outputs == 1 else outputs
    if not isinstance(code, Mapping) and callable(code):
        ports = [(name, None, []) for name in inputs_of(code, inputs)]
        made = [(name, None, []) for name in _output_names(outputs)]
        native = None if batch is None else batch.native()
        return [_core.function_stage(code, ports, made, native) for _ in range(given["replicas"])]
    wrong = next(program for key, program in programs.items() if executors[key] is None)
    kind = _arguments.kind(wrong)
    if isinstance(code, Mapping):
        raise UserError(f"a dict of programs has compiled models, paths of artifacts or modules, got {kind}")
    raise UserError(f"a stage's code is a compiled model, the path of an artifact, a module or a function, got {kind}")


def check_once(stage: str, what: str, given: Sequence[str]) -> None:
    """Refuses a list of a stage that names a port twice."""
    for i, one in enumerate(given):
        if one in given[:i]:
            raise UserError(f"stage '{stage}' has the {what} {one!r} twice; give each its own name")


def _output_names(outputs: int | Sequence[str]) -> list[str]:
    return [f"output{i}" for i in range(outputs)] if isinstance(outputs, int) else list(outputs)


def _function_name(code: Any) -> str:
    """The name by which a process imports the function of a stage; empty for a program."""
    if _processes.is_import_name(code):
        return code
    is_program = isinstance(code, (str, PathLike, Mapping, compiler.CompiledModel))
    is_module = isinstance(getattr(code, "module", code), _core.Module)
    return _processes.import_name(code) if callable(code) and not is_program and not is_module else ""


def process_codes(
    code: Any,
    inputs: Sequence[str] | None,
    outputs: int | Sequence[str],
    given: Mapping[str, Any],
    batch: BatchOptions | None,
    run: Mapping[str, Any],
) -> list[Any]:
    """The code of each replica, in a process of its own."""
    if name := _function_name(code):
        fields = None if batch is None else [batch.max_batch, batch.max_delay, batch.retry_alone, batch.any_rows]
        words = _processes.function_command(name, inputs, _output_names(outputs), fields)
        return [_core.process_function_stage(words, **run) for _ in range(given["replicas"])]
    kinds = (batch is not None, batch is not None and batch.any_rows)
    made = [_processes.program_stage(code, given, kinds, run) for _ in range(given["replicas"])]
    if None in made:
        raise UserError(
            "the code of a stage with isolation='process' is an artifact's path, a model compiled to a file, a module, "
            f"or a function by its name 'module:function', got {_arguments.kind(code)}"
        )
    return made


def _check_batches(executors: Mapping[int, Any]) -> None:
    """Refuses a program that has another batch than its key."""
    for batch, of_replicas in executors.items():
        found = _core.batch_executor_stage(of_replicas[:1], False).most_in_batch
        if found != batch:
            raise UserError(
                f"the program for the batch {batch} has the batch {found}, the first dimension of its outputs"
            )


class ArtifactFiles:
    """Opens the artifacts of a graph, each once as long as its path names the same file.

    An opening verifies the whole file, and maps weights that lie in a file beside it.
    """

    def __init__(self) -> None:
        self._opened: dict[tuple[int, ...], Any] = {}

    def open(self, path: str | PathLike[str]) -> Any:
        name = compiler.artifact_path(path)
        try:
            found = Path(name).stat()
        except (OSError, ValueError):
            return _core.open_artifact(name)  # says what is wrong
        key = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
        if key not in self._opened:
            self._opened[key] = _core.open_artifact(name)
        return self._opened[key]


def _executors_of(code: Any, given: Mapping[str, Any], files: ArtifactFiles) -> list[Any] | None:
    """The executors of a program for each replica; None for what is not a program."""
    if isinstance(code, (str, PathLike)):
        if _processes.is_import_name(code) and not Path(code).exists():
            raise UserError(
                f"there is no file '{code}'; the name of a function needs isolation='process', and a stage of this "
                "process takes the function itself"
            )
        opened = files.open(code)
        threads, cpus, falls_back = given["threads"], given["cpus"], given["falls_back"]
        return [_core.make_executor(opened, "default", threads, cpus, falls_back) for _ in range(given["replicas"])]
    module = getattr(code, "module", code)
    if isinstance(module, _core.Module):
        file = MemoryFile(module.save_to_binary())
        return _executors_of(file.path, given, ArtifactFiles())
    if not isinstance(code, compiler.CompiledModel):
        return None
    if not isinstance(code._executor, _core.Executor):
        raise UserError("the model was compiled for another processor, and does not run here")
    if not given["falls_back"]:
        raise UserError("the model is open already: give fallback to headrace.load, or give the stage the file's path")
    if given["replicas"] > 1:
        raise UserError("a compiled model runs one request at a time; for replicas give the path of its artifact")
    return [code._executor]


def backend_of(code: Any, files: ArtifactFiles) -> str:
    """The names of the backends that a program was placed on, in order; empty for a function, and where unknown."""
    if isinstance(code, Mapping):
        return backend_of(code[min(code)], files)
    program = code.program if isinstance(code, compiler.CompiledModel) else "default"
    module = getattr(code, "module", code)
    try:
        if isinstance(module, _core.Module):
            file = MemoryFile(module.save_to_binary())
            opened = _core.open_artifact(file.path)
        elif isinstance(code, compiler.CompiledModel) and code.path is not None:
            opened = files.open(code.path)
        elif isinstance(code, (str, PathLike)) and not _processes.is_import_name(code):
            opened = files.open(code)
        else:
            return ""
    except UserError:
        return ""  # a compiled model whose file is gone, or a backend that only the process of the stage can load
    return ", ".join(opened.backends(program))


def inputs_of(code: Callable[..., Any], inputs: Sequence[str] | None) -> list[str]:
    """The names of a function's inputs: those given, or its parameters."""
    if inputs is not None:
        return _arguments.names(inputs, "inputs")
    try:
        parameters = inspect.signature(code).parameters.values()
    except (TypeError, ValueError):
        return ["input0"]
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters):
        raise UserError("the function takes any number of arguments; name its inputs: inputs=['x']")
    return [
        parameter.name for parameter in parameters if parameter.kind in kinds and parameter.default is parameter.empty
    ]
