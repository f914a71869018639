"""The options of sessions and runs, by onnxruntime's names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from headrace import _arguments, _public
from headrace._numpy import np
from headrace._ort_value import OrtValue
from headrace.error import SessionError

__all__ = ["ExecutionMode", "GraphOptimizationLevel", "RunOptions", "SessionOptions"]


class GraphOptimizationLevel(Enum):
    """How much a session optimizes: ORT_DISABLE_ALL is `opt_level` 0, ORT_ENABLE_BASIC 1, EXTENDED 2, the others 3."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99

    def __int__(self) -> int:
        return self.value


class ExecutionMode(Enum):
    """Accepted for the sake of old programs: ops run one after another, each on all threads."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1

    def __int__(self) -> int:
        return self.value


class _Options:
    """An object with a closed list of attributes, whose values keep the type of their defaults."""

    _defaults: Mapping[str, Any] = {}

    def __init__(self) -> None:
        vars(self).update(self._defaults, _entries={})

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._defaults:
            known = ", ".join(sorted(self._defaults))
            raise AttributeError(
                f"{type(self).__name__} has no attribute '{name}'; it has {known}", name=name, obj=self
            )
        vars(self)[name] = _checked(value, self._defaults[name], f"{type(self).__name__}.{name}")

    def __repr__(self) -> str:
        changed = {name: vars(self)[name] for name in self._defaults if vars(self)[name] != self._defaults[name]}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in changed.items())})"

    def _set_entry(self, key: str, value: str) -> None:
        vars(self)["_entries"][_arguments.text(key, "key")] = _arguments.text(value, "value")

    def _entry(self, key: str) -> str:
        entries = vars(self)["_entries"]
        if key not in entries:
            raise SessionError(f"{type(self).__name__} does not have configuration with key: {key}")
        return entries[key]


class SessionOptions(_Options):
    """Options of an InferenceSession.

    These do what they do in onnxruntime: `intra_op_num_threads`, `graph_optimization_level`, `enable_profiling`,
    `profile_file_prefix`, initialisers, and sizes for free dimensions. The others are accepted and do nothing, but for
    `optimized_model_filepath`: sessions write no ONNX models.
    """

    _defaults = {
        "enable_cpu_mem_arena": True,
        "enable_mem_pattern": True,
        "enable_mem_reuse": True,
        "enable_profiling": False,
        "execution_mode": ExecutionMode.ORT_SEQUENTIAL,
        "graph_optimization_level": GraphOptimizationLevel.ORT_ENABLE_ALL,
        "inter_op_num_threads": 0,
        "intra_op_num_threads": 0,
        "log_severity_level": -1,
        "log_verbosity_level": 0,
        "logid": "",
        "optimized_model_filepath": "",
        "profile_file_prefix": "headrace_profile_",
        "use_deterministic_compute": False,
        "use_per_session_threads": True,
    }

    def __init__(self) -> None:
        super().__init__()
        vars(self).update(_initializers={}, _sizes={}, _denoted_sizes={})

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Keeps an entry, which does nothing here."""
        self._set_entry(key, value)

    def get_session_config_entry(self, key: str) -> str:
        """The entry of that key; SessionError where there is none."""
        return self._entry(key)

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Fixes the dimensions of that name."""
        vars(self)["_sizes"][_arguments.text(name, "name")] = _arguments.integer(size, "size", bits=64)

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        """Fixes the dimensions of that denotation."""
        sizes = vars(self)["_denoted_sizes"]
        sizes[_arguments.text(denotation, "denotation")] = _arguments.integer(size, "size", bits=64)

    def add_initializer(self, name: str, value: OrtValue) -> None:
        """Replaces an initialiser of the model."""
        if not isinstance(value, OrtValue):
            raise SessionError(f"initialiser '{name}': expected an OrtValue, got {_arguments.kind(value)}")
        vars(self)["_initializers"][_arguments.text(name, "name")] = value

    def add_external_initializers(self, names: Sequence[str], values: Sequence[OrtValue]) -> None:
        """Replaces initialisers whose data the model has in files beside it, which need not exist."""
        given = _arguments.names(names, "names")
        if len(given) != len(values):
            raise SessionError(f"names and values differ in length: {len(given)} and {len(values)}")
        for name, value in zip(given, values, strict=True):
            self.add_initializer(name, value)

    def register_custom_ops_library(self, path: str) -> None:
        """Raises SessionError: libraries of onnxruntime's custom ops do not run here."""
        raise SessionError(
            f"'{path}': libraries of onnxruntime's custom ops do not run here; register an op (relay.op.register), or "
            "give nodes to the backend onnxruntime"
        )


class RunOptions(_Options):
    """Options of a run: `terminate` refuses it; the others are accepted and do nothing."""

    _defaults = {
        "log_severity_level": -1,
        "log_verbosity_level": 0,
        "logid": "",
        "only_execute_path_to_fetches": False,
        "terminate": False,
    }

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Keeps an entry, which does nothing here."""
        self._set_entry(key, value)

    def get_run_config_entry(self, key: str) -> str:
        """The entry of that key; SessionError where there is none."""
        return self._entry(key)


def _checked(value: Any, default: Any, what: str) -> Any:
    if isinstance(default, bool):
        if not isinstance(value, (bool, int, np.bool_)):
            raise TypeError(f"{what}: expected a bool, got {_arguments.kind(value)}")
        return bool(value)
    if isinstance(default, Enum):
        if not isinstance(value, type(default)):
            raise TypeError(f"{what}: expected a {type(default).__name__}, got {_arguments.kind(value)}")
        return value
    if isinstance(default, int):
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise TypeError(f"{what}: expected an int, got {_arguments.kind(value)}")
        return int(value)
    text = value.__fspath__() if hasattr(value, "__fspath__") else value
    if not isinstance(text, str):
        raise TypeError(f"{what}: expected a str, got {_arguments.kind(value)}")
    return text


_public.publish(__name__, "headrace.session")
