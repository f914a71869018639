"""Helpers of the pipeline executor's suites: small modules, and a runtime that stands in for headrace.pipeline."""

from __future__ import annotations

import os
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import graph_executor, relay  # noqa: E402

SHAPE = (3, 3)


def resident_bytes() -> int:
    """The memory of this process that is in RAM."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def module(inputs: str, body: Any, shape: tuple[int, ...] = SHAPE, dtype: str = "float32") -> Any:
    """The module whose inputs have these names and whose outputs are what `body` makes of them."""
    variables = [relay.var(name, shape=shape, dtype=dtype) for name in inputs.split()]
    made = body(*variables)
    return hr.IRModule.from_expr(
        relay.Function(variables, relay.Tuple(list(made)) if isinstance(made, tuple) else made)
    )


def const(value: float) -> Any:
    return relay.const(value, "float32")


def three_modules() -> tuple[Any, Any, Any]:
    """Three modules for a pipeline with residual edges: the first feeds both others."""
    first = module("data_0", lambda x: (x + const(1), x - const(2), x * const(3)))
    second = module("data_0 data_1", lambda x, y: x + const(2) + y + const(3))
    third = module("data_0 data_1", lambda x, y: y * const(3) + x)
    return first, second, third


def three_results(a: np.ndarray, b: np.ndarray) -> list[np.ndarray]:
    """The outputs of `connect_three` for its inputs data_a and data_b, by numpy: the last, and the first's third."""
    second = (a + 1) + 2 + b + 3
    return [second * 3 + (a - 2), a * 3]


def connect_three(cfg: Any, first: Any, second: Any, third: Any) -> Any:
    cfg["input"]["data_a"].connect(cfg[first]["input"]["data_0"])
    cfg["input"]["data_b"].connect(cfg[second]["input"]["data_1"])
    cfg[first]["output"][0].connect(cfg[second]["input"]["data_0"])
    cfg[first]["output"][1].connect(cfg[third]["input"]["data_0"])
    cfg[second]["output"][0].connect(cfg[third]["input"]["data_1"])
    cfg[third]["output"][0].connect(cfg["output"]["0"])
    cfg[first]["output"][2].connect(cfg["output"]["1"])
    return cfg


class Port:
    def __init__(self, owner: Ports, name: Any) -> None:
        self.owner, self.name = owner, name
        self.source: Port | None = None

    def connect(self, destination: Port) -> None:
        assert destination.source is None
        destination.source = self


class Ports:
    """Something with ports that are made when they are asked for."""

    def __init__(self) -> None:
        self.inputs: dict[str, Port] = {}
        self.outputs: dict[Any, Port] = {}

    def input(self, name: str) -> Port:
        assert isinstance(name, str)
        return self.inputs.setdefault(name, Port(self, name))

    def output(self, name: Any) -> Port:
        return self.outputs.setdefault(name, Port(self, name))


class Stage(Ports):
    def __init__(self, code: Any, name: str, device: Any, cpus: Any = ()) -> None:
        super().__init__()
        self.code, self.name, self.device, self.cpus = code, name, device, list(cpus)

    def run(self, tensors: Mapping[str, Any]) -> list[Any]:
        if not isinstance(self.code, hr.Module):
            return [hr.nd.array(self.code(*(tensor.numpy() for tensor in tensors.values())))]
        executor = graph_executor.GraphModule(self.code["default"](self.device))
        executor.run(**tensors)
        outputs = [executor.get_output(i) for i in range(executor.get_num_outputs())]
        return [output.copyto(output.device) for output in outputs]


class Graph(Ports):
    """Runs the stages one after another, in the order in which they were made."""

    made: list[Graph] = []

    def __init__(self) -> None:
        super().__init__()
        self.stages: list[Stage] = []
        self.params: dict[tuple[str, str], Port] = {}
        self.param_values: dict[tuple[str, str], Any] = {}
        self.is_held = self.is_stopped = False
        self.max_inflight, self.open_tickets = 0, 0
        Graph.made.append(self)

    def stage(self, code: Any, **where: Any) -> Stage:
        self.stages.append(Stage(code, **where))
        return self.stages[-1]

    def param(self, group: str, name: str, value: Any = None) -> Port:
        if value is not None:
            self.param_values[group, name] = value
        return self.params.setdefault((group, name), Port(self, (group, name)))

    def set_params(self, group: str, values: Mapping[str, Any]) -> None:
        assert all((group, name) in self.params for name in values)
        self.param_values.update({(group, name): value for name, value in values.items()})

    def build(self, max_inflight: int) -> Graph:
        self.max_inflight = max_inflight
        return self

    def submit(self, inputs: Mapping[str, Any]) -> Ticket:
        assert inputs.keys() == self.inputs.keys(), (inputs.keys(), self.inputs.keys())
        assert self.open_tickets < self.max_inflight, "a real pipeline would wait here for ever"
        self.open_tickets += 1
        return Ticket(self, {**inputs, **self.param_values})

    def results(self, inputs: Mapping[str, Any]) -> list[Any]:
        values: dict[Any, Any] = {(id(self), name): value for name, value in inputs.items()}
        for stage in self.stages:
            fed = {name: port.source for name, port in stage.inputs.items()}
            outputs = stage.run({name: values[id(source.owner), source.name] for name, source in fed.items()})
            values.update({(id(stage), i): output for i, output in enumerate(outputs)})
        return [values[id(port.source.owner), port.source.name] for port in self.outputs.values()]

    def stop(self) -> None:
        self.is_stopped = True


class Ticket:
    def __init__(self, graph: Graph, inputs: Mapping[str, Any]) -> None:
        self.graph, self.inputs, self.is_done = graph, inputs, False

    def outputs(self, timeout: float | None = None) -> list[Any]:
        """The outputs, each time; the request leaves the pipeline at the first."""
        if self.graph.is_held:
            assert timeout is not None, "would wait for ever"
            raise TimeoutError("the stand-in is held")
        self.graph.open_tickets -= not self.is_done
        self.is_done = True
        return self.graph.results(self.inputs)


def stand_in() -> types.ModuleType:
    """The module that takes the place of headrace.pipeline."""
    Graph.made.clear()
    made = types.ModuleType("headrace.pipeline")
    made.Graph = Graph
    return made


def data(start: float = 0.0) -> np.ndarray:
    return np.arange(start, start + 9, dtype="float32").reshape(SHAPE)
