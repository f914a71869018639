"""A configuration as text and as dicts. Both read the order of the stages and the connections, and change neither."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from headrace._compat.pipeline.ports import Binding, is_stage
from headrace._compat.pipeline.stage import ModuleWrapper

Edges = Iterable[tuple[Binding, Binding]]


def key_of(stage: ModuleWrapper) -> Any:
    """The key of a stage: its module; of a further stage, the module and the name."""
    return (stage.mod, stage.stage_name) if stage.stage_name else stage.mod


def by_source(edges: Edges, io_type: str, of_stages: bool) -> list[tuple[Binding, list[Binding]]]:
    """The sources of one kind with what they feed.

    Parameters
    ----------
    edges : iterable of pairs of Binding
        All connections.
    io_type : str
        The kind of the sources.
    of_stages : bool
        Whether they are ports of stages; otherwise of the pipeline.

    Returns
    -------
    list of pairs
        By the number of the stage, then by the numbers in the name of the port ("data_2" before "data_10"), then in the
        order of the connections, in which the destinations are, too.
    """
    found: dict[Binding, list[Binding]] = {}
    for source, destination in edges:
        if source.io_type == io_type and is_stage(source.io_owner) == of_stages:
            found.setdefault(source, []).append(destination)
    return sorted(found.items(), key=lambda entry: _place_of(entry[0]))


def _place_of(port: Binding) -> tuple[int, list[int]]:
    return port.get_owner_idx(), [int(digits) for digits in re.findall(r"[0-9]+", port.name)]


def pipeline_outputs(edges: Edges) -> list[tuple[Binding, list[Binding]]]:
    """The outputs of the pipeline by their numbers, each with the outputs of modules that are connected to it."""
    found: dict[Binding, list[Binding]] = {}
    for source, destination in edges:
        if destination.io_type == "output":
            found.setdefault(destination, []).append(source)
    return sorted(found.items(), key=lambda entry: int(entry[0].name))


def text_of(edges: Edges) -> str:
    """The text that `print(cfg)` shows: four sections, with a line for each source of each."""
    params = [_line(port, fed) for port, fed in by_source(edges, "param", False)]
    inputs = [_line(port, fed) for port, fed in by_source(edges, "input", False)]
    outputs = [
        f"  |output({port.name}) : {source.describe()}" for port, fed in pipeline_outputs(edges) for source in fed
    ]
    connections = []
    for source, fed in by_source(edges, "output", True):
        inner = [port.describe() for port in fed if is_stage(port.io_owner)]
        if inner:
            connections.append(f"  |{source.describe()}-> {' '.join(inner)}")
    sections = {"Params": params, "Inputs": inputs, "output": outputs, "connections": connections}
    return "\n".join("".join(f"{line}\n" for line in (title, *lines)) for title, lines in sections.items())


def _line(port: Binding, fed: list[Binding]) -> str:
    return f"  |{port.name}: {' '.join(':'.join(destination.get_name()) for destination in fed)}"


def dict_of(stages: list[ModuleWrapper], edges: Edges) -> dict[str, Any]:
    """The dict that `PipelineConfig.get_config` describes."""
    outputs: dict[ModuleWrapper, list[dict[str, Any]]] = {stage: [] for stage in stages}
    for source, fed in by_source(edges, "output", True):
        dependencies = [{"mod_idx": port.get_owner_idx(), "input_name": port.name} for port in fed]
        outputs[source.io_owner].append({"output_idx": int(source.name), "dependencies": dependencies})
    return {
        "module_connection": {key_of(stage): _settings_of(stage, outputs[stage]) for stage in stages},
        "input_connection": [
            {"global_interface_name": port.name, "mod_idx": to.get_owner_idx(), "module_interface_name": to.name}
            for port, fed in by_source(edges, "input", False)
            for to in fed
        ],
        "param_connection": [
            {"global_param_name": port.name, "mod_idx": to.get_owner_idx()}
            for port, fed in by_source(edges, "param", False)
            for to in fed
        ],
    }


def _settings_of(stage: ModuleWrapper, outputs: list[dict[str, Any]]) -> dict[str, Any]:
    pipeline = {"mod_idx": stage.idx, "output": outputs}
    if stage.cpu_affinity:
        pipeline["cpu_affinity"] = stage.cpu_affinity
    settings = {
        "pipeline": pipeline,
        "target_host": stage.target_host,
        "mod_name": "default",
        "build": stage.build_func,
        "params": stage.params,
        "target": stage.target,
        "dev": stage.dev,
    }
    linked_by = {"fcompile": stage.fcompile, "export_cc": stage.export_cc}
    return {**settings, **{name: value for name, value in linked_by.items() if value is not None}}
