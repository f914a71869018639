"""The configuration of a pipeline: its stages, in their order, and their connections."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace import _container, _node, _public
from headrace._arguments import kind
from headrace._compat.pipeline import describe
from headrace._compat.pipeline.errors import PipelineExecutorError
from headrace._compat.pipeline.ports import Binding, BindingList, PortOwner, is_stage
from headrace._compat.pipeline.stage import ModuleWrapper

__all__ = ["PipelineConfig"]


class PipelineConfig(PortOwner):
    """The stages of a pipeline and what feeds what.

    cfg = PipelineConfig()
    cfg["input"]["data"].connect(cfg[mod1]["input"]["x"])
    cfg[mod1]["output"][0].connect(cfg[mod2]["input"]["y"])
    cfg[mod2]["output"][0].connect(cfg["output"][0])
    cfg[mod2].target = "llvm"

    A connection, a setting and `stage` make a stage part of the pipeline; looking at it and printing do not.
    """

    Binding = Binding
    BindingList = BindingList
    ModuleWrapper = ModuleWrapper

    def __init__(self) -> None:
        self.config = self
        self.input_bindings = BindingList(self, "input")
        self.output_bindings = BindingList(self, "output")
        self.param_group_bindings = BindingList(self, "param")
        self._stages: dict[tuple[Any, str], ModuleWrapper] = {}  # all that were looked at
        self._placed: dict[ModuleWrapper, int] = {}  # those of the pipeline, by their place among them
        self._edges: list[tuple[Binding, Binding]] = []
        self._order: list[ModuleWrapper] | None = None  # None when it has to be found again

    def __getitem__(self, key: Any) -> Any:
        if _is_module(key):
            return self._stages.get((key, "")) or self._make_stage(key, "")
        if isinstance(key, tuple) and len(key) == 2 and _is_module(key[0]):
            if isinstance(key[1], (Mapping, _container.Map)):
                raise PipelineExecutorError(
                    "a PipelineConfig is asked for a module, got a tuple; from_onnx gives (mod, params): write "
                    "cfg[mod], and cfg[mod].params = params"
                )
            if not isinstance(key[1], str) or not key[1] or key not in self._stages:
                raise PipelineExecutorError(f"stage {key[1]!r} not found! cfg.stage(mod, NAME) makes a stage")
            return self._stages[key]
        if isinstance(key, str):
            lists = {
                "input": self.input_bindings,
                "output": self.output_bindings,
                "param_group": self.param_group_bindings,
            }
            if key in lists:
                return lists[key]
            raise PipelineExecutorError(f"{key} not found! A PipelineConfig has 'input', 'output' and 'param_group'")
        instead = "; IRModule.from_expr makes a module of a function" if kind(key) == "Function" else ""
        raise PipelineExecutorError(
            f"a PipelineConfig is asked for an IRModule, 'input', 'output' or 'param_group', got {kind(key)}{instead}"
        )

    def __str__(self) -> str:
        self.dag_topology_sort()
        return describe.text_of(self._edges)

    def stage(self, mod: Any, name: str) -> ModuleWrapper:
        """Makes a further stage of a module, which `cfg[mod, name]` reaches.

        Parameters
        ----------
        mod : IRModule
            The module.
        name : str
            A name that no other stage of the module has.

        Returns
        -------
        ModuleWrapper

        Raises
        ------
        PipelineExecutorError
            For a name that is taken, and for what is not a module.
        """
        if not _is_module(mod):
            instead = "; from_onnx gives (mod, params), so give mod" if isinstance(mod, tuple) else ""
            raise PipelineExecutorError(f"stage: mod: expected an IRModule, got {kind(mod)}{instead}")
        if not isinstance(name, str) or not name:
            raise PipelineExecutorError(f"stage: name: expected a name, as in cfg.stage(mod, 'second'), got {name!r}")
        if (mod, name) in self._stages:
            raise PipelineExecutorError(f"stage: the module has a stage '{name}'; cfg[mod, {name!r}] is it")
        made = self._make_stage(mod, name)
        self._place(made)
        return made

    def get_config(self) -> dict[str, Any]:
        """The configuration as dicts and lists.

        Returns
        -------
        dict
            `module_connection`: by module (by (module, name) for further stages) its settings and `pipeline`, which
            holds the number `mod_idx`, from 1 on, and for each connected output what it feeds; there `mod_idx` 0 is the
            pipeline itself. `cpu_affinity` (in `pipeline`), `fcompile` and `export_cc` are there when they are set.
            `input_connection` and `param_connection`: what feeds which stage.
        """
        self.dag_topology_sort()
        return describe.dict_of(self._placed_in_order(), self._edges)

    @property
    def mod_wrapper(self) -> dict[Any, ModuleWrapper]:
        """The stages of the pipeline in their order, by module; further stages by (module, name)."""
        return {describe.key_of(stage): stage for stage in self._placed_in_order()}

    def dag_topology_sort(self) -> None:
        """Numbers the stages: each after those that feed it, otherwise in the order in which they came in."""
        self._order = None
        self._number_stages()

    def get_mod_idx(self, mod: Any) -> int | None:
        """The number of a module's first stage.

        Parameters
        ----------
        mod : IRModule
            The module.

        Returns
        -------
        int
        """
        return self[mod].idx

    def pipe_input(self, name: str) -> Binding:
        """Returns `cfg["input"][name]`."""
        return self.input_bindings[name]

    def pipe_output(self, idx: str | int) -> Binding:
        """Returns `cfg["output"][idx]`."""
        return self.output_bindings[idx]

    def _make_stage(self, mod: Any, name: str) -> ModuleWrapper:
        stage = ModuleWrapper(mod)
        vars(stage).update(config=self, stage_name=name)
        self._stages[mod, name] = stage
        self._order = None
        return stage

    def _place(self, stage: ModuleWrapper) -> None:
        """Makes a stage part of the pipeline."""
        if stage not in self._placed:
            self._placed[stage] = len(self._placed)
            self._order = None

    def _note_connection(self, source: Binding, destination: Binding) -> None:
        for port in (source, destination):
            if is_stage(port.io_owner):
                self._place(port.io_owner)
        self._edges.append((source, destination))
        self._order = None

    def _placed_in_order(self) -> list[ModuleWrapper]:
        self._number_stages()
        assert self._order is not None
        return self._order[: len(self._placed)]

    def _number_stages(self) -> None:
        """Numbers the stages if a change since the last time may have moved one.

        Stages that were only looked at come last: they have names for messages, and move no other stage's number.
        """
        if self._order is not None:
            return
        seen_only = [stage for stage in self._stages.values() if stage not in self._placed]
        self._order = [*_in_order(self._placed), *seen_only]
        for number, stage in enumerate(self._order, 1):
            vars(stage)["_idx"] = number


def _is_module(key: Any) -> bool:
    return isinstance(key, _node.class_of("ir.IRModule"))


def _in_order(placed: dict[ModuleWrapper, int]) -> list[ModuleWrapper]:
    """The stages in the order that sweeping over them again and again gives.

    Each sweep takes, in the order in which the stages came in, those whose sources are taken already. A stage is in the
    sweep of its latest source, or in the next one when that source came in after the stage.
    """
    waits_for = {stage: _sources_of(stage) for stage in placed}
    missing = {stage: len(sources) for stage, sources in waits_for.items()}
    feeds: dict[ModuleWrapper, list[ModuleWrapper]] = {stage: [] for stage in placed}
    for stage, sources in waits_for.items():
        for source in sources:
            feeds[source].append(stage)
    sweep = dict.fromkeys(placed, 0)
    ready = [stage for stage, count in missing.items() if count == 0]
    for stage in ready:
        for fed in feeds[stage]:
            sweep[fed] = max(sweep[fed], sweep[stage] + (placed[stage] > placed[fed]))
            missing[fed] -= 1
            if missing[fed] == 0:
                ready.append(fed)
    return sorted(ready, key=lambda stage: (sweep[stage], placed[stage]))


def _sources_of(stage: ModuleWrapper) -> set[ModuleWrapper]:
    """The stages that feed a stage."""
    ports = stage.input_bindings.bindings.values()
    return {source.io_owner for port in ports for source in port.parents if is_stage(source.io_owner)}


_public.publish(__name__, "headrace.pipeline_executor")
