"""InferenceSession: onnxruntime's interface, with models compiled to native code."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from os import PathLike
from pathlib import Path
from threading import Lock
from typing import Any

from headrace import _arguments, _core, _public
from headrace._memory_file import MemoryFile
from headrace.compiler import CompiledModel, compile
from headrace.target import chosen_target

__all__ = [
    "InferenceSession",
    "NodeArg",
]

_KEPT_COMPILES = 8
_ORT_TYPES = {"float32": "float", "float64": "double"}
_PROVIDER = "CPUExecutionProvider"


class NodeArg:
    """An input or output: a dimension is an int, a name, or None."""

    def __init__(self, port: _core.ModelPort, shape: Sequence[int] | None = None) -> None:
        self.name: str = port.name
        self.shape: list[int | str | None] = port.shape if shape is None else list(shape)
        self.dtype: str = port.dtype
        self.type: str = f"tensor({_ORT_TYPES.get(port.dtype, port.dtype)})"

    def __repr__(self) -> str:
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape})"


class InferenceSession:
    """Runs a model file, or the bytes of an ONNX model.

    Open dimensions are fixed by `shapes`, or else by each run's inputs: each set of shapes is compiled once and the
    last eight are kept. Threads may share a session: the first that asks for a set of shapes compiles it, others that
    ask for the same one wait for that, or get its error, and those of other shapes go on. The positional arguments are
    onnxruntime's; sess_options and provider_options must be None and providers, where given, ["CPUExecutionProvider"].
    The others are `compile`'s.
    """

    def __init__(
        self,
        path_or_bytes: str | PathLike[str] | bytes,
        sess_options: None = None,
        providers: Sequence[str] | None = None,
        provider_options: None = None,
        *,
        shapes: Mapping[str, Sequence[int]] | None = None,
        bound: Mapping[str, Any] | None = None,
        weights: str | PathLike[str] | None = None,
        threads: int = 0,
        target: Any = None,
        cpu: str = "",
        features: str = "",
        opt_level: int = 3,
        jobs: int = 0,
        disabled_passes: Iterable[str] = (),
    ) -> None:
        _check_onnxruntime_options(sess_options, providers, provider_options)
        self._path = self._path_of(path_or_bytes)
        self._shapes = _arguments.shapes(shapes)
        self._bound = _arguments.mapping(bound, "bound", 'bound={"x": array}')
        self._weights = None if weights is None else _arguments.path(weights, "weights")
        numbers = {"threads": threads, "opt_level": opt_level, "jobs": jobs}
        self._options = {
            **{name: _arguments.integer(value, name) for name, value in numbers.items()},
            "target": chosen_target(target, cpu, features),
            "cpu": _arguments.text(cpu, "cpu"),
            "features": _arguments.text(features, "features"),
            "disabled_passes": _arguments.names(disabled_passes, "disabled_passes"),
        }
        _core.check_options(**self._options)
        self._lock = Lock()
        self._compiled: OrderedDict[tuple, CompiledModel] = OrderedDict()
        self._compiling: dict[tuple, Future[CompiledModel]] = {}
        files = [*_core.model_files(self._path), *([self._weights] if self._weights else [])]
        self._files = {file: _stamp(file) for file in files}
        self._read_ports()

    def get_inputs(self) -> list[NodeArg]:
        """The inputs, in the model's order, with the shapes that this session was given; bound ones are none."""
        return self._inputs

    def get_outputs(self) -> list[NodeArg]:
        """The outputs, in the model's order."""
        return self._outputs

    def get_providers(self) -> list[str]:
        """Always ["CPUExecutionProvider"]."""
        return [_PROVIDER]

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: None = None
    ) -> list[Any]:
        """The outputs of those names (None, or no names: all) as numpy arrays."""
        if run_options is not None:
            raise _core.UserError("run_options: there are none to set; leave it out")
        known = [arg.name for arg in self._outputs]
        # onnxruntime gives all for an empty list, too.
        wanted = (_arguments.names(output_names, "output_names") if output_names is not None else []) or known
        for name in wanted:
            if name not in known:
                raise _core.UserError(f"the model has no output '{name}'; it has {', '.join(known)}")
        tensors = self._tensors_of(input_feed)
        results = self._model_for(tensors).run(list(tensors.values()))
        return [results[known.index(name)].numpy() for name in wanted]

    def _path_of(self, path_or_bytes: str | PathLike[str] | bytes) -> str:
        if not isinstance(path_or_bytes, bytes):
            return _arguments.path(path_or_bytes, "path_or_bytes")
        # Kept, since each set of shapes reads it again.
        self._memory_file = MemoryFile(path_or_bytes)
        return self._memory_file.path

    def _read_ports(self) -> None:
        inputs, outputs = _core.read_ports(self._path, self._weights or "")
        for what, given in (("shapes", self._shapes), ("bound", self._bound)):
            unknown = given.keys() - {port.name for port in inputs}
            if unknown:
                raise _core.UserError(f"{what}: the model has no input {', '.join(sorted(unknown))}")
        # Each set of shapes is compiled with them, whatever becomes of the caller's memory until then.
        self._bound = {name: _arguments.copied(x, f"bound input '{name}'") for name, x in self._bound.items()}
        free = [port for port in inputs if port.name not in self._bound]
        self._inputs = [NodeArg(port, self._shapes.get(port.name)) for port in free]
        self._outputs = [NodeArg(port) for port in outputs]
        if not self._open_inputs():
            specs = self._model_for({}).outputs
            self._outputs = [NodeArg(port, spec.shape) for port, spec in zip(outputs, specs, strict=True)]

    def _tensors_of(self, input_feed: Mapping[str, Any]) -> dict[str, _core.NDArray]:
        feed = _arguments.mapping(input_feed, "input_feed", '{"x": array}')
        names = [arg.name for arg in self._inputs]
        missing = [name for name in names if name not in feed]
        unknown = [name for name in feed if name not in names]
        if missing or unknown:
            raise _core.UserError(
                f"the inputs are {', '.join(names)}; missing: {', '.join(missing) or 'none'}; "
                f"unknown: {', '.join(unknown) or 'none'}"
            )
        return {arg.name: _arguments.tensor(feed[arg.name], "input '{}'", arg.name, arg.dtype) for arg in self._inputs}

    def _check_files(self) -> None:
        for file, stamp in self._files.items():
            if _stamp(file) != stamp:
                raise _core.UserError(
                    f"'{file}' was written to after this session was made, which compiles it for each set of shapes; "
                    "make a new session"
                )

    def _open_inputs(self) -> list[str]:
        return [arg.name for arg in self._inputs if any(not isinstance(dim, int) for dim in arg.shape)]

    def _model_for(self, tensors: Mapping[str, _core.NDArray]) -> CompiledModel:
        shapes = {name: tensors[name].shape for name in self._open_inputs()} | self._shapes
        key = tuple(sorted(shapes.items()))
        while True:
            with self._lock:
                if key in self._compiled:
                    self._compiled.move_to_end(key)
                    return self._compiled[key]
                future = self._compiling.get(key)
                is_first = future is None
                if future is None:
                    future = self._compiling[key] = Future()
            if is_first:
                return self._compile(shapes, key, future)
            try:
                return future.result()
            except CancelledError:  # the thread that compiled was interrupted, not this one
                continue

    def _compile(self, shapes: Mapping[str, Sequence[int]], key: tuple, future: Future[CompiledModel]) -> CompiledModel:
        """Compiles without the lock, and tells those that wait for it; an error is not kept."""
        try:
            self._check_files()
            model = compile(self._path, shapes=shapes, bound=self._bound, weights=self._weights, **self._options)
            self._check_files()
        except BaseException as error:
            with self._lock:
                del self._compiling[key]
            if isinstance(error, Exception):
                future.set_exception(error)
            else:
                future.cancel()
            raise
        with self._lock:
            del self._compiling[key]
            self._compiled[key] = model
            if len(self._compiled) > _KEPT_COMPILES:
                self._compiled.popitem(last=False)
        future.set_result(model)
        return model


def _stamp(file: str) -> tuple[int, ...] | None:
    """Which file it is and when it was written to; None where there is none."""
    try:
        status = Path(file).stat()
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _check_onnxruntime_options(sess_options: object, providers: object, provider_options: object) -> None:
    if sess_options is not None:
        raise _core.UserError("sess_options: onnxruntime's do not apply here; give threads=, opt_level= instead")
    if provider_options is not None:
        raise _core.UserError("provider_options: there are none to set; leave it out")
    if providers is not None and _arguments.names(providers, "providers") not in ([], [_PROVIDER]):
        raise _core.UserError(f"providers: got {list(providers)!r}; there is only {_PROVIDER!r}")


_public.settle(__name__)
