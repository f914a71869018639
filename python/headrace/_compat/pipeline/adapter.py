"""The one place that calls the runtime of pipelines, `headrace.pipeline`.

The other modules know a pipeline as the parts that a PipelineExecutorFactoryModule holds.
"""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from headrace._arguments import kind
from headrace._compat.pipeline.errors import PipelineExecutorError, PipelineExecutorMissingError
from headrace._core import Module, NDArray, UserError, try_array
from headrace._core import array as share

OPTION = "USE_PIPELINE_EXECUTOR"  # CMake's name for pipelines
# How many runs may have a place in the pipeline: each until its outputs are taken.
MAX_IN_FLIGHT = 16


def is_available() -> bool:
    """Whether this build of Headrace runs pipelines."""
    return _find_runtime() is not None


def _find_runtime() -> Any:
    try:
        runtime = importlib.import_module("headrace.pipeline")
    except ModuleNotFoundError as error:
        if error.name != "headrace.pipeline":
            raise
        return None
    return runtime if hasattr(runtime, "Graph") else None  # a folder that is left is a module without names


def is_simulated(device: Any) -> bool:
    """Whether a device is one of headrace.pipeline's simulated ones."""
    return isinstance(device, getattr(_find_runtime(), "SimulatedDevice", ()))


def start(pipeline_mods: Mapping[int, Mapping[str, Any]], mods_config: Mapping[str, Any]) -> Any:
    """Builds and starts a pipeline of compiled modules.

    Parameters
    ----------
    pipeline_mods : dict of int to dict
        By the number of the stage: `lib`, `dev`, `cpus`, `settable`, the inputs that are parameters, and `params`, the
        first values of some.
    mods_config : dict
        The connections, as PipelineExecutorFactoryModule holds them.

    Returns
    -------
    Pipeline

    Raises
    ------
    PipelineExecutorMissingError
        Where this build of Headrace runs no pipelines.
    """
    return _make_graph(pipeline_mods, mods_config).build(max_inflight=MAX_IN_FLIGHT)


def save(pipeline_mods: Mapping[int, Mapping[str, Any]], mods_config: Mapping[str, Any], path: str) -> None:
    """Writes a pipeline of compiled modules, with the first values of parameters, to one file.

    Modules that have a `fcompile` or `export_cc` are linked by that.
    """
    with tempfile.TemporaryDirectory() as folder:
        linked = {number: _linked(number, parts, folder) for number, parts in pipeline_mods.items()}
        _make_graph(linked, mods_config).save(path, max_inflight=MAX_IN_FLIGHT)


def _linked(number: int, parts: Mapping[str, Any], folder: str) -> Mapping[str, Any]:
    """The parts of a stage whose module was linked by its own compiler; others as they are."""
    if not parts.get("fcompile") and not parts.get("export_cc"):
        return parts
    module, path = _code_of(parts["lib"]), str(Path(folder) / f"mod{number}.so")
    if not isinstance(module, Module):
        raise UserError(f"mod{number}: fcompile and export_cc link what relay.build gives, got {kind(module)}")
    options = {"cc": parts["export_cc"]} if parts.get("export_cc") else {}
    try:
        module.export_library(path, parts.get("fcompile"), **options)
    except UserError as error:
        raise UserError(f"mod{number}: {error}") from error
    return {**parts, "lib": path}


def load(path: str) -> Any:
    """Starts the pipeline of a file."""
    return _runtime().load(path)


def _runtime() -> Any:
    runtime = _find_runtime()
    if runtime is None:
        raise PipelineExecutorMissingError(
            f"this build of Headrace runs no pipelines; build it with the CMake option {OPTION}=ON"
        )
    return runtime


def _make_graph(pipeline_mods: Mapping[int, Mapping[str, Any]], mods_config: Mapping[str, Any]) -> Any:
    graph = _runtime().Graph()
    stages = {number: _make_stage(graph, number, parts) for number, parts in sorted(pipeline_mods.items())}
    for entry in mods_config["input_connection"]:
        stage = stages[entry["mod_idx"]]
        graph.input(entry["global_interface_name"]).connect(stage.input(entry["module_interface_name"]))
    group_of = _groups_by_module(mods_config)
    for number, stage in stages.items():
        values = pipeline_mods[number].get("params", {})
        for name in pipeline_mods[number].get("settable", ()):
            graph.param(group_of[number], name, values.get(name)).connect(stage.input(name))
    _connect_outputs(graph, stages, mods_config["module_connection"])
    return graph


def _make_stage(graph: Any, number: int, parts: Mapping[str, Any]) -> Any:
    where = {"cpus": parts["cpus"]} if parts.get("cpus") else {}
    return graph.stage(_code_of(parts["lib"]), name=f"mod{number}", device=parts["dev"], **where)


def _connect_outputs(graph: Any, stages: Mapping[int, Any], connections: Iterable[Mapping[str, Any]]) -> None:
    results = {}
    for entry in connections:
        for output in entry["output"]:
            source = stages[entry["mod_idx"]].output(output["output_idx"])
            for fed in output["dependencies"]:
                if fed["mod_idx"]:
                    source.connect(stages[fed["mod_idx"]].input(fed["input_name"]))
                else:
                    results[int(fed["input_name"])] = source
    for number, source in sorted(results.items()):  # the runtime gives results in the order in which they are declared
        source.connect(graph.output(str(number)))


def runtime_groups(mods_config: Mapping[str, Any]) -> dict[str, str]:
    """By the name of a parameter group that of the runtime's: groups of one module are one."""
    group_of = _groups_by_module(mods_config)
    return {str(entry["global_param_name"]): group_of[entry["mod_idx"]] for entry in mods_config["param_connection"]}


def _groups_by_module(mods_config: Mapping[str, Any]) -> dict[int, str]:
    return {entry["mod_idx"]: str(entry["global_param_name"]) for entry in mods_config["param_connection"]}


def set_params(pipeline: Any, group: str, values: Mapping[str, NDArray]) -> None:
    """Changes parameters of a group for the requests from now on, all at once."""
    pipeline.set_params(group, dict(values))


def _code_of(lib: Any) -> Any:
    """The code of a build that a stage runs: the module within a GraphExecutorFactoryModule, otherwise `lib` itself."""
    return getattr(lib, "module", lib)


def submit(pipeline: Any, inputs: Mapping[str, NDArray]) -> Any:
    """Gives a request to a running pipeline; the ticket stands for its result."""
    return pipeline.submit(dict(inputs))


def wait(ticket: Any, timeout: float | None) -> list[NDArray]:
    """The outputs of a request, in order; TimeoutError when they are not there after so many seconds."""
    outputs = ticket.outputs(timeout)
    return [output if isinstance(output, NDArray) else _shared(output) for output in outputs]


def _shared(output: Any) -> NDArray:
    tensor = try_array(output)
    return share(output, "output") if tensor is None else tensor


def stop(pipeline: Any) -> None:
    """Ends a running pipeline."""
    pipeline.stop()


def stopped(message: str) -> Exception:
    """The error of a call for a pipeline that is stopped."""
    return getattr(_find_runtime(), "PipelineStopped", PipelineExecutorError)(message)
