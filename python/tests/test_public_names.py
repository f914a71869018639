"""Tests the names in the package's modules: public names, of modules that users know, and no import of theirs."""

import importlib
import pkgutil
import subprocess
import sys
import types
from pathlib import Path

import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import relay  # noqa: E402


def is_public(name: str) -> bool:
    return not any(part.startswith("_") for part in name.split("."))


def public_modules():
    """By name; each is there when the package is imported, but for programs."""
    for found in pkgutil.walk_packages(hr.__path__, "headrace."):
        importlib.import_module(found.name)
    names = [name for name in sys.modules if name.split(".")[0] == "headrace" and is_public(name)]
    assert len(names) > 40
    return sorted(names)


@pytest.mark.parametrize("name", public_modules())
def test_a_module_shows_public_names_only(name):
    module = sys.modules[name]
    shown = dir(module)
    assert shown, name
    assert [n for n in shown if n.startswith("_") and n != "__version__"] == []
    assert set(module.__all__) <= set(shown)
    for shown_name in shown:
        value = getattr(module, shown_name)
        if isinstance(value, types.ModuleType):
            assert value.__name__.startswith("headrace") and is_public(value.__name__), shown_name
        elif isinstance(value, (type, types.FunctionType)):
            assert value.__module__.startswith("headrace"), f"{shown_name} is of {value.__module__}"
            assert is_public(value.__module__), f"{shown_name} is of {value.__module__}"


@pytest.mark.parametrize("name", public_modules())
def test_what_a_module_shows_is_where_it_says(name):
    for shown in sys.modules[name].__all__:
        value = getattr(sys.modules[name], shown)
        if isinstance(value, (type, types.FunctionType)) and not hasattr(value, "schema"):
            home = sys.modules[value.__module__]
            assert getattr(home, value.__name__, None) is value, f"{shown} is not {home.__name__}.{value.__name__}"


def test_inner_names_that_were_shown_once():
    assert "api" not in dir(hr.instrument)
    assert "Any" not in dir(relay.transform)
    assert {"FoldConstant", "Sequential", "InferTypeLocal"} <= set(dir(relay.transform))
    assert {"conv2d", "global_max_pool1d"} <= set(dir(relay.nn))
    assert {"add", "std", "nn", "var", "CallWithFields"} <= set(dir(relay))
    assert {"register", "nn", "add", "std"} <= set(dir(relay.op))
    assert {"add", "std"} <= set(dir(relay.op.tensor))
    assert "nn" not in dir(relay.op.tensor)
    assert set(hr.tir.__all__) <= set(dir(hr.te))
    assert (relay.var.__module__, hr.NDArray.__module__, hr.tir.exp.__module__, relay.ScopeBuilder.__module__) == (
        "headrace.relay",
        "headrace",
        "headrace.tir",
        "headrace.relay",
    )


def test_ops_of_users_are_shown_too():
    relay.op.register("test_public.family.twice", override=True)
    assert "test_public" in dir(relay)
    assert "test_public" in dir(relay.op)
    assert "family" in dir(relay.test_public)
    assert "twice" in dir(relay.test_public.family)


def test_stubs_show_what_modules_show():
    folder = Path(hr.__file__).parent
    text = (folder / "instrument.pyi").read_text()
    assert "def pass_instrument(" in text
    assert "import api" not in text
    text = (folder / "relay/__init__.pyi").read_text()
    assert "from headrace.relay._build_ir import var as var\n" in text
    assert "from headrace._compat.relay_build import build as build\n" in text
    # So an editor finds relay.nn.dense in relay/nn.py.
    for file in ("relay/__init__.pyi", "relay/op.pyi"):
        assert "from headrace.relay import nn as nn\n" in (folder / file).read_text(), file
    assert "GraphModule as GraphModule" in (folder / "graph_executor.pyi").read_text()


def test_a_star_imports_what_is_shown():
    program = (
        "from headrace.relay.analysis import *; print('post_order_visit' in dir(), 'api' in dir(), 'Any' in dir())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False", "False"]
