"""Graphs of stages, before they run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from inspect import Signature, signature
from itertools import pairwise
from os import PathLike
from typing import Any

from headrace import _arguments, _core, _ffi, _public, compiler
from headrace._core import UserError
from headrace._keywords import suggests_keywords
from headrace.pipeline import _devices, _processes
from headrace.pipeline._errors import PipelineError
from headrace.pipeline._paths import loaded_path
from headrace.pipeline._running import Pipeline
from headrace.pipeline._stage_code import (
    ArtifactFiles,
    BatchOptions,
    ModuleOptions,
    SavedCode,
    backend_of,
    batch_options,
    check_once,
    codes_of,
    compiled_code,
    name_of,
    process_codes,
    saved_code,
)

__all__ = ["Graph", "PortError", "Stage", "StageHandle", "chain", "load"]

_PortType = tuple[str, str | None, list[int]]  # name, dtype (None: any value), shape


def _type_text(port: _PortType) -> str:
    return "any value" if port[1] is None else f"{port[1]} ({', '.join(map(str, port[2]))})"


class PortError(PipelineError):
    """A port that does not exist, or a connection that does not fit."""


@dataclass(frozen=True)
class _End:
    """One end of a connection: an input or output of a stage, of the pipeline, or a parameter."""

    graph: Graph
    kind: str  # "input", "output", "param": of the pipeline; "stage input", "stage output"
    owner: int  # the stage, or -1
    index: int

    @property
    def port(self) -> _PortType | None:
        """Name, dtype and shape; None for an input or output of the pipeline that is not connected yet."""
        graph = self.graph
        if self.kind == "stage input":
            return graph._stages[self.owner].inputs[self.index]
        if self.kind == "stage output":
            return graph._stages[self.owner].outputs[self.index]
        if self.kind == "param":
            return graph._params[self.index].type
        return graph._inputs[self.index].type if self.kind == "input" else None

    def __str__(self) -> str:
        graph = self.graph
        if self.owner >= 0:
            stage = graph._stages[self.owner]
            ports = stage.inputs if self.kind == "stage input" else stage.outputs
            return f"{self.kind[6:]} '{ports[self.index][0]}' of stage '{stage.name}'"
        if self.kind == "param":
            param = graph._params[self.index]
            return f"parameter '{param.name}' of group '{param.group}'"
        names = [port.name for port in (graph._inputs if self.kind == "input" else graph._outputs)]
        return f"{self.kind} '{names[self.index]}' of the pipeline"

    def connect(self, to: _End) -> _End:
        """Connects this source to an input of a stage, or a stage's output to an output of the pipeline.

        A source may be connected to several ends. Returns the other end. Raises PortError, and changes nothing, for two
        ends that cannot be connected, an end that has a source, and types that differ.
        """
        self.graph._connect(self, to)
        return to


@dataclass
class _PipelinePort:
    name: str
    type: _PortType | None = None


@dataclass
class _Param:
    group: str
    name: str
    type: _PortType | None = None
    value: _core.NDArray | None = None  # the first one


@dataclass
class _StageEntry:
    name: str
    backend: str
    codes: list[Any]
    saved: SavedCode
    threads: int
    inputs: list[_PortType]
    outputs: list[_PortType]
    group: tuple[int, str]  # the stage alone, or -1 and the name; -2 and the device for all stages on it
    device: str  # the text of a simulated one; "" for the CPU
    cpus: list[int]
    time_limit: float
    batch: BatchOptions | None
    isolation: str  # "thread" or "process"
    pure: bool
    sources: dict[int, _End] = field(default_factory=dict)


class StageHandle:
    """A stage of a graph: its ports are `input(name)` and `output(name)`, by name or number."""

    def __init__(self, graph: Graph, index: int) -> None:
        self._graph, self._index = graph, index

    @property
    def name(self) -> str:
        """The name of the stage."""
        return self._entry.name

    @property
    def _entry(self) -> _StageEntry:
        return self._graph._stages[self._index]

    def input(self, name: str | int) -> _End:
        """An input of the stage."""
        return _End(self._graph, "stage input", self._index, self._find(name, self._entry.inputs, "input"))

    def output(self, name: str | int = 0) -> _End:
        """An output of the stage."""
        return _End(self._graph, "stage output", self._index, self._find(name, self._entry.outputs, "output"))

    def _find(self, name: str | int, ports: list[_PortType], what: str) -> int:
        names = [port[0] for port in ports]
        if isinstance(name, str) and name in names:
            return names.index(name)
        if isinstance(name, int) and not isinstance(name, bool) and 0 <= name < len(names):
            return name
        raise PortError(f"stage '{self.name}' has no {what} {name!r}; it has {', '.join(names) or 'none'}")

    def __repr__(self) -> str:
        return f"StageHandle('{self.name}')"


@dataclass
class Stage:
    """A stage for `chain`: its code and the options of `Graph.stage`."""

    code: Any
    options: dict[str, Any]

    def __init__(self, code: Any, **options: Any) -> None:
        _options_check("Stage", Graph.stage)(**options)
        self.code, self.options = code, options


class Graph:
    """Stages and their connections; `build` makes a running pipeline of them.

    A connection goes from `graph.input(name)`, `stage.output(name)` or `graph.param(group, name)` to
    `stage.input(name)` or `graph.output(name)`: `graph.input("image").connect(detect.input("x"))`.
    """

    def __init__(self) -> None:
        self._stages: list[_StageEntry] = []
        self._inputs: list[_PipelinePort] = []
        self._outputs: list[_PipelinePort] = []
        self._output_sources: dict[int, _End] = {}
        self._params: list[_Param] = []
        self._files = ArtifactFiles()

    @suggests_keywords
    def stage(
        self,
        code: Any,
        name: str | None = None,
        *,
        inputs: Sequence[str] | None = None,
        outputs: int | Sequence[str] = 1,
        group: str | None = None,
        device: Any = None,
        cpus: Iterable[int] = (),
        threads: int = 1,
        replicas: int = 1,
        time_limit: float | None = None,
        backend: str = "",
        max_batch: int | None = None,
        max_delay: float = 0.0,
        retry_alone: bool = False,
        rows: str | None = None,
        isolation: str = "thread",
        pure: bool = False,
        target: Any = None,
        backends: Iterable[str] = (),
        params: Mapping[str, Any] | None = None,
        build: Callable[..., Any] | None = None,
        fallback: str = "native",
    ) -> StageHandle:
        """Adds a stage.

        Parameters
        ----------
        code : CompiledModel, path, Module, IRModule, or function
            A program of Headrace's: a compiled model, an artifact's path, or what `relay.build` returns. Stages that
            name one file open it once, and so do replicas. A Relay module is compiled here. What `Executor.evaluate` of
            `relay.create_executor` returns runs in this process only, so a pipeline that has it is not saved; its
            inputs are the parameters of the program. A function of Python gets arrays of numpy (for reading only) and
            other objects as they are, and returns its output, or a tuple of its outputs: arrays or any objects. A dict
            of programs by their batch, `{1: "m1.so", 8: "m8.so"}`,
            makes a stage that takes batches.
        name : str, optional
            For messages and metrics; without it the function's or file's, or "stage0".
        inputs : list of str, optional
            The inputs of a function; without it, its parameters.
        outputs : int or list of str
            The outputs of a function, or their number.
        group : str, optional
            Stages of a group share one thread. Without it the stage has a thread of its own.
        device : Device, SimulatedDevice or str, optional
            Where the program runs: the CPU, or a `SimulatedDevice`, also as its text:
            "sim:0(speed=0.5, memory=64MiB, link=2GB/s, latency=20us)". Its stages take turns in one thread, unless
            groups are given. Functions, whose values are any objects, run on the CPU.
        cpus : list of int
            The processors that the group's thread, and the threads of its programs that are loaded here, run on.
        threads : int
            The threads of a program that is loaded here; a compiled model keeps its own.
        replicas : int
            How many requests it may work on at once, each in a thread of its own; results stay in order.
        time_limit : float, optional
            The seconds after which a call has failed with StageTimeout.
        backend : str
            What computes the stage, for messages; without it the backends that the program in a file was placed on.
        max_batch : int, optional
            The stage is called once for up to so many requests that have arrived; for programs at most their largest
            batch, which a dict of programs has as its default. A program has its batch as the first dimension of its
            outputs and of the inputs that requests give; for a request that dimension is 1. The rows of a batch that
            no request fills are zero. A function gets a list of the requests' values for each input (a parameter's
            value as it is) and returns a list with one value for each request, or an array with a row for each; with
            several outputs, a tuple of such lists.
        max_delay : float
            The seconds that the first request of a batch waits for others; 0 takes those that are there.
        retry_alone : bool
            When a call for several requests fails, each of them is tried once more alone, so that only those that are
            bad fail; else all of them fail.
        rows : "any", optional
            A request has any number of rows, the first dimension of its arrays, and gets as many back. Its rows share
            calls with those of others, up to max_batch rows. A function gets the rows of a call as one array (or one
            list, for requests whose values are lists) and returns as many.
        isolation : "thread" or "process"
            With "process" the code runs in a process of its own, one for each replica, which is started again when it
            crashes, or when a call takes longer than `time_limit`. The request of that call fails with StageLost or
            StageTimeout, and no other does. A program is an artifact's path, a model compiled to a file, or a Module. A
            function is one that the process can import: a function at the top of a module, or its name as
            "module:function". Arrays are copied on their way, and other objects are pickled.
        pure : bool
            With isolation="process": a request may be run again, so that a crash does not lose it, unless it crashes
            three times.
        target, backends
            For a Relay module, what `headrace.compile` compiles it for.
        params : dict of str to tensor, optional
            Parameters of a Relay module that become constants.
        build : function, optional
            Compiles a Relay module instead, and is called as `relay.build` is: build(mod, target, params=params,
            target_host=None, mod_name=name). It returns code as a stage takes it.
        fallback : str
            What happens to a region of the program whose backend is missing, or fails: "native" runs its native form,
            and `Pipeline.fallbacks` says so; "none" raises the error.
        """
        chosen = self._free_name(_arguments.text(name, "name") if name is not None else name_of(code))
        with _stage_named(chosen):
            given = _program_options(cpus, threads, replicas, fallback)
            _core.check_named_once(given["cpus"], f"stage '{chosen}'")
            _arguments.text(backend, "backend")
            on = _devices.text_of(device)
            _check_isolation(isolation, pure)
            limit = 0.0 if time_limit is None else _arguments.seconds(time_limit, "time_limit")
            batch = batch_options(code, max_batch, max_delay, retry_alone, rows)
            options = ModuleOptions(target, _arguments.names(backends, "backends"), params, build)
            code = compiled_code(code, chosen, options, threads)
            inputs = None if inputs is None else _arguments.names(inputs, "inputs")
            outputs = outputs if isinstance(outputs, int) else _arguments.names(outputs, "outputs")
            check_once(chosen, "input", inputs or ())
            check_once(chosen, "output", () if isinstance(outputs, int) else outputs)
            if isolation == "process":
                run = {"is_pure": bool(pure), "time_limit": limit}
                codes = process_codes(code, inputs, outputs, given, batch, run)
            else:
                codes = codes_of(code, inputs, outputs, given, batch, self._files)
            its_group = _group_of(len(self._stages), chosen, group, on)
        entry = _StageEntry(
            name=chosen,
            backend=backend or backend_of(code, self._files if isolation == "thread" else ArtifactFiles()),
            codes=codes,
            saved=saved_code(code, chosen, isolation == "process", [stage.saved for stage in self._stages]),
            threads=code.threads if isinstance(code, compiler.CompiledModel) else threads,
            inputs=codes[0].inputs,
            outputs=codes[0].outputs,
            group=its_group,
            device=on,
            cpus=given["cpus"],
            time_limit=limit,
            batch=batch,
            isolation=isolation,
            pure=bool(pure),
        )
        self._stages.append(entry)
        return StageHandle(self, len(self._stages) - 1)

    def _copy(self) -> Graph:
        """The graph as it is now, to be saved later; its ends are those of this one."""
        made = Graph()
        made._stages = [replace(entry, sources=dict(entry.sources)) for entry in self._stages]
        made._inputs = [replace(port) for port in self._inputs]
        made._outputs = [replace(port) for port in self._outputs]
        made._params = [replace(param) for param in self._params]
        made._output_sources = dict(self._output_sources)
        return made

    def _free_name(self, name: str) -> str:
        taken = {entry.name for entry in self._stages}
        if name and name not in taken:
            return name
        base = name or "stage"
        return next(f"{base}{i}" for i in range(len(self._stages) + 1) if f"{base}{i}" not in taken)

    def input(self, name: str) -> _End:
        """An input of the pipeline. Its type is that of what it is connected to."""
        return _End(self, "input", -1, self._port_of(self._inputs, name))

    def output(self, name: str) -> _End:
        """An output of the pipeline; results come in the order in which outputs are first named."""
        return _End(self, "output", -1, self._port_of(self._outputs, name))

    def param(self, group: str, name: str, value: Any = None) -> _End:
        """A parameter, which keeps its value from request to request; `Pipeline.set_params` changes a group at once.

        With `value`, a tensor that is copied, the parameter has that value from the start.
        """
        keys = [(known.group, known.name) for known in self._params]
        if (group, name) not in keys:
            keys.append((_arguments.text(group, "group"), _arguments.text(name, "name")))
            self._params.append(_Param(group, name))
        index = keys.index((group, name))
        if value is not None:
            copied = _arguments.copied(value, f"parameter '{name}'")
            if str(copied.dtype).startswith("complex"):
                raise UserError(f"parameter '{name}' is {copied.dtype}, which no program takes")
            self._params[index].value = copied
        return _End(self, "param", -1, index)

    @staticmethod
    def _port_of(ports: list[_PipelinePort], name: str) -> int:
        names = [port.name for port in ports]
        if _arguments.text(name, "name") not in names:
            ports.append(_PipelinePort(name))
        return [port.name for port in ports].index(name)

    def _connect(self, source: _End, to: _End) -> None:
        if not isinstance(to, _End) or to.graph is not self or source.graph is not self:
            raise PortError(f"{source} is connected to {to}, which is not a port of this graph")
        if source.kind in ("stage input", "output"):
            raise PortError(f"{source} takes values: connect a source to it, not it to {to}")
        if to.kind not in ("stage input", "output"):
            raise PortError(f"{source} is connected to {to}, which gives values and takes none")
        if to.kind == "output" and source.kind != "stage output":
            raise PortError(f"{source} is connected to {to}; only a stage's output leaves the pipeline")
        known = (
            self._output_sources.get(to.index) if to.kind == "output" else self._stages[to.owner].sources.get(to.index)
        )
        if known is not None:
            raise PortError(f"{to} has a source: {known}; it takes one, so connect {source} to another port")
        if to.kind == "output":
            self._output_sources[to.index] = source
            return
        here, there = source.port, to.port
        assert there is not None
        if here is not None and None not in (here[1], there[1]) and here[1:] != there[1:]:
            types = f"{source} is {_type_text(here)}, and {to} is {_type_text(there)}"
            raise PortError(f"{types}: they must have the same type; put a stage between them that converts the values")
        if source.owner < 0 and (here is None or here[1] is None):
            port = self._inputs[source.index] if source.kind == "input" else self._params[source.index]
            port.type = (port.name, there[1], there[2])
        self._stages[to.owner].sources[to.index] = source

    @suggests_keywords
    def build(
        self,
        *,
        max_inflight: int = 16,
        when_full: str = "wait",
        failures_in_row: int = 8,
        probe_seconds: float = 1.0,
        stop_seconds: float = 5.0,
        max_unread: int = 0,
        warm_up: bool = False,
        start: bool = True,
    ) -> Pipeline:
        """Makes a running pipeline.

        Parameters
        ----------
        max_inflight : int
            How many requests may be in the pipeline, those that wait included.
        when_full : "wait", "reject" or "drop_oldest"
            What `submit` does then: it waits, raises PipelineFull, or ends the oldest request that has not started, and
            raises PipelineFull where all have. A request that was pushed and is ended so has no outcome in `next`.
        failures_in_row : int
            After so many failures of a stage in a row, `submit` raises PipelineBroken at once; 0: never.
        probe_seconds : float
            How long after that one request is let through to see whether the stage works again.
        stop_seconds : float
            How long the end of the pipeline waits for calls that run.
        max_unread : int
            How many tickets may hold results that were not read, besides the requests in the pipeline; `submit` treats
            more as a full pipeline. 0: any number, whose memory is yours. A ticket that is dropped holds none.
        warm_up : bool
            Each program is called once on zeros, in the thread of its stage, before the pipeline takes requests, so
            that the first requests are as fast as later ones, and a backend that fails does so now. Functions are not
            called.
        start : bool
            False: the pipeline is built, with all of its memory, and `Pipeline.start` starts it.

        Raises
        ------
        PipelineError
            For an input without a source, and what else makes no pipeline; the message names the port.
        UserError
            For stages that wait for each other in a circle, and an input that nothing reads.
        """
        plan = self._plan(max_inflight, _no_models)
        native = _core.make_pipeline(
            plan=plan,
            codes=[entry.codes for entry in self._stages],
            options=run_options(
                when_full, failures_in_row, probe_seconds, stop_seconds, max_unread, warm_up=warm_up, start=start
            ),
        )
        built = self._copy()
        pipeline = Pipeline(native, lambda path: built.save(path, max_inflight=max_inflight))
        for group in dict.fromkeys(param.group for param in self._params):
            values = {p.name: p.value for p in self._params if p.group == group and p.value is not None}
            if values:
                pipeline.set_params(group, values)
        return pipeline

    def save(self, path: str | PathLike[str], *, max_inflight: int = 16) -> None:
        """Writes the pipeline to one file, which `headrace.pipeline.load` opens; it needs no other file.

        The file holds the artifacts of all programs, and the names of functions: a function's own name, or the stage's
        where it has none or another function of the pipeline has the same.

        Parameters
        ----------
        path : path
            The file, such as "reader.so", which appears complete or not at all.
        max_inflight : int
            As for `build`; `load` may choose another number.

        Raises
        ------
        PipelineError
            As for `build`.
        UserError
            For a model that was compiled in memory only, or has its weights in another file, a file that cannot be
            written, and a name that does not end in .so.
        """
        models: list[tuple[str, bytes]] = []
        functions: dict[str, Any] = {}
        for saved in (entry.saved for entry in self._stages if entry.saved.function):
            if functions.setdefault(saved.function, saved.code) != saved.code:
                raise UserError(
                    f"two stages call different functions of the name '{saved.function}', and a file has the names of "
                    "functions only; give one of the stages another name"
                )

        def model_of(saved: SavedCode, stage: str) -> int:
            if saved.function:
                return -1
            if saved.model is None and saved.code is not None:
                raise UserError(
                    f"stage '{stage}' runs a program that an executor of relay.create_executor evaluates, which no "
                    "file holds; for a pipeline that is saved, give the stage the module, which is compiled then"
                )
            if saved.model is None:
                raise UserError(
                    f"stage '{stage}' runs a model that was compiled in memory, which has no file to save; "
                    "compile it with output='model.so', or give the stage what relay.build returns"
                )
            models.append((stage, saved.model()))
            return len(models) - 1

        plan = self._plan(max_inflight, model_of)
        values = [param.value for param in self._params]
        _core.save_pipeline(plan=plan, models=models, first_values=values, path=_arguments.path(path, "path"))

    def _plan(self, max_inflight: int, model_of: Callable[[SavedCode, str], int]) -> Any:
        """The plan of the pipeline; `model_of` gives the number of a model of a stage, -1 for a function."""
        if _arguments.integer(max_inflight, "max_inflight") < 1:
            raise UserError(f"max_inflight is {max_inflight}; at least one request is in a pipeline")
        if max_inflight > _core.MOST_IN_FLIGHT:
            raise UserError(f"max_inflight is {max_inflight}; it lies from 1 to {_core.MOST_IN_FLIGHT}")
        groups = list(dict.fromkeys(entry.group for entry in self._stages))
        cpus: dict[tuple[int, str], list[int]] = {}
        devices: dict[tuple[int, str], str] = {}
        for entry in self._stages:
            cpus[entry.group] = sorted({*cpus.get(entry.group, ()), *entry.cpus})
            if devices.setdefault(entry.group, entry.device) != entry.device:
                raise UserError(f"group '{entry.group[1]}' has stages on two devices; give each device its own group")
        stages = [
            _core.PipelineStage(
                name=entry.name,
                backend=entry.backend,
                model=model_of(entry.saved, entry.name),
                program=entry.saved.program,
                function=entry.saved.function,
                inputs=entry.inputs,
                outputs=entry.outputs,
                sources=self._sources_of(entry),
                group=groups.index(entry.group),
                replicas=len(entry.codes),
                threads=entry.threads,
                time_limit=entry.time_limit,
                batch=None if entry.batch is None else entry.batch.native(self._others_of(entry, model_of)),
                isolation=entry.isolation,
                is_pure=entry.pure,
            )
            for entry in self._stages
        ]
        for index, port in enumerate(self._outputs):
            if index not in self._output_sources:
                raise PortError(f"output '{port.name}' of the pipeline has no source; connect a stage's output to it")
        self._check_read()
        return _core.PipelinePlan(
            inputs=[self._type_of(port) for port in self._inputs],
            stages=stages,
            outputs=[(port.name, self._spec_of(self._output_sources[i])) for i, port in enumerate(self._outputs)],
            params=[(param.group, self._type_of(param)) for param in self._params],
            groups=[(group[1].partition("(")[0] if group[0] == -2 else group[1], cpus[group]) for group in groups],
            devices=[devices[group] for group in groups],
            max_inflight=max_inflight,
        )

    def _check_read(self) -> None:
        """Refuses a stage that has outputs and computes them for nothing."""
        ends = [*self._output_sources.values(), *(end for stage in self._stages for end in stage.sources.values())]
        read = {end.owner for end in ends}
        for number, stage in enumerate(self._stages):
            if stage.outputs and number not in read and self._outputs:
                raise PortError(
                    f"output '{stage.outputs[0][0]}' of stage '{stage.name}' is not connected; connect it to a stage "
                    "or to an output of the pipeline; a function that gives nothing has outputs=0"
                )

    @staticmethod
    def _others_of(entry: _StageEntry, model_of: Callable[[SavedCode, str], int]) -> list[tuple[int, str]]:
        """The models and programs of a stage for other batches, where they are saved."""
        found = [(model_of(saved, entry.name), saved.program) for saved in entry.saved.others]
        return [(model, program) for model, program in found if model >= 0]

    @staticmethod
    def _type_of(port: _PipelinePort | _Param) -> _PortType:
        return port.type if port.type is not None else (port.name, None, [])

    def _sources_of(self, entry: _StageEntry) -> list[tuple[str, int, int]]:
        for index, port in enumerate(entry.inputs):
            if index not in entry.sources:
                raise PortError(f"input '{port[0]}' of stage '{entry.name}' has no source; connect one to it")
        return [self._spec_of(entry.sources[index]) for index in range(len(entry.inputs))]

    @staticmethod
    def _spec_of(source: _End) -> tuple[str, int, int]:
        return ("stage", source.owner, source.index) if source.owner >= 0 else (source.kind, source.index, 0)


def chain(stages: Iterable[Any], **options: Any) -> Pipeline:
    """Makes a running pipeline of stages, one after another.

    Parameters
    ----------
    stages : list
        Codes, as `Graph.stage` takes them, or `Stage(code, name=..., cpus=...)`. The outputs of each are the inputs of
        the next, in order. The inputs of the first are the pipeline's; so are the outputs of the last.
    **options
        Those of `Graph.build`.

    Returns
    -------
    Pipeline
    """
    for name in options:
        if name in signature(Graph.stage).parameters:
            raise TypeError(
                f"chain() takes no {name}, an option of each stage; write Stage(code, {name}=...) in the list"
            )
    _options_check("chain", Graph.build)(**options)
    graph = Graph()
    handles = []
    if isinstance(stages, (str, bytes)):
        raise UserError(f"stages: expected a list of stages, got one str; write [{stages!r}]")
    for code in stages:
        stage = code if isinstance(code, Stage) else Stage(code)
        handles.append(graph.stage(stage.code, **stage.options))
    if not handles:
        raise PortError("a chain needs at least one stage")
    for number, port in enumerate(handles[0]._entry.inputs):
        graph.input(port[0]).connect(handles[0].input(number))
    for before, after in pairwise(handles):
        made, taken = len(before._entry.outputs), len(after._entry.inputs)
        if made != taken:
            raise PortError(
                f"stage '{before.name}' has {made} outputs, and stage '{after.name}' takes {taken} inputs; a function "
                f"that returns {taken} values has Stage(..., outputs={taken}), and Graph joins stages in another way"
            )
        for number in range(made):
            before.output(number).connect(after.input(number))
    for number, port in enumerate(handles[-1]._entry.outputs):
        handles[-1].output(number).connect(graph.output(port[0]))
    return graph.build(**options)


@suggests_keywords
def load(
    path: str | PathLike[str],
    *,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    pinned: bool = True,
    fallback: str = "native",
    max_inflight: int | None = None,
    when_full: str = "wait",
    failures_in_row: int = 8,
    probe_seconds: float = 1.0,
    stop_seconds: float = 5.0,
    max_unread: int = 0,
    warm_up: bool = False,
    start: bool = True,
) -> Pipeline:
    """Starts the pipeline of a file that `Graph.save`, `Pipeline.save` or `headrace pipeline split` wrote.

    Parameters
    ----------
    path : path
        The file.
    functions : dict of str to function, optional
        The functions that stages of the file call, by name. Those that are not given are looked for among the
        functions that `register_func` registered; both get the arguments that `Graph.stage` describes. A function
        that C++ registered gets NDArrays. Those of stages in processes of their own are imported there, and not given.
    pinned : bool
        False: threads run on any processors, not on those that the file names.
    fallback : str
        What happens to a region of a stage's program whose backend is missing, or fails: "native" runs its native form,
        with a warning, and `Pipeline.fallbacks` says so; "none" raises the error, with the stage and the file.
    max_inflight : int, optional
        As for `Graph.build`; None takes what the file says.
    when_full, failures_in_row, probe_seconds, stop_seconds, max_unread, warm_up, start
        As for `Graph.build`.

    Returns
    -------
    Pipeline

    Raises
    ------
    UserError
        For a file that is damaged, a model or without a pipeline, functions that the file does not call, and processors
        that are not there.
    MissingError
        For a function that is not given, and with fallback="none" for a backend that is missing; the message names it
        and its stage.
    """
    given = _arguments.mapping(functions, "functions", 'functions={"prepare": prepare}')
    for name, function in given.items():
        if not callable(function):
            raise UserError(f"functions['{name}']: expected a function, got {_arguments.kind(function)}")
    if max_inflight is not None and _arguments.integer(max_inflight, "max_inflight") < 1:
        raise UserError(f"max_inflight is {max_inflight}; at least one request is in a pipeline")
    native = _core.open_pipeline(
        path=loaded_path(path),
        functions=given,
        registered=_ffi.registered,
        function_command=_processes.function_command,
        max_inflight=max_inflight,
        is_pinned=bool(pinned),
        falls_back=_arguments.falls_back(fallback),
        options=run_options(
            when_full, failures_in_row, probe_seconds, stop_seconds, max_unread, warm_up=warm_up, start=start
        ),
    )
    return Pipeline(native, None)


def run_options(
    when_full: str,
    failures_in_row: int,
    probe_seconds: float,
    stop_seconds: float,
    max_unread: int,
    *,
    warm_up: bool,
    start: bool,
) -> Any:
    """The options of a running pipeline, checked, as the runtime takes them."""
    if when_full not in ("wait", "reject", "drop_oldest"):
        raise UserError(f"when_full is {when_full!r}; it is 'wait', 'reject' or 'drop_oldest'")
    if _arguments.integer(failures_in_row, "failures_in_row") < 0:
        raise UserError(f"failures_in_row is {failures_in_row}; 0 never refuses, and 1 is the least that does")
    if _arguments.integer(max_unread, "max_unread") < 0:
        raise UserError(f"max_unread is {max_unread}; 0 allows any number, and 1 is the least limit")
    return _core.make_pipeline_options(
        when_full=when_full,
        failures_in_row=int(failures_in_row),
        probe_seconds=_arguments.seconds(probe_seconds, "probe_seconds"),
        stop_seconds=_arguments.seconds(stop_seconds, "stop_seconds"),
        max_unread=int(max_unread),
        warms_up=bool(warm_up),
        starts=bool(start),
    )


@cache
def _options_check(caller: str, function: Callable[..., Any]) -> Callable[..., None]:
    """Returns a function that takes the options of another, and raises the TypeError of `caller` for other keywords."""

    def check(**options: Any) -> None:
        del options

    known = signature(function).parameters.items()
    check.__name__ = caller
    check.__dict__["__signature__"] = Signature(
        [one.replace(kind=one.KEYWORD_ONLY) for name, one in known if name not in ("self", "code")]
    )
    return suggests_keywords(check)


@contextmanager
def _stage_named(stage: str) -> Iterator[None]:
    """Names the stage in an error of its code."""
    try:
        yield
    except UserError as error:
        if type(error) not in (UserError, _core.MissingError) or f"stage '{stage}'" in str(error):
            raise
        raise type(error)(f"stage '{stage}': {error}") from error


def _program_options(cpus: Iterable[int], threads: int, replicas: int, fallback: str) -> dict[str, Any]:
    """The options of a stage by which its program is opened, checked."""
    if isinstance(cpus, str) or not isinstance(cpus, Iterable):
        raise UserError(f"cpus: expected a list of processors' numbers, as in cpus=[0, 1], got {cpus!r:.40}")
    if not 1 <= _arguments.integer(replicas, "replicas") <= _core.MOST_REPLICAS:
        raise UserError(f"replicas is {replicas}; a stage has from 1 to {_core.MOST_REPLICAS}")
    if _arguments.integer(threads, "threads") < 0:
        raise UserError(f"threads is {threads}; 0 is as many as the model says")
    return {
        "cpus": [_arguments.integer(cpu, "cpus") for cpu in cpus],
        "threads": threads,
        "replicas": replicas,
        "falls_back": _arguments.falls_back(fallback),
    }


def _check_isolation(isolation: str, pure: bool) -> None:
    if isolation not in ("thread", "process"):
        raise UserError(f"isolation is {isolation!r}; it is 'thread' or 'process'")
    if pure and isolation != "process":
        raise UserError("pure is of stages with isolation='process', which run a request again after a crash")


def _group_of(number: int, name: str, group: str | None, device: str) -> tuple[int, str]:
    """The key of a stage's group: the one given, that of its device, or one that the stage has alone."""
    if group is not None:
        return (-1, _arguments.text(group, "group"))
    return (-2, device) if device else (number, name)


def _no_models(saved: SavedCode, stage: str) -> int:
    """The model of a stage in a plan that is run and not saved: none, for its code is there."""
    del saved, stage
    return -1


_public.publish(__name__, "headrace.pipeline")
