"""Every public function says what it does and what its parameters are."""

import inspect

import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")

MODULES = [hr, hr.ir, hr.nd, hr.runtime, hr.target, hr.te, hr.tir, hr.transform, hr.instrument]
MODULES += [hr.relay, hr.relay.op, hr.relay.analysis, hr.relay.transform, hr.relay.nn, hr.relay.image]


def public_functions():
    """(name, function) of each."""
    for module in MODULES:
        for name, value in vars(module).items():
            if inspect.isfunction(value) and not name.startswith("_") and value.__module__.startswith("headrace"):
                yield f"{module.__name__}.{name}", value


@pytest.mark.parametrize(("name", "function"), sorted(public_functions(), key=lambda row: row[0]))
def test_a_function_is_documented(name, function):
    assert function.__doc__, name
    signature = inspect.signature(function)
    parameters = [parameter for parameter in signature.parameters if parameter not in ("span", "args", "options")]
    refers = "as `" in function.__doc__.lower() or "of `" in function.__doc__
    if len(parameters) > 1 and not refers:
        assert "Parameters\n" in function.__doc__, name
        assert signature.return_annotation == "None" or "Returns\n" in function.__doc__, name
