"""Every public function says what it does, what it takes and what it gives; classes and methods what they do."""

import importlib
import inspect
import pkgutil
import re
import sys

import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import _node, relay  # noqa: E402

SIGNS = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


def public_values():
    """(place, value) of what the package's public modules show, each once."""
    for found in pkgutil.walk_packages(hr.__path__, "headrace."):
        importlib.import_module(found.name)
    seen = set()
    for name in sorted(sys.modules):
        if name.split(".")[0] == "headrace" and not any(part.startswith("_") for part in name.split(".")):
            for shown in dir(sys.modules[name]):
                value = getattr(sys.modules[name], shown)
                if id(value) not in seen:
                    seen.add(id(value))
                    yield f"{name}.{shown}", value


def public_functions():
    return [(place, value) for place, value in public_values() if inspect.isfunction(value)]


def public_methods():
    """(place, function) of classes and nodes, what Python adds to these as well."""
    classes = {value for _, value in public_values() if isinstance(value, type)}
    classes |= {_node.class_of(key) for key in _node.all_keys()}
    parts = {part for cls in classes for part in cls.__mro__ if part.__module__.startswith("headrace")}
    for part in sorted(parts, key=lambda part: f"{part.__module__}.{part.__qualname__}"):
        for name, member in vars(part).items():
            member = getattr(member, "__func__", member)
            of_python = isinstance(member, property) and inspect.isfunction(member.fget)
            if not name.startswith("_") and (inspect.isfunction(member) or of_python):
                yield f"{part.__module__}.{part.__qualname__}.{name}", part, name


def section(doc: str, *titles: str) -> str | None:
    """The text of the first section with one of these titles."""
    for title in titles:
        found = re.search(rf"^{title}\n-+\n(.*?)(?=^\S[^\n]*\n-+$|\Z)", doc, re.MULTILINE | re.DOTALL)
        if found:
            return found.group(1)
    return None


def documented_parameters(doc: str) -> set[str]:
    lines = (section(doc, "Parameters") or "").splitlines()
    heads = [line.partition(" : ")[0] for line in lines if line and not line.startswith(" ")]
    return {name.strip() for head in heads for name in head.split(",")}


def test_sections_are_found():
    doc = "Does.\n\nParameters\n----------\na, b : int\n    Two.\n*rest\n    More.\n\nReturns\n-------\nint\n    It."
    assert documented_parameters(doc) == {"a", "b", "*rest"}
    assert section(doc, "Yields", "Returns") == "int\n    It."
    assert section(doc, "Raises") is None


@pytest.mark.parametrize(("place", "function"), public_functions())
def test_a_function_is_documented(place, function):
    doc = inspect.getdoc(function)
    assert doc, place
    signature = inspect.signature(function)
    wanted = {SIGNS.get(parameter.kind, "") + name for name, parameter in signature.parameters.items()}
    assert wanted - documented_parameters(doc) == set(), place
    if signature.return_annotation not in ("None", None):
        assert section(doc, "Returns", "Yields"), f"{place} does not say what it gives"


def test_every_class_is_documented():
    assert [place for place, value in public_values() if isinstance(value, type) and not value.__doc__] == []


def test_every_method_is_documented():
    methods = list(public_methods())
    assert len(methods) > 200
    assert [place for place, cls, name in methods if not inspect.getdoc(getattr(cls, name))] == []


@pytest.mark.parametrize("name", relay.Op.list_op_names())
def test_an_ops_arguments_are_documented(name):
    op = relay.op.get(name)
    for argument in op.arguments:
        what, colon, meaning = argument["description"].partition(": ")
        assert argument["name"].isidentifier()
        # The shape and the dtype of a tensor, then what it is.
        assert argument["type_info"] != "Tensor" or (colon and "[" in what and meaning), (name, argument)
        assert argument["description"], (name, argument)


def test_an_ops_arguments_are_shown():
    weight = relay.op.get("nn.conv2d").arguments[1]
    told = "T[K, C / groups, ...], or in kernel_layout: the kernel"
    assert weight == {"name": "weight", "type_info": "Tensor", "description": told}
    assert (weight.name, weight.type_info, weight.description) == ("weight", "Tensor", told)
    assert "    T[K, C / groups, ...], or in kernel_layout: the kernel\n" in relay.nn.conv2d.__doc__
    assert relay.op.get("concatenate").arguments[0]["type_info"] == "Tuple of tensors"
