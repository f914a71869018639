"""Graphs of nodes as TVM's save_json writes them: types, variables, ops, scalars and lists of these.

A graph is a list of nodes that name each other by their places in it; place 0 is nothing. Each node has a kind and
attributes, all of them texts. Kinds are read by their names of TVM 0.6 and of later versions.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from headrace import _core, _node

_WHERE = "load_json: JSON of TVM's save_json"


def _fail(told: str) -> Any:
    raise _core.UserError(f"{_WHERE}: {told}")


def recognise(text: object) -> bool:
    """Whether a text is a graph of nodes as TVM's save_json writes it, or ends with one, as its metadata does."""
    return isinstance(text, str) and any(key in text for key in ('"b64ndarrays"', '"tvm_version"'))


class _Place(int):
    """The place of a node that an attribute names."""


class _Kind:
    """How nodes of a kind are made.

    Parameters
    ----------
    make : function
        Of the attributes by name: texts as they are, numbers, and nodes where `places` has the name.
    places : str
        Attributes that name a node.
    numbers : str
        Attributes that are integers.
    texts : str
        The others.
    """

    def __init__(self, make: Callable[..., Any], places: str = "", numbers: str = "", texts: str = "") -> None:
        self.make = make
        self.places, self.numbers, self.texts = places.split(), numbers.split(), texts.split()

    def read(self, attributes: dict[str, str], node: str) -> dict[str, Any]:
        read: dict[str, Any] = {}
        for name in (*self.places, *self.numbers, *self.texts):
            if name not in attributes:
                continue
            text = attributes[name]
            if name in self.texts:
                read[name] = text
                continue
            try:
                read[name] = (_Place if name in self.places else int)(text)
            except (TypeError, ValueError):
                _fail(f"{node}: {name} is not an integer: {text!r}")
        return read


def _same(key: str) -> Callable[..., Any]:
    return lambda **fields: _node.make(key, {k: v for k, v in fields.items() if v is not None})


def _type_variable(key: str) -> Callable[..., Any]:
    def make(kind: int = 0, name_hint: str = "", var: Any = None) -> Any:
        return _node.make(key, {"name_hint": name_hint if var is None else var.name_hint, "kind": kind})

    return make


def _relay_variable(vid: Any = None, type_annotation: Any = None) -> Any:
    named = {"name_hint": vid if isinstance(vid, str) else _fail("a relay.Var without a relay.Id")}
    return _node.make("relay.Var", named if type_annotation is None else {**named, "type_annotation": type_annotation})


def _tensor_type(shape: Any = (), dtype: str = "float32") -> Any:
    dims = [dim.value if hasattr(dim, "value") else dim for dim in shape or ()]
    return _node.make("relay.TensorType", {"shape": dims, "dtype": dtype})


_TYPE_VARIABLE = {"places": "var", "numbers": "kind", "texts": "name_hint"}
_KINDS = {
    "TypeVar": _Kind(_type_variable("relay.TypeVar"), **_TYPE_VARIABLE),
    "GlobalTypeVar": _Kind(_type_variable("relay.GlobalTypeVar"), **_TYPE_VARIABLE),
    "IncompleteType": _Kind(_same("relay.IncompleteType"), numbers="kind"),
    "TensorType": _Kind(_tensor_type, places="shape", texts="dtype"),
    "TupleType": _Kind(_same("relay.TupleType"), places="fields"),
    "FuncType": _Kind(_same("relay.FuncType"), places="arg_types ret_type type_params type_constraints"),
    "RefType": _Kind(_same("relay.RefType"), places="value"),
    "GlobalVar": _Kind(_same("relay.GlobalVar"), texts="name_hint"),
    "Var": _Kind(_relay_variable, places="vid type_annotation"),
    "Id": _Kind(lambda name_hint: name_hint, texts="name_hint"),
    "IntImm": _Kind(_same("ir.IntImm"), numbers="value", texts="dtype"),
    "tir.Var": _Kind(
        lambda name, dtype: _node.make("tir.Var", {"name_hint": name, "dtype": dtype}), texts="name dtype"
    ),
    "Any": _Kind(lambda: _node.make("ir.Any", {"dtype": "int64"})),
}
# Kinds by the names that later versions and 0.6 give them, where these are not "relay." and one of the above.
_OTHER_NAMES = {
    "RelayRefType": "RefType",
    "Variable": "tir.Var",
    "SizeVar": "tir.Var",
    "tir.SizeVar": "tir.Var",
    "tir.Any": "Any",
}


def _kind_of(key: str, node: str) -> _Kind:
    name = _OTHER_NAMES.get(key, key)
    if name not in _KINDS:
        name = name.removeprefix("relay.")
    if name in _KINDS:
        return _KINDS[name]
    return _fail(
        f"{node} is a {key}, and only types, variables, ops, scalars and lists of them are read; write a program as "
        "text there (mod.astext()), which relay.parse reads, and its parameters by relay.save_param_dict"
    )


class _Graph:
    """The nodes of a text, made when they are asked for."""

    def __init__(self, nodes: list[Any], find_op: Callable[[str], Any]) -> None:
        self.nodes, self.find_op = nodes, find_op
        self.made: dict[int, Any] = {0: None}
        self.begun: set[int] = set()

    def at(self, root: int) -> Any:
        """The node at a place. Those that it needs are made first, one after another."""
        stack = [root]
        while stack:
            place = stack[-1]
            if place in self.made:
                stack.pop()
                continue
            key, fields = self._fields(place)
            needed = [part for part in _places_in(fields) if part not in self.made]
            if needed and place in self.begun:
                _fail(f"node {place} is part of itself")
            self.begun.add(place)
            stack += needed
            if not needed:
                self.made[place] = self._make(key, fields, place)
        return self.made[root]

    def _fields(self, place: int) -> tuple[str, Any]:
        """The key of the node at a place, and its attributes, or the list that it is."""
        if not 0 <= place < len(self.nodes) or not isinstance(self.nodes[place], dict):
            _fail(f"there is no node {place}")
        node = self.nodes[place]
        key, told = str(node.get("type_key", "")), f"node {place}"
        if key == "Array":
            data = node.get("data", [])
            if not isinstance(data, list) or not all(isinstance(item, int) for item in data):
                _fail(f"{told} is not a list of places: {data!r}")
            return key, [_Place(item) for item in data]
        if key in ("Op", "relay.Op"):
            return "Op", str(node.get("global_key", node.get("repr_str", "")))
        attributes = node.get("attrs", {})
        if not isinstance(attributes, dict):
            _fail(f"{told} has no attributes by name: {attributes!r}")
        return key, _kind_of(key, told).read(attributes, told)

    def _make(self, key: str, fields: Any, place: int) -> Any:
        if key == "Op":
            return self.find_op(fields)
        if key == "Array":
            return [self.made[item] for item in fields]
        values = {name: self.made[v] if isinstance(v, _Place) else v for name, v in fields.items()}
        try:
            return _kind_of(key, f"node {place}").make(**values)
        except (TypeError, AttributeError) as error:  # an attribute is missing, or names a node of another kind
            return _fail(f"node {place}, a {key}: {error}")


def _places_in(fields: Any) -> list[int]:
    if isinstance(fields, str):
        return []
    return [int(v) for v in (fields if isinstance(fields, list) else fields.values()) if isinstance(v, _Place)]


def read(text: str, find_op: Callable[[str], Any]) -> Any:
    """The node that is the root of a text of TVM's save_json.

    Parameters
    ----------
    text : str
        The text.
    find_op : function
        Gives the op of a name.

    Returns
    -------
    Object or list of them

    Raises
    ------
    UserError
        For a text that is damaged, and one with nodes of other kinds.
    """
    try:
        graph = json.loads(text)
        nodes, root = graph["nodes"], graph["root"]
    except (ValueError, TypeError, KeyError) as error:
        return _fail(f"it is damaged: {error}")
    if not isinstance(nodes, list) or not isinstance(root, int):
        _fail("it is damaged: it has no list of nodes and no root")
    return _Graph(nodes, find_op).at(root)
