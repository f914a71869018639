"""Which node each stage runs on: labels and resources of Ray's nodes, from a dict or a plan file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from headrace import _arguments
from headrace._core import UserError
from headrace.ray._package import ray_package

__all__: list[str] = []

# An actor takes so little of a resource that the resource only says where it may run.
_SHARE = 0.001


@dataclass(frozen=True)
class Place:
    """The labels that a node has, or the resource; neither: any node."""

    labels: tuple[tuple[str, str], ...] = ()
    resource: str = ""

    def options(self) -> dict[str, Any]:
        """The options of an actor that runs there."""
        if self.resource:
            return {"resources": {self.resource: _SHARE}}
        return {"label_selector": dict(self.labels)} if self.labels else {}

    def __str__(self) -> str:
        if self.resource:
            return f"a node with the resource '{self.resource}'"
        labels = ", ".join(f"{key}={value}" for key, value in self.labels)
        return f"a node with the label {labels}" if labels else "any node"


def read_places(nodes: Mapping[str, Any] | str | PathLike[str] | None, stages: Sequence[str]) -> dict[str, Place]:
    """The place of each stage that `nodes` names: a dict, or the path of a JSON file {"nodes": {...}}.

    Raises
    ------
    UserError
        For a file that cannot be read, a stage that does not exist, and what is neither labels nor a resource.
    """
    if nodes is None:
        return {}
    what = "nodes"
    if isinstance(nodes, (str, PathLike)):
        what = f"plan file '{nodes}'"
        nodes = _read_plan(_arguments.path(nodes, "nodes"), what)
    given = _arguments.mapping(nodes, what, 'nodes={"first": {"pool": "front"}}')
    unknown = [str(name) for name in given if name not in stages]
    if unknown:
        raise UserError(f"{what}: the pipeline has no stage {', '.join(unknown)}; it has {', '.join(stages)}")
    return {name: _place_of(value, f"{what}: stage '{name}'") for name, value in given.items()}


def _read_plan(path: str, what: str) -> Any:
    try:
        plan = json.loads(Path(path).read_text())
    except OSError as error:
        raise UserError(f"{what} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UserError(f"{what} is not JSON: {error}") from None
    if not isinstance(plan, dict) or not isinstance(plan.get("nodes"), dict):
        raise UserError(f'{what} has no "nodes"; it is written {{"nodes": {{"first": {{"pool": "front"}}}}}}')
    return plan["nodes"]


def _place_of(value: Any, what: str) -> Place:
    if isinstance(value, str) and value:
        key, equals, label = value.partition("=")
        return Place(labels=((key, label),)) if equals else Place(resource=value)
    if isinstance(value, Mapping) and value and all(isinstance(text, str) for pair in value.items() for text in pair):
        return Place(labels=tuple(sorted(value.items())))
    raise UserError(f'{what}: expected labels such as {{"pool": "front"}} or "pool=front", or the name of a resource')


def known_nodes() -> str:
    """The labels and resources of the living nodes, for messages."""
    texts = sorted(_node_text(node) for node in ray_package().nodes() if node["Alive"])
    return "; ".join(f"node {number}: {text}" for number, text in enumerate(texts))


def _node_text(node: Mapping[str, Any]) -> str:
    labels = [f"{key}={value}" for key, value in node.get("Labels", {}).items() if not key.startswith("ray.io/")]
    own = ("node:", "object_store_memory", "memory", "CPU")
    resources = sorted(name for name in node["Resources"] if not name.startswith(own))
    return f"labels {', '.join(labels) or 'none'}, resources {', '.join(resources) or 'none'}"
