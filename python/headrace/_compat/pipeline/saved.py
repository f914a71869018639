"""The parts of a pipeline that was loaded from a file, as PipelineExecutorFactoryModule holds them."""

from __future__ import annotations

from typing import Any

from headrace import _core
from headrace.relay import _classes as nodes


def parts_of(path: str) -> tuple[dict[int, dict[str, Any]], dict[str, Any]]:
    """Reads the plan of a pipeline's file.

    Parameters
    ----------
    path : str
        The file.

    Returns
    -------
    tuple of dict and dict
        By the number of the stage `types`, `settable` and `params`; and the connections.
    """
    plan = _core.read_pipeline_plan(path)
    mods: dict[int, dict[str, Any]] = {}
    inputs, groups = [], {}
    fed: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for number, stage in enumerate(plan.stages, 1):
        mods[number] = {"types": {port[0]: _type_of(port) for port in stage.inputs}, "settable": [], "params": {}}
        for (name, _, _), (kind, index, port) in zip(stage.inputs, stage.sources, strict=True):
            if kind == "stage":
                fed.setdefault((index + 1, port), []).append({"mod_idx": number, "input_name": name})
            elif kind == "input":
                inputs.append(
                    {
                        "global_interface_name": plan.inputs[index][0],
                        "mod_idx": number,
                        "module_interface_name": name,
                    }
                )
            else:
                group, (param, *_), has_value = plan.params[index]
                owner = mods[groups.setdefault(group, number)]  # a group that feeds several stages is the first one's
                if param not in owner["settable"]:
                    owner["settable"].append(param)
                owner["types"][param] = _type_of(plan.params[index][1])
                if has_value:
                    owner["params"][param] = None  # it is in the running pipeline
    for number, (_, (_, index, port)) in enumerate(plan.outputs):
        fed.setdefault((index + 1, port), []).append({"mod_idx": 0, "input_name": str(number)})
    return mods, {
        "input_connection": inputs,
        "param_connection": [{"global_param_name": name, "mod_idx": number} for name, number in groups.items()],
        "module_connection": [
            {
                "mod_idx": number,
                "output": [
                    {"output_idx": port, "dependencies": ends} for (owner, port), ends in fed.items() if owner == number
                ],
            }
            for number in mods
        ],
    }


def _type_of(port: tuple[str, str | None, list[int]]) -> Any:
    return None if port[1] is None else nodes.TensorType(tuple(port[2]), port[1])
