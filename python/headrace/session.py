"""InferenceSession: onnxruntime's interface, with models compiled to native code."""

from __future__ import annotations

import contextlib
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from os import PathLike
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from headrace import _arguments, _core, _public
from headrace._compile_cache import cache_of
from headrace._io_binding import IOBinding
from headrace._model_source import ModelSource
from headrace._ort_value import OrtValue, type_string
from headrace._providers import (
    CPU_PROVIDER,
    get_all_providers,
    get_available_providers,
    get_device,
    known_providers,
)
from headrace._session_options import ExecutionMode, GraphOptimizationLevel, RunOptions, SessionOptions
from headrace._session_profile import SessionProfile
from headrace.compiler import CompiledModel, checked_backends, compile
from headrace.error import SessionError
from headrace.target import chosen_target

__all__ = [
    "ExecutionMode",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "ModelMetadata",
    "NodeArg",
    "OrtValue",
    "RunOptions",
    "SessionError",
    "SessionOptions",
    "get_all_providers",
    "get_available_providers",
    "get_device",
]

_KEPT_COMPILES = 8
_OPT_LEVELS = {0: 0, 1: 1, 2: 2, 3: 3, 99: 3}  # by GraphOptimizationLevel


class NodeArg:
    """An input or output: a dimension is an int, a name, or None."""

    def __init__(self, name: str, dtype: str, shape: Sequence[int | str | None]) -> None:
        self.name = name
        self.shape = list(shape)
        self.dtype = dtype
        self.type = type_string(dtype)

    def __repr__(self) -> str:
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape})"


class ModelMetadata:
    """A model's description of itself; texts are empty where the model gives none."""

    def __init__(self, header: _core.OnnxHeader) -> None:
        self.producer_name = header.producer_name
        self.graph_name = header.graph_name
        self.domain = header.domain
        self.description = header.doc
        self.graph_description = header.graph_doc
        self.version = header.version
        self.custom_metadata_map = dict(header.properties)


class InferenceSession:
    """Runs a model: a file, the bytes of an ONNX model, or an onnx.ModelProto.

    Open dimensions are fixed by `shapes`, or else by each run's inputs: each set of shapes is compiled once and the
    last eight are kept. Threads may share a session: the first that asks for a set of shapes compiles it, others that
    ask for the same one wait for that, or get its error, and those of other shapes go on. The positional arguments are
    onnxruntime's; of `providers`, those that are not here are skipped with a warning. The others are `compile`'s:
    `threads` and `opt_level`, where given, go before those of `sess_options`. A profile (`enable_profiling`) has an
    event for each step of each run.
    """

    def __init__(
        self,
        path_or_bytes: Any,
        sess_options: SessionOptions | None = None,
        providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        *,
        shapes: Mapping[str, Sequence[int]] | None = None,
        bound: Mapping[str, Any] | None = None,
        weights: str | PathLike[str] | None = None,
        threads: int = 0,
        target: Any = None,
        cpu: str = "",
        features: str = "",
        opt_level: int | None = None,
        jobs: int = 0,
        disabled_passes: Iterable[str] = (),
        backends: Iterable[str] = (),
        backend_options: Mapping[str, Mapping[str, Any]] | None = None,
        placement: str = "order",
        costs: str | PathLike[str] | None = None,
        fallback: str = "native",
        cache: bool | str | PathLike[str] | None = None,
    ) -> None:
        given = _options_of(sess_options)
        known_providers(providers, provider_options)
        self._session_options = given
        self._profile = SessionProfile(given.profile_file_prefix) if given.enable_profiling else None
        self._source = ModelSource(path_or_bytes, "path_or_bytes")
        self._shapes = _arguments.shapes(shapes)
        self._bound = _arguments.mapping(bound, "bound", 'bound={"x": array}')
        self._weights = None if weights is None else _arguments.path(weights, "weights")
        level = _OPT_LEVELS[given.graph_optimization_level.value] if opt_level is None else opt_level
        numbers = {"threads": threads or given.intra_op_num_threads, "opt_level": level, "jobs": jobs}
        self._options = {
            **{name: _arguments.integer(value, name) for name, value in numbers.items()},
            "target": chosen_target(target, cpu, features),
            "cpu": _arguments.text(cpu, "cpu"),
            "features": _arguments.text(features, "features"),
            "disabled_passes": _arguments.names(disabled_passes, "disabled_passes"),
            **checked_backends(backends, backend_options, placement, costs),
        }
        _core.check_options(**self._options)
        _arguments.falls_back(fallback)
        self._fallback = fallback
        self._cache = cache
        cache_of(cache)  # refuses a folder at once
        self._lock = Lock()
        self._compiled: OrderedDict[tuple, CompiledModel] = OrderedDict()
        self._compiling: dict[tuple, Future[CompiledModel]] = {}
        self._dropped: set[tuple] | None = set()  # keys that were compiled before; None: a warning was given
        self._variants: dict[tuple[str, ...], ModelSource] = {}
        self._header: _core.OnnxHeader | None = None
        with self._span("session_initialization"):
            self._replace_initializers()
            with self._source.named():
                files = [*_core.model_files(self._source.path), *([self._weights] if self._weights else [])]
                self._files = {file: _stamp(file) for file in files}
                self._read_ports()

    def get_inputs(self) -> list[NodeArg]:
        """The inputs, in the model's order, with the shapes that this session was given; bound ones are none."""
        return self._inputs

    def get_outputs(self) -> list[NodeArg]:
        """The outputs, in the model's order."""
        return self._outputs

    def get_overridable_initializers(self) -> list[NodeArg]:
        """The initialisers that are inputs, too: a run may give other values for them."""
        header = self._read_header()
        if header.ir_version < 4:  # where all initialisers had to be inputs
            return []
        names = [name for name in header.input_names if name in header.initializers and name not in self._bound]
        found = [header.initializers[name] for name in names]
        return [NodeArg(one.name, one.dtype, one.shape) for one in found]

    def get_modelmeta(self) -> ModelMetadata:
        """Producer, version and descriptions of the model."""
        return ModelMetadata(self._read_header())

    def get_session_options(self) -> SessionOptions:
        """The options that the session was made with."""
        return self._session_options

    def get_providers(self) -> list[str]:
        """Always ["CPUExecutionProvider"]."""
        return [CPU_PROVIDER]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """No options of the one provider."""
        return {CPU_PROVIDER: {}}

    def set_providers(self, providers: Sequence[Any] | None = None, provider_options: Any = None) -> None:
        """Changes nothing; SessionError for a provider that is not here."""
        names = [item if isinstance(item, str) else item[0] for item in providers or []]
        unknown = [name for name in names if name != CPU_PROVIDER]
        if unknown and not isinstance(providers, str):
            raise SessionError(f"Unknown Provider Type: {unknown[0]}; there is {CPU_PROVIDER!r}")
        known_providers(providers, provider_options)

    def enable_fallback(self) -> None:
        """Does nothing: there is one provider."""

    def disable_fallback(self) -> None:
        """Does nothing: there is one provider."""

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
    ) -> list[Any]:
        """The outputs of those names (None, or no names: all) as numpy arrays."""
        return [result.numpy() for result in self._results(output_names, input_feed, run_options, {})]

    def _results(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None,
        places: Mapping[str, Any],
    ) -> list[_core.NDArray]:
        """The outputs, written to the arrays in `places` where those fit."""
        _check_run_options(run_options)
        known = [arg.name for arg in self._outputs]
        # onnxruntime gives all for an empty list, too.
        wanted = (_arguments.names(output_names, "output_names") if output_names is not None else []) or known
        for name in wanted if wanted is not known else ():
            if name not in known:
                raise SessionError(f"the model has no output '{name}'; it has {', '.join(known)}")
        tensors, overridden = self._tensors_of(input_feed)
        model = self._model_for(tensors, overridden)
        given = [tensors[spec.name] for spec in model.inputs] if overridden else list(tensors.values())
        targets = [places.get(name) for name in known]
        if self._profile is not None:
            with self._profile.run_of(model._executor.steps) as times:
                results = model._run_into(given, targets, times)
        else:
            results = model._run_into(given, targets) if places else model.run(given)
        return results if wanted is known else [results[known.index(name)] for name in wanted]

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[list[Any], Any, str], None],
        user_data: Any,
        run_options: RunOptions | None = None,
    ) -> None:
        """Runs in a thread of its own, which calls `callback` with outputs, `user_data` and the error's text, or ""."""

        def work() -> None:
            try:
                outputs, error = self.run(output_names, input_feed, run_options), ""
            except Exception as raised:
                outputs, error = [], str(raised) or type(raised).__name__
            callback(outputs, user_data, error)

        if not callable(callback):
            raise SessionError(f"callback: expected a function, got {_arguments.kind(callback)}")
        Thread(target=work, name="headrace-run-async").start()

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
    ) -> list[OrtValue]:
        """As `run`, with OrtValues in and out."""
        feed = _arguments.mapping(input_dict_ort_values, "input_dict_ort_values", '{"x": value}')
        for name, value in feed.items():
            if not isinstance(value, OrtValue):
                raise SessionError(f"input '{name}': expected an OrtValue, got {_arguments.kind(value)}")
        return [OrtValue(array) for array in self.run(output_names, feed, run_options)]

    def io_binding(self) -> IOBinding:
        """A new binding, with nothing bound."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Runs with the tensors of a binding that this session made."""
        if not isinstance(iobinding, IOBinding):
            raise SessionError(f"iobinding: expected an IOBinding, got {_arguments.kind(iobinding)}")
        if iobinding._session is not self:
            raise SessionError("iobinding: another session made it; use it with that one")
        iobinding._run(run_options)

    def end_profiling(self) -> str:
        """Writes the profile and gives the file's name; "" where the options do not enable profiling."""
        return self._profile.end() if self._profile else ""

    def get_profiling_start_time_ns(self) -> int:
        """When profiling began, by the monotonic clock; 0 without profiling."""
        return self._profile.start_ns if self._profile else 0

    def _span(self, name: str) -> contextlib.AbstractContextManager[None]:
        return self._profile.span(name) if self._profile else contextlib.nullcontext()

    def _read_header(self) -> _core.OnnxHeader:
        if self._header is None:
            is_relay = not self._source.is_in_memory and _core.is_relay_file(self._source.path)
            with self._source.named():
                self._header = _core.OnnxHeader() if is_relay else _core.read_onnx_header(self._source.path)
        return self._header

    def _replace_initializers(self) -> None:
        values: dict[str, OrtValue] = vars(self._session_options)["_initializers"]
        if not values:
            return
        known = self._read_header().initializers
        for name, value in values.items():
            if name not in known:
                raise SessionError(f"{self._source.name} has no initialiser '{name}'")
            own = known[name]
            if (value.shape(), value.data_type()) != (own.shape, type_string(own.dtype)):
                raise SessionError(
                    f"initialiser '{name}': expected {type_string(own.dtype)} of shape {own.shape}, got "
                    f"{value.data_type()} of shape {value.shape()}"
                )
        arrays = {name: value.numpy() for name, value in values.items()}
        self._source = self._with_initializers(arrays, set())

    def _with_initializers(self, replaced: Mapping[str, Any], dropped: set[str]) -> ModelSource:
        """The model with other values for some initialisers, and without those that become required inputs."""
        for name, one in self._read_header().initializers.items():
            if one.is_external and name not in replaced and name not in dropped:
                raise SessionError(
                    f"initialiser '{name}' is in a file beside the model; other initialisers can be replaced only "
                    "where all those that stay are in the model itself"
                )
        with self._source.named():
            data = _core.onnx_with_initializers(self._source.path, dict(replaced), dropped)
        return self._source.rewritten(data)

    def _read_ports(self) -> None:
        inputs, outputs = _core.read_ports(self._source.path, self._weights or "")
        for what, given in (("shapes", self._shapes), ("bound", self._bound)):
            unknown = given.keys() - {port.name for port in inputs}
            if unknown:
                raise _core.UserError(f"{what}: the model has no input {', '.join(sorted(unknown))}")
        # Each set of shapes is compiled with them, whatever becomes of the caller's memory until then.
        self._bound = {name: _arguments.copied(x, f"bound input '{name}'") for name, x in self._bound.items()}
        sizes = self._sizes_of_names(inputs)
        free = [port for port in inputs if port.name not in self._bound]
        self._inputs = [NodeArg(port.name, port.dtype, self._shape_of(port, sizes)) for port in free]
        self._outputs = [NodeArg(port.name, port.dtype, _sized(port.shape, sizes)) for port in outputs]
        if not self._open_inputs():
            specs = self._model_for({}).outputs
            self._outputs = [
                NodeArg(port.name, port.dtype, spec.shape) for port, spec in zip(outputs, specs, strict=True)
            ]

    def _sizes_of_names(self, inputs: Sequence[_core.ModelPort]) -> dict[str, int]:
        """The sizes that the options give for free dimensions, by the dimension's name."""
        options = vars(self._session_options)
        sizes: dict[str, int] = dict(options["_sizes"])
        if options["_denoted_sizes"]:
            denotations = self._read_header().denotations
            for port in inputs:
                for dim, denotation in zip(port.shape, denotations.get(port.name, []), strict=False):
                    if isinstance(dim, str) and denotation in options["_denoted_sizes"]:
                        sizes.setdefault(dim, options["_denoted_sizes"][denotation])
        return sizes

    def _shape_of(self, port: _core.ModelPort, sizes: Mapping[str, int]) -> Sequence[int | str | None]:
        shape = self._shapes.get(port.name) or _sized(port.shape, sizes)
        if shape != port.shape and all(isinstance(dim, int) for dim in shape):
            self._shapes[port.name] = tuple(shape)
        return shape

    def _tensors_of(self, input_feed: Mapping[str, Any]) -> tuple[dict[str, _core.NDArray], list[NodeArg]]:
        """The inputs in order, and the initialisers that the run gives other values for, whose tensors follow."""
        feed = _arguments.mapping(input_feed, "input_feed", '{"x": array}')
        names = [arg.name for arg in self._inputs]
        missing = [name for name in names if name not in feed]
        unknown = [name for name in feed if name not in names]
        overridden = [arg for arg in self.get_overridable_initializers() if arg.name in feed] if unknown else []
        unknown = [name for name in unknown if name not in [arg.name for arg in overridden]]
        if missing or unknown:
            raise SessionError(
                f"the inputs are {', '.join(names)}; missing: {', '.join(missing) or 'none'}; "
                f"unknown: {', '.join(unknown) or 'none'}"
            )
        ports = [*self._inputs, *overridden] if overridden else self._inputs
        return {arg.name: _fitting(feed[arg.name], arg) for arg in ports}, overridden

    def _check_files(self) -> None:
        for file, stamp in self._files.items():
            if _stamp(file) != stamp:
                raise _core.UserError(
                    f"'{file}' was written to after this session was made, which compiles it for each set of shapes; "
                    "make a new session"
                )

    def _open_inputs(self) -> list[str]:
        return [arg.name for arg in self._inputs if any(not isinstance(dim, int) for dim in arg.shape)]

    def _source_with(self, overridden: Sequence[NodeArg]) -> ModelSource:
        """The model, in which these initialisers are inputs only."""
        if not overridden:
            return self._source
        names = tuple(arg.name for arg in overridden)
        with self._lock:
            if names not in self._variants:
                self._variants[names] = self._with_initializers({}, set(names))
            return self._variants[names]

    def _model_for(self, tensors: Mapping[str, _core.NDArray], overridden: Sequence[NodeArg] = ()) -> CompiledModel:
        shapes = {name: tensors[name].shape for name in self._open_inputs()} | self._shapes
        key = (tuple(sorted(shapes.items())), tuple(arg.name for arg in overridden) if overridden else ())
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
                return self._compile(overridden, shapes, key, future)
            try:
                return future.result()
            except CancelledError:  # the thread that compiled was interrupted, not this one
                continue

    def _compile(
        self,
        overridden: Sequence[NodeArg],
        shapes: Mapping[str, Sequence[int]],
        key: tuple,
        future: Future[CompiledModel],
    ) -> CompiledModel:
        """Compiles without the lock, and tells those that wait for it; an error is not kept."""
        try:
            self._check_files()
            source = self._source_with(overridden)
            with self._span("compile"), source.named():
                model = compile(
                    source.path,
                    shapes=shapes,
                    bound=self._bound,
                    weights=self._weights,
                    cache=self._cache,
                    fallback=self._fallback,
                    **self._options,
                )
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
            is_again = self._note_dropped(key)
        future.set_result(model)
        if is_again:
            warnings.warn(
                f"session: sets of shapes are compiled again, because the session keeps only {_KEPT_COMPILES}; use "
                "fewer, give a cache (cache=True), or make a session for each",
                RuntimeWarning,
                stacklevel=_core.caller_level(),
            )
        return model

    def _note_dropped(self, key: tuple) -> bool:
        """Drops the set of shapes that was used least recently; whether this is the first one that comes again."""
        dropped = self._compiled.popitem(last=False)[0] if len(self._compiled) > _KEPT_COMPILES else None
        if self._dropped is None:
            return False
        if key in self._dropped:
            self._dropped = None
            return True
        if dropped is not None:
            self._dropped.add(dropped)
        return False


def _stamp(file: str) -> tuple[int, ...] | None:
    """Which file it is and when it was written to; None where there is none."""
    try:
        status = Path(file).stat()
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _sized(shape: Sequence[int | str | None], sizes: Mapping[str, int]) -> list[int | str | None]:
    """The shape with the sizes of named dimensions."""
    return [sizes.get(dim, dim) if isinstance(dim, str) else dim for dim in shape]


def _fitting(value: Any, arg: NodeArg) -> _core.NDArray:
    """The tensor that is given for an input, of the input's dtype, rank and fixed sizes."""
    if isinstance(value, OrtValue):
        value = value.numpy()
    tensor = _arguments.tensor(value, "input '{}'", arg.name, arg.dtype)
    if tensor.dtype != arg.dtype:
        raise SessionError(f"input '{arg.name}': expected {arg.type}, got {type_string(tensor.dtype)} ({tensor.dtype})")
    shape = tensor.shape
    if not arg.shape:  # a scalar, or of any rank
        return tensor
    if len(shape) != len(arg.shape):
        raise SessionError(
            f"input '{arg.name}': expected rank {len(arg.shape)}, as in shape {arg.shape}, got rank {len(shape)}: "
            f"{list(shape)}"
        )
    if any(isinstance(known, int) and known != size for known, size in zip(arg.shape, shape, strict=True)):
        raise SessionError(f"input '{arg.name}': expected shape {arg.shape}, got {list(shape)}")
    return tensor


def _options_of(sess_options: SessionOptions | None) -> SessionOptions:
    if sess_options is None:
        return SessionOptions()
    if not isinstance(sess_options, SessionOptions):
        instead = "; onnxruntime's do not apply here" if _arguments.kind(sess_options) == "SessionOptions" else ""
        raise SessionError(
            f"sess_options: expected headrace.session.SessionOptions, got {_arguments.kind(sess_options)}{instead}"
        )
    if sess_options.optimized_model_filepath:
        raise SessionError(
            "sess_options.optimized_model_filepath: sessions write no ONNX models; headrace.compile(..., output=) "
            "writes the compiled one"
        )
    return sess_options


def _check_run_options(run_options: RunOptions | None) -> None:
    if run_options is None:
        return
    if not isinstance(run_options, RunOptions):
        raise SessionError(f"run_options: expected headrace.session.RunOptions, got {_arguments.kind(run_options)}")
    if run_options.terminate:
        raise SessionError("run_options.terminate is set: the run was not started")


_public.settle(__name__)
