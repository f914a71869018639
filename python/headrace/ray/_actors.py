"""The actors of a pipeline: each runs one stage, or neighbouring stages of one node joined by our rings."""

from __future__ import annotations

import contextlib
import copy
import os
import pickle
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from time import monotonic
from typing import Any

from headrace import _arguments, compiler, pipeline
from headrace._core import NDArray, UserError
from headrace._numpy import np
from headrace.pipeline import _host, _processes, _stage_code
from headrace.pipeline._errors import PipelineError
from headrace.ray._artifacts import ArtifactRef, artifact_ref
from headrace.ray._package import RAY_IS_GONE, is_connected, ray_package
from headrace.ray._places import Place

__all__: list[str] = []


@dataclass
class StageSpec:
    """A stage as its actor makes it: an ArtifactRef, a dict of these by batch, a function, or "module:function"."""

    name: str
    code: Any
    options: dict[str, Any]
    is_pure: bool
    time_limit: float | None

    @property
    def takes_several(self) -> bool:
        """Whether the stage works on several requests at once: in batches, or by replicas."""
        return isinstance(self.code, Mapping) or any(
            self.options.get(name) not in (None, 1) for name in ("max_batch", "rows", "replicas")
        )


@dataclass
class ActorSpec:
    """Neighbouring stages that one actor runs."""

    stages: list[StageSpec]
    place: Place

    @property
    def name(self) -> str:
        """The names of the stages, for messages."""
        return "+".join(stage.name for stage in self.stages)

    @property
    def is_pure(self) -> bool:
        """Whether a request may run again."""
        return all(stage.is_pure for stage in self.stages)

    @property
    def time_limit(self) -> float | None:
        """The seconds that a request may take. Only an actor of one stage has a limit (`group_stages`)."""
        return self.stages[0].time_limit

    @property
    def takes_several(self) -> bool:
        """Whether calls of several requests overlap in the actor."""
        return self.is_pure and (len(self.stages) > 1 or self.stages[0].takes_several)


def read_stages(stages: Iterable[Any]) -> list[StageSpec]:
    """The stages that a user gave, with artifacts in the object store.

    Raises
    ------
    UserError
        For no stages, codes of another kind, and options that are not those of a stage of an actor.
    """
    if isinstance(stages, (str, bytes)):
        raise UserError(f"stages: expected a list of stages, got one str; write [{stages!r}]")
    specs: list[StageSpec] = []
    for code in stages:
        stage = code if isinstance(code, pipeline.Stage) else pipeline.Stage(code)
        specs.append(_read_stage(stage, {spec.name for spec in specs}))
    if not specs:
        raise UserError("a pipeline needs at least one stage")
    return specs


def _read_stage(stage: pipeline.Stage, taken: set[str]) -> StageSpec:
    options = dict(stage.options)
    wrong = [name for name in ("group", "device") if name in options]
    if wrong:
        raise UserError(f"{', '.join(wrong)}: not an option of a stage of an actor; nodes= says where stages run")
    code = _portable(stage.code)
    base = str(options.pop("name", None) or _name_of(code, stage.code))
    name = base if base and base not in taken else _free_name(base or "stage", taken)
    limit = options.get("time_limit")
    in_thread = options.get("isolation", "thread") == "thread"
    if in_thread:  # the pipeline of actors ends an actor that takes too long, as no thread could
        options.pop("time_limit", None)
    pure = options.pop("pure", None) if in_thread else options.get("pure")
    is_program = isinstance(code, (ArtifactRef, Mapping))
    spec = StageSpec(
        name=name,
        code=code,
        options=options,
        is_pure=is_program if pure is None else bool(pure),
        time_limit=None if limit is None or not in_thread else _arguments.seconds(limit, "time_limit"),
    )
    if spec.takes_several and not spec.is_pure:
        raise UserError(
            f"stage '{name}' has batches or replicas and is not pure, so it would get one request at a time; say "
            "pure=True if a request may run again, or leave max_batch, rows and replicas out"
        )
    return spec


def _name_of(code: Any, given: Any) -> str:
    first = code[min(code)] if isinstance(code, Mapping) else code
    return first.name.removesuffix(".so") if isinstance(first, ArtifactRef) else _stage_code.name_of(given)


def _free_name(base: str, taken: set[str]) -> str:
    return next(f"{base}{number}" for number in range(len(taken) + 1) if f"{base}{number}" not in taken)


def _portable(code: Any) -> Any:
    """A stage's code as any node can use it."""
    if isinstance(code, Mapping):
        return {batch: _portable(one) for batch, one in code.items()}
    if _processes.is_import_name(code) or isinstance(code, ArtifactRef):
        return code
    if isinstance(code, (str, PathLike, compiler.CompiledModel)):
        return artifact_ref(code)
    if callable(code):
        return code
    raise UserError(
        f"a stage is an artifact's path, a CompiledModel, an ArtifactRef or a function, not {_arguments.kind(code)}"
    )


def group_stages(stages: Sequence[StageSpec], places: Mapping[str, Place]) -> list[ActorSpec]:
    """One actor for neighbouring stages that have the same place, and one for each stage without a place.

    A stage with a time limit has an actor of its own, because the actor ends when a call takes too long.
    """
    specs: list[ActorSpec] = []
    for stage in stages:
        place = places.get(stage.name, Place())
        has_limit = any(one.time_limit is not None for one in [stage, *(specs[-1].stages if specs else [])])
        if specs and place != Place() and specs[-1].place == place and not has_limit:
            specs[-1].stages.append(stage)
        else:
            specs.append(ActorSpec([stage], place))
    return specs


_OWN_OPTIONS = ("max_concurrency", "max_restarts", "max_task_retries", "name", "lifetime", "get_if_exists")


def read_options(options: Mapping[str, Any] | None) -> dict[str, Any]:
    """The options of all actors that a user gave.

    Raises
    ------
    UserError
        For options that the pipeline sets, and those that Ray's actors do not have.
    """
    given = _arguments.mapping(options, "options", 'options={"num_cpus": 2}')
    own = [name for name in given if name in _OWN_OPTIONS]
    if own:
        raise UserError(f"options: the pipeline sets {' and '.join(own)} of its actors itself; leave that out")
    for name, example in (("resources", '{"camera": 1}'), ("label_selector", '{"pool": "front"}')):
        if name in given:
            given[name] = _arguments.mapping(given[name], f"options: {name}", f"{name}={example}")
    try:
        ray_package().remote(StageActor).options(**given)
    except Exception as error:  # Ray raises ValueError or TypeError, and others for parts of an option
        raise UserError(f"options: Ray's actors do not take them: {error}") from None
    return given


def create_actor(spec: ActorSpec, options: Mapping[str, Any], concurrency: int) -> Any:
    """Asks Ray for an actor; returns its handle at once. The pipeline, not Ray, starts a new one when it dies."""
    ray = ray_package()
    if not is_connected():
        raise PipelineError(RAY_IS_GONE)
    chosen = {"num_cpus": 1, **options, "max_restarts": 0, "max_task_retries": 0}
    for name, own in spec.place.options().items():
        chosen[name] = {**chosen.get(name, {}), **own}
    return ray.remote(StageActor).options(**chosen, max_concurrency=concurrency).remote(spec)


def kill_actor(actor: Any) -> None:
    """Ends an actor, whatever it does; nothing happens to one that is gone."""
    if actor is not None and is_connected():
        with contextlib.suppress(Exception):
            ray_package().kill(actor)


class StageActor:
    """Runs in a process of Ray: a chain of stages, one call for each request."""

    def __init__(self, spec: ActorSpec) -> None:
        self._pipe: pipeline.Pipeline | None = None
        self._error: bytes | None = None
        self._spec = spec
        try:
            stages = [pipeline.Stage(_local(stage), name=stage.name, **stage.options) for stage in spec.stages]
            self._pipe = pipeline.chain(stages, failures_in_row=0)
        except Exception as error:  # `ready` gives it; Ray would only give the text of a constructor's error
            self._error = _processes.pack_error(error)

    def ready(self) -> dict[str, Any]:
        """The process, its node and the ports of the stages; "error" has what the stages raised at their start."""
        node = ray_package().get_runtime_context().get_node_id()
        about = {"pid": os.getpid(), "node": node, "error": self._error}
        if self._pipe is not None:
            about["inputs"], about["outputs"] = list(self._pipe._native.inputs), list(self._pipe._native.outputs)
        return about

    def run(self, values: tuple[Any, ...]) -> tuple[dict[str, Any], tuple[Any, ...] | None]:
        """The status of a request, and its outputs if it succeeded. Errors are values here, as actors outlive them."""
        begin = monotonic()
        try:
            named = dict(zip(self._pipe.inputs, values, strict=True))  # a value that is a dict is passed as it is
            made = tuple(_portable_output(value) for value in self._pipe.submit(named, copy=False).outputs())
            return {"seconds": monotonic() - begin}, made
        except Exception as error:
            return {"seconds": monotonic() - begin, "failure": self._failure(error)}, None

    def step(self, envelope: tuple[Any, ...]) -> tuple[Any, ...]:
        """As `run`, in a compiled graph: passes the request's number, its epoch and the first failure along.

        Its inputs lie in the memory of a channel, which the next request overwrites, so stages get copies.
        """
        mark, statuses, values = envelope
        if values is None:
            return envelope
        try:
            taken = unpack_values(values)
        except Exception as error:
            status = {"seconds": 0.0, "failure": unreadable(self._spec.stages[0].name, error)}
            return mark, [*statuses, status], None
        status, made = self.run(taken)
        try:
            made = None if made is None else pack_values(made)
        except Exception as error:
            status["failure"], made = unreadable(self._spec.stages[-1].name, error), None
        return mark, [*statuses, status], made

    def _failure(self, error: Exception) -> tuple[str, str, str, str, bytes | None]:
        if not isinstance(error, PipelineError):
            return "StageFailed", str(error), self._spec.stages[0].name, "", _processes.pack_error(error)
        cause = None if error.cause is None else _processes.pack_error(error.cause)
        return type(error).__name__, str(error), error.stage, error.backend, cause


def _local(stage: StageSpec) -> Any:
    """The code of a stage for this process's chain: a loaded program, programs by their batch, or a function."""

    def open_program(artifact: ArtifactRef) -> compiler.CompiledModel:
        threads = stage.options.get("threads", 1)
        return compiler.load(artifact.local_path(), program=artifact.program, threads=threads)

    if isinstance(stage.code, Mapping):
        return {batch: open_program(one) for batch, one in stage.code.items()}
    if isinstance(stage.code, ArtifactRef):
        return open_program(stage.code)
    in_process = stage.options.get("isolation") == "process"
    return _host._function_of(stage.code) if isinstance(stage.code, str) and not in_process else stage.code


@dataclass
class _Packed:
    """A pickled value, for channels of compiled graphs: what they cannot pickle themselves would end the graph."""

    data: bytes


def unreadable(stage: str, error: Exception) -> tuple[str, str, str, str, bytes | None]:
    """The failure of a request whose values cannot pass to a stage, or from it."""
    text = f"stage '{stage}' failed: a value cannot pass between processes: {type(error).__name__}: {error}"
    return "StageFailed", text, stage, "", _processes.pack_error(error)


def pack_values(values: Iterable[Any]) -> tuple[Any, ...]:
    """The values as a channel can take them. Raises what pickling raises."""
    dumps = ray_package().cloudpickle.dumps
    return tuple(value if _is_plain(value) else _Packed(dumps(value)) for value in values)


def unpack_values(values: Iterable[Any]) -> tuple[Any, ...]:
    """Copies of the values that `pack_values` packed. Raises what their classes raise."""
    return tuple(pickle.loads(one.data) if isinstance(one, _Packed) else copy.deepcopy(one) for one in values)


def _is_plain(value: Any) -> bool:
    if type(value) is np.ndarray:
        return not value.dtype.hasobject
    return value is None or type(value) in (bool, int, float, complex, str, bytes)


def _portable_output(value: Any) -> Any:
    return np.from_dlpack(value) if isinstance(value, NDArray) else value
