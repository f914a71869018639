"""A stage: one use of a module in a pipeline, with its ports and the settings of its build."""

from __future__ import annotations

from typing import Any

from headrace import _arguments, _public
from headrace._compat.pipeline.errors import PipelineExecutorError, told_of
from headrace._compat.pipeline.ports import Binding, BindingList, PortOwner, is_index, is_stage, port_name
from headrace.relay import _classes as nodes
from headrace.relay.transform import InferType

__all__ = ["ModuleWrapper"]

# The settings of a stage that users write, with their values before.
SETTINGS: dict[str, Any] = {
    "target": None,
    "target_host": None,
    "dev": None,
    "build_func": None,
    "params": None,
    "fcompile": None,
    "export_cc": None,
    "cpu_affinity": "",
}


class ModuleWrapper(PortOwner):
    """A stage of a pipeline: one use of a module. `cfg[mod]` gives the first of a module.

    `target`, `target_host` and `params` are for the build as for `relay.build`, and `build_func` does it instead;
    `dev` is the device, also a `headrace.pipeline.SimulatedDevice`, `cpu_affinity` the numbers of processors ("0,1");
    `fcompile` and `export_cc` link the module when the pipeline is exported, as those of `export_library` of a build.
    `idx` and `name` (1 and "mod1") follow the order of the stages in the pipeline. Two are equal when they are the
    same stage.

    Parameters
    ----------
    mod : IRModule
        The module, whose `main` runs.
    """

    has_module = True
    Binding = Binding
    BindingList = BindingList

    def __init__(self, mod: Any = None) -> None:
        fields: dict[str, Any] = {**SETTINGS, "mod": mod, "config": None, "stage_name": "", "_idx": None}
        with told_of("the module of a stage"):
            main = InferType()(_arguments.module(mod, "mod"))["main"]
            fields["input_params"] = main.params
            fields["output_type"] = main.checked_type.ret_type
        fields["_main"] = mod["main"]
        fields["_input_types"] = {param.name_hint: param.checked_type for param in main.params}
        fields["_output_types"] = _leaves(fields["output_type"])
        fields["input_bindings"] = BindingList(self, "input")
        fields["output_bindings"] = BindingList(self, "output")
        fields["param_binding"] = Binding(self, "param", "param")
        vars(self).update(fields)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in SETTINGS:
            raise PipelineExecutorError(f"a module has no setting '{name}'; its settings are {', '.join(SETTINGS)}")
        vars(self)[name] = value
        if self.config is not None:
            self.config._place(self)

    def __getitem__(self, key: str) -> BindingList | Binding:
        ports = {"input": self.input_bindings, "output": self.output_bindings, "param": self.param_binding}
        if isinstance(key, str) and key in ports:
            return ports[key]
        raise PipelineExecutorError(f"{key} not found! A module has 'input', 'output' and 'param'")

    @property
    def idx(self) -> int | None:
        """The number of the stage in the pipeline, from 1 on."""
        if self.config is not None:
            self.config._number_stages()
        return self._idx

    @property
    def name(self) -> str:
        """The name by the number: "mod1"."""
        idx = self.idx
        return "a module" if idx is None else f"mod{idx}"

    def set_idx_name(self, idx: int) -> None:
        """Sets number and name until the pipeline numbers its stages again, at a change or `dag_topology_sort`."""
        number = _arguments.integer(idx, "set_idx_name: idx")
        _ = self.idx
        vars(self)["_idx"] = number

    def get_data_type(self, key: str | int, interface_type: str) -> Any:
        """The type of a port.

        Parameters
        ----------
        key : str or int
            The name of an input, or the index of an output.
        interface_type : str
            "input" or "output".

        Returns
        -------
        Type or None
            None where there is no such port.
        """
        name = port_name(key)
        if name is None:
            return None
        if interface_type == "input":
            return self._input_types.get(name)
        if interface_type == "output" and is_index(name) and int(name) < len(self._output_types):
            return self._output_types[int(name)]
        return None

    def port_names(self, interface_type: str) -> list[str]:
        """The names of all inputs or outputs."""
        if interface_type == "output":
            return [str(i) for i in range(len(self._output_types))]
        return list(self._input_types)

    def is_outdated(self) -> bool:
        """Whether the module was changed since the stage was made, so that its ports are others."""
        if self.mod["main"].same_as(self._main):
            return False
        now = ModuleWrapper(self.mod)
        return (list(now._input_types.items()), now._output_types) != (
            list(self._input_types.items()),
            self._output_types,
        )

    def is_root_mod(self) -> bool:
        """Whether no other stage feeds this one."""
        ports = self.input_bindings.bindings.values()
        return not any(is_stage(source.io_owner) for port in ports for source in port.parents)


def _leaves(result_type: Any) -> list[Any]:
    """The types of the outputs: those in a tuple, and in the tuples within it, in order."""
    leaves, waiting = [], [result_type]
    while waiting:
        part = waiting.pop()
        if isinstance(part, nodes.TupleType):
            waiting.extend(reversed(list(part.fields)))
        else:
            leaves.append(part)
    return leaves


_public.publish(__name__, "headrace.pipeline_executor")
