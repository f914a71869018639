"""From a configuration to compiled modules with their connections."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headrace import _arguments, _public
from headrace._compat.graph_executor import GraphModule
from headrace._compat.pipeline import adapter
from headrace._compat.pipeline.check import check_complete, cpus_of
from headrace._compat.pipeline.config import PipelineConfig
from headrace._compat.pipeline.errors import PipelineExecutorError, told_of
from headrace._compat.pipeline.running import RunningPipeline
from headrace._compat.pipeline.stage import ModuleWrapper
from headrace._compat.relay_build import build as relay_build
from headrace._core import NDArray, cpu

__all__ = ["PipelineExecutorFactoryModule", "build", "pipeline_executor_enabled"]


def pipeline_executor_enabled() -> bool:
    """Whether this build of Headrace runs pipelines (CMake option USE_PIPELINE_EXECUTOR).

    Returns
    -------
    bool
    """
    return adapter.is_available()


class PipelineExecutorFactoryModule:
    """Compiled modules and their connections; `PipelineModule(factory)` runs them.

    Parameters
    ----------
    pipeline_mods : dict of int to dict
        By the number of the stage: `lib`, what its build gave, and `dev`, its device; further parts as `build` makes
        them.
    mods_config : dict
        `module_connection`, `input_connection` and `param_connection`.
    """

    def __init__(self, pipeline_mods: Mapping[int, Mapping[str, Any]], mods_config: Mapping[str, Any]) -> None:
        self.pipeline_mods = dict(_arguments.entries(pipeline_mods, "pipeline_mods"))
        self.mods_config = dict(_arguments.entries(mods_config, "mods_config"))
        missing = [name for name in _SECTIONS if name not in self.mods_config]
        if missing:
            raise PipelineExecutorError(f"mods_config has no '{missing[0]}'; build(cfg) makes all of it")
        self.module: RunningPipeline | None = None

    def get_pipeline_executor_module(self) -> RunningPipeline:
        """Starts the pipeline at the first call and after it was stopped, and gives the running one otherwise."""
        if self.module is None or self.module.is_stopped:
            started = adapter.start(self.pipeline_mods, self.mods_config)
            self.module = RunningPipeline(
                self.pipeline_mods, self.mods_config, started, adapter.runtime_groups(self.mods_config)
            )
        return self.module

    def graph_executor_create(
        self, pipeline_mods: Mapping[int, Mapping[str, Any]], mod_config: Mapping[str, Any]
    ) -> tuple[list[Any], str]:
        """Makes an executor of each module, to run it by itself.

        Parameters
        ----------
        pipeline_mods : dict of int to dict
            As `pipeline_mods` of the factory.
        mod_config : dict
            As its `mods_config`.

        Returns
        -------
        tuple of list and str
            The modules of the executors, in the order of the stages, and mod_config as JSON.
        """
        in_order = [pipeline_mods[number] for number in sorted(pipeline_mods)]
        modules = [GraphModule(parts["lib"]["default"](parts["dev"])).module for parts in in_order]
        return modules, json.dumps(mod_config)

    def export_library(self, directory_path: Any) -> str:
        """Writes the pipeline to one file in a folder; `PipelineModule.load_library` reads it, wherever it is moved.

        Parameters
        ----------
        directory_path : path
            The folder, which exists.

        Returns
        -------
        str
            The path of the file, `pipeline.so` in the folder.

        Raises
        ------
        PipelineExecutorError
            For a factory without modules, what is not a folder, and what cannot be written.
        """
        if not self.pipeline_mods:
            raise PipelineExecutorError("export_library: the factory has no modules; build(cfg) makes one that has")
        with told_of("export_library"):
            folder = _arguments.path(directory_path, "directory_path")
        if not Path(folder).is_dir():
            raise PipelineExecutorError(f"export_library: there is no folder '{folder}'")
        path = str(Path(folder) / FILE_NAME)
        with told_of("export_library"):
            adapter.save(self.pipeline_mods, self.mods_config, path)
        return path


FILE_NAME = "pipeline.so"
_SECTIONS = ("module_connection", "input_connection", "param_connection")


def build(pipe_configs: PipelineConfig) -> PipelineExecutorFactoryModule:
    """Compiles the modules of a configuration, in the order of the stages.

    Parameters
    ----------
    pipe_configs : PipelineConfig
        The configuration. It is complete: every input has one source, every output of the pipeline one module.

    Returns
    -------
    PipelineExecutorFactoryModule

    Raises
    ------
    PipelineExecutorError
        For an incomplete configuration; it tells of every broken rule, and nothing is compiled then.
    """
    if not isinstance(pipe_configs, PipelineConfig):
        raise PipelineExecutorError(f"build: expected a PipelineConfig, got {_arguments.kind(pipe_configs)}")
    check_complete(pipe_configs)
    config = pipe_configs.get_config()
    stages = list(pipe_configs.mod_wrapper.values())
    pipeline_mods, connections = {}, []
    for stage, settings in zip(stages, config["module_connection"].values(), strict=True):
        parts = _compile(stage, settings)
        pipeline_mods[stage.idx] = parts
        device = parts["dev"]
        connections.append({**settings["pipeline"], "dev": f"{device.device_type},{device.device_id}"})
    return PipelineExecutorFactoryModule(pipeline_mods, {**config, "module_connection": connections})


def _compile(stage: ModuleWrapper, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Builds a stage and gives its parts. Parameters of a group stay inputs of the code, so that they can be set."""
    given: Mapping[str, Any] | None = settings["params"]
    is_settable = bool(stage["param"].parents)
    keeps_inputs = is_settable and stage.build_func is None
    build_func = stage.build_func or relay_build
    with told_of(f"build of {stage.name}"):
        lib = build_func(
            stage.mod,
            settings["target"],
            params=None if keeps_inputs else given,
            target_host=settings["target_host"],
            mod_name=settings["mod_name"],
        )
        initial = {name: _arguments.copied(value, name) for name, value in (given or {}).items()}
    if lib is None:
        raise PipelineExecutorError(f"build of {stage.name}: its build_func gave None; it gives what relay.build gives")
    connected = {name for name, port in stage["input"].bindings.items() if port.parents}
    settable = [name for name in stage.port_names("input") if is_settable and name not in connected]
    return {
        "lib": lib,
        "dev": cpu() if stage.dev is None else stage.dev,
        "fcompile": stage.fcompile,
        "export_cc": stage.export_cc,
        "cpus": cpus_of(stage.cpu_affinity, f"{stage.name}.cpu_affinity"),
        "types": {name: stage.get_data_type(name, "input") for name in stage.port_names("input")},
        "settable": settable if keeps_inputs else [name for name in settable if name not in initial],
        "params": _initial_values(initial, settable) if keeps_inputs else {},
    }


def _initial_values(values: Mapping[str, NDArray], settable: list[str]) -> dict[str, NDArray]:
    return {name: value for name, value in values.items() if name in settable}


_public.publish(__name__, "headrace.pipeline_executor")
