"""The one place that calls the runtime of pipelines, `headrace.pipeline`.

The other modules know a pipeline as the parts that a PipelineExecutorFactoryModule holds.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import Any

from headrace._compat.pipeline.errors import PipelineExecutorMissingError
from headrace._core import NDArray, try_array
from headrace._core import array as share

OPTION = "USE_PIPELINE_EXECUTOR"  # of CMake
# How many requests may be in the pipeline at once; a run that finds it full takes out the oldest result.
MAX_IN_FLIGHT = 16


def is_available() -> bool:
    """Whether this build of Headrace runs pipelines."""
    return _find_runtime() is not None


def _find_runtime() -> Any:
    try:
        return importlib.import_module("headrace.pipeline")
    except ModuleNotFoundError as error:
        if error.name != "headrace.pipeline":
            raise
        return None


def start(pipeline_mods: Mapping[int, Mapping[str, Any]], mods_config: Mapping[str, Any]) -> Any:
    """Builds and starts a pipeline of compiled modules.

    Parameters
    ----------
    pipeline_mods : dict of int to dict
        By the number of the stage: `lib`, `dev`, `cpus`, and `settable`, the inputs that are parameters.
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
    runtime = _find_runtime()
    if runtime is None:
        raise PipelineExecutorMissingError(
            f"this build of Headrace runs no pipelines; build it with the CMake option {OPTION}=ON"
        )
    graph = runtime.Graph()
    stages = {number: _make_stage(graph, number, parts) for number, parts in sorted(pipeline_mods.items())}
    for entry in mods_config["input_connection"]:
        stage = stages[entry["mod_idx"]]
        graph.input(entry["global_interface_name"]).connect(stage.input(entry["module_interface_name"]))
    for number, stage in stages.items():
        for name in pipeline_mods[number].get("settable", ()):
            graph.param(_group_of(number), name).connect(stage.input(name))
    _connect_outputs(graph, stages, mods_config["module_connection"])
    return graph.build(max_inflight=MAX_IN_FLIGHT)


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


def _group_of(number: int) -> str:
    """The group of the running pipeline that the parameters of a stage are."""
    return f"mod{number}"


def set_params(pipeline: Any, number: int, values: Mapping[str, NDArray]) -> None:
    """Changes parameters of a stage for the requests from now on, all at once."""
    pipeline.set_params(_group_of(number), dict(values))


def _code_of(lib: Any) -> Any:
    """What the runtime runs of a build: the module within a GraphExecutorFactoryModule, otherwise the thing itself."""
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


def refuse_files(what: str) -> PipelineExecutorMissingError:
    """The error of writing or reading a pipeline's file, which this build does not do."""
    return PipelineExecutorMissingError(f"{what}: this build of Headrace does not save pipelines to files")
