"""Ports of a pipeline and of its modules, and the rules of their connections.

A port belongs to an owner: the configuration, whose ports the caller sees, or a stage, which is one use of a module.
`Binding.connect` checks a connection against all rules before it changes anything.
"""

from __future__ import annotations

from typing import Any

from headrace import _public
from headrace._arguments import kind
from headrace._compat.pipeline.errors import PipelineExecutorError

__all__ = ["Binding", "BindingList"]


class PortOwner:
    """Has ports: a configuration or a stage. `config` is None for a stage that no configuration made."""

    has_module = False
    config: Any = None


def is_stage(owner: Any) -> bool:
    """Whether an owner of ports is a stage; otherwise its ports are those of the whole pipeline."""
    return isinstance(owner, PortOwner) and owner.has_module


def port_name(key: Any) -> str | None:
    """The name of a port: text, or a number as text, so that 0 and "0" are one port; None for another type."""
    if isinstance(key, bool) or not isinstance(key, (str, int)):
        return None
    return str(key)


def is_index(name: str) -> bool:
    """Whether a name is a number from 0 on, written without leading zeros."""
    return name.isascii() and name.isdecimal() and str(int(name)) == name


class Binding:
    """A port: an input or an output of a module or of the whole pipeline, or a group of parameters.

    `name` is its name as text; `data_type` its type, which ports of the whole pipeline take from what they are
    connected to; `bindings` are the ports that it feeds, `parents` those that feed it.

    Parameters
    ----------
    owner : ModuleWrapper or PipelineConfig
        What has the port.
    io_type : str
        "input", "output" or "param".
    name : str or int
        Its name; of an output, its index.
    data_type : Type, optional
        The type of a module's port.
    """

    def __init__(self, owner: Any, io_type: str, name: str | int, data_type: Any = None) -> None:
        self.io_owner = owner
        self.io_type = io_type
        self.name = str(name)
        self.data_type = data_type
        self._destinations: list[Binding] = []
        self._sources: list[Binding] = []

    @property
    def bindings(self) -> list[Binding]:
        """The ports that this one feeds, in the order of the connections."""
        return list(self._destinations)

    @property
    def parents(self) -> list[Binding]:
        """The ports that feed this one."""
        return list(self._sources)

    def get_name(self) -> tuple[str, str]:
        """The name of the stage, which is "" for a port of the whole pipeline, and the name of the port."""
        return (self.io_owner.name if is_stage(self.io_owner) else ""), self.name

    def get_owner_idx(self) -> int:
        """The number of the stage, from 1 on; 0 for the pipeline itself."""
        return self.io_owner.idx if is_stage(self.io_owner) else 0

    def is_global_interface(self) -> bool:
        """Whether this is a port of the whole pipeline, which the caller sees."""
        return not is_stage(self.io_owner)

    def is_pipeline_executor_interface(self) -> bool:
        """Returns `is_global_interface()`; TVM has had both names."""
        return self.is_global_interface()

    def describe(self) -> str:
        """The port as configurations and messages show it: "mod1.output(0)", "mod1.data_0", "pipeline input data_0"."""
        name = f"output({self.name})" if self.io_type == "output" else self.name
        if is_stage(self.io_owner):
            return f"{self.io_owner.name}.{name}"
        words = {"input": "pipeline input", "output": "pipeline", "param": "parameter group"}
        return f"{words.get(self.io_type, self.io_type)} {name}"

    def __repr__(self) -> str:
        fed = " ".join(":".join(port.get_name()) for port in self._destinations)
        return f"|{self.name}: {fed}".rstrip()

    def check_dag_acyclic(self, start: Any, inputs: dict[str, Binding]) -> bool:
        """Whether no chain of connections leads from a stage to one of several ports.

        Parameters
        ----------
        start : ModuleWrapper
            The stage.
        inputs : dict of str to Binding
            Inputs of modules, as `stage["input"].bindings` has them.
        """
        waiting, seen = list(inputs.values()), set()
        while waiting:
            port = waiting.pop()
            if port.io_owner is start:
                return False
            for owner in (source.io_owner for source in port._sources):
                if is_stage(owner) and id(owner) not in seen:
                    seen.add(id(owner))
                    waiting.extend(owner.input_bindings.bindings.values())
                    if owner is start:
                        return False
        return True

    def connect(self, binding: Binding) -> None:
        """Lets this port feed another one; connecting the two again changes nothing.

        An input of the pipeline feeds inputs of modules; an output of a module feeds inputs of other modules and
        outputs of the pipeline; a parameter group feeds the parameters of a module, `cfg[mod]["param"]`.

        Parameters
        ----------
        binding : Binding
            The other port.

        Raises
        ------
        PipelineExecutorError
            For a connection that is none of these, for ports of different types and for a cycle. Nothing is changed.
        """
        if not isinstance(binding, Binding):
            raise PipelineExecutorError(
                f"{self.describe()}: connect takes a port, as cfg[mod]['input']['data_0'] is, got {kind(binding)}"
            )
        check_connection(self, binding)
        if any(port is binding for port in self._destinations):
            return
        self._destinations.append(binding)
        binding._sources.append(self)
        self.io_owner.config._note_connection(self, binding)


class BindingList:
    """The inputs or the outputs of a module or of the whole pipeline, or the pipeline's groups of parameters.

    Looking at a port does not make it part of the configuration: a connection does.

    Parameters
    ----------
    owner : ModuleWrapper or PipelineConfig
        What has the ports.
    io_type : str
        "input", "output" or "param".
    """

    def __init__(self, owner: Any, io_type: str) -> None:
        self.io_owner = owner
        self.binding_type = io_type
        self.bindings: dict[str, Binding] = {}

    def get_binding_data_type(self, key: str | int) -> Any:
        """The type of a module's port; None for a port of the pipeline and for a name that no port has."""
        return self.io_owner.get_data_type(key, self.binding_type) if is_stage(self.io_owner) else None

    def __getitem__(self, key: str | int) -> Binding:
        name = port_name(key)
        if name in self.bindings:
            return self.bindings[name]
        data_type = None if name is None else self.get_binding_data_type(name)
        if name is None or (data_type is None and is_stage(self.io_owner)):
            raise self._unknown(key)
        if name == "" or (self.binding_type == "output" and not is_index(name)):
            raise self._unknown(key)
        self.bindings[name] = Binding(self.io_owner, self.binding_type, name, data_type)
        return self.bindings[name]

    def _unknown(self, key: Any) -> PipelineExecutorError:
        text = f"Cannot find {key} in binding list {self.binding_type}"
        if is_stage(self.io_owner):
            names = ", ".join(self.io_owner.port_names(self.binding_type)) or "none"
            return PipelineExecutorError(f"{text}: {self.io_owner.name} has {names}")
        expected = "are numbers from 0 on" if self.binding_type == "output" else "are named by a str"
        return PipelineExecutorError(f"{text}: the pipeline's ports of this list {expected}")


def check_connection(source: Binding, destination: Binding) -> None:
    """Raises PipelineExecutorError when one port may not feed the other."""
    reason = _refuse_source(source) or _refuse_pair(source, destination) or _refuse_owners(source, destination)
    if reason is None and is_stage(source.io_owner) and is_stage(destination.io_owner):
        reason = _refuse_edge(source, destination)
    if reason is not None:
        raise PipelineExecutorError(f"cannot connect {source.describe()} to {destination.describe()}: {reason}")


def _refuse_source(source: Binding) -> str | None:
    if is_stage(source.io_owner):
        if source.io_type == "input":
            return "an input of a module is not a source; connect the port that feeds it to it"
        if source.io_type == "param":
            return "the parameters of a module are not source; connect cfg['param_group'][NAME] to them"
    elif source.io_type == "output":
        return "an output of the pipeline is not a source; connect an output of a module to it"
    return None


def _refuse_pair(source: Binding, destination: Binding) -> str | None:
    is_inner = is_stage(destination.io_owner)
    if source.io_type == "param":
        is_right = is_inner and destination.io_type == "param"
        return None if is_right else "a parameter group feeds the parameters of a module, cfg[mod]['param']"
    if destination.io_type == "param":
        return "only a parameter group feeds parameters; connect cfg['param_group'][NAME] to them"
    if not is_stage(source.io_owner):
        is_right = is_inner and destination.io_type == "input"
        return None if is_right else "an input of the pipeline feeds inputs of modules only"
    if is_inner and destination.io_owner is source.io_owner:
        return "a module cannot feed itself"
    if is_inner and destination.io_type == "output":
        return "an output of a module feeds inputs of modules and outputs of the pipeline, and no output of a module"
    if not is_inner and destination.io_type == "input":
        return "the caller sets the inputs of the pipeline, and no module feeds them"
    return None


def _refuse_owners(source: Binding, destination: Binding) -> str | None:
    for port in (source, destination):
        if getattr(port.io_owner, "config", None) is None:
            return f"{port.describe()} is of no PipelineConfig; cfg[mod] gives the stage of a module"
    if source.io_owner.config is not destination.io_owner.config:
        return "the two are of different PipelineConfigs"
    return None


def _refuse_edge(source: Binding, destination: Binding) -> str | None:
    """Refuses an edge between two stages for their types, or for the cycle that it would close."""
    if source.data_type != destination.data_type:
        return f"the types differ: {source.data_type} and {destination.data_type}"
    path = _path_between(destination.io_owner, source.io_owner)
    if path:
        names = " -> ".join(stage.name for stage in [*path, destination.io_owner])
        return f"this would make a cycle: {names}"
    return None


def _path_between(begin: Any, end: Any) -> list[Any]:
    """The stages on a shortest way along connections; empty when there is none."""
    came_from: dict[int, Any] = {id(begin): None}
    waiting = [begin]
    for stage in waiting:
        if stage is end:
            path = []
            while stage is not None:
                path.append(stage)
                stage = came_from[id(stage)]
            return path[::-1]
        for port in stage.output_bindings.bindings.values():
            for owner in (fed.io_owner for fed in port._destinations):
                if is_stage(owner) and id(owner) not in came_from:
                    came_from[id(owner)] = stage
                    waiting.append(owner)
    return []


_public.publish(__name__, "headrace.pipeline_executor")
