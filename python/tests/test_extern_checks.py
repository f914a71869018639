"""Checks of ops for other compilers: modules of `relay.op.contrib`, and `get_extern_op`."""

import headrace as hr
import pytest
from headrace import relay

CHECKS = '''
"""Checks of a compiler."""

from headrace.relay.op.contrib.register import register_extern_op


def _is_small(args):
    return len(args) < 3


def conv2d(attrs, args):
    return _is_small(args) and attrs.groups == 1


def exp(attrs, args):
    return True


register_extern_op("add", "NAME", lambda call: False)


def add(attrs, args):
    return True
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(relay.op.contrib, "__path__", [str(tmp_path)])

    def write(name):
        (tmp_path / f"{name}.py").write_text(CHECKS.replace("NAME", name))

    return write


def conv2d(groups):
    x, w = relay.var("x", shape=(1, 4, 5, 5)), relay.var("w", shape=(4, 4 // groups, 3, 3))
    return relay.nn.conv2d(x, w, kernel_size=(3, 3), groups=groups)


def compilers_in(mod):
    """The ops that are marked for a compiler."""
    marked = []

    def visit(expr):
        if (
            isinstance(expr, relay.Call)
            and expr.op.name == "annotation.compiler_end"
            and expr.attrs.compiler != "default"
        ):
            marked.append(expr.args[0].op.name)

    relay.analysis.post_order_visit(mod["main"], visit)
    return marked


def test_a_module_of_checks_is_found(folder):
    folder("found_checks")
    check = relay.op.contrib.get_extern_op("found_checks", "conv2d")
    for groups, supported in ((1, True), (2, False)):
        call = conv2d(groups)
        assert check(call.attrs, call.args) is supported
        assert relay.op.contrib.get_extern_op("found_checks", "nn.conv2d")(call.attrs, call.args) is supported
    x = relay.var("x", shape=(2,))
    assert relay.op.contrib.get_extern_op("found_checks", "add")(None, [x, x]) is False  # the registered answer counts
    assert relay.op.contrib.get_extern_op("found_checks", "exp")(None, [x]) is True


def test_annotating_finds_the_module(folder):
    folder("annotated_checks")
    mod = hr.IRModule.from_expr(relay.exp(relay.nn.relu(conv2d(1))))
    mod = relay.transform.AnnotateTarget("annotated_checks")(relay.transform.InferType()(mod))
    assert compilers_in(mod) == ["nn.conv2d", "exp"]


def test_compiles_find_the_module(folder, tmp_path, capsys):
    for name, compile_module in (
        ("brought_checks", lambda mod: hr.compile(mod, backends=["brought_checks"])),
        ("compiled_checks", lambda mod: hr.compile(mod, backends=["compiled_checks"])),
        ("built_checks", lambda mod: relay.build(mod, ["llvm", "built_checks"])),
    ):
        folder(name)
        if name == "brought_checks":  # the module brings its compiler
            with (tmp_path / f"{name}.py").open("a") as file:
                file.write(f"\n\nimport headrace\n\nheadrace.register_func('relay.ext.{name}', print)\n")
        else:
            hr.register_func(f"relay.ext.{name}", print)
        with pytest.raises(hr.UserError, match=f"the function relay.ext.{name} returned no module for the region"):
            compile_module(hr.IRModule.from_expr(relay.exp(relay.nn.relu(conv2d(1)))))
        assert "nn.conv2d" in capsys.readouterr().out


@pytest.mark.backends("ccompiler")
def test_backends_say_themselves_what_they_compute():
    x = relay.var("x", shape=(2, 3))
    mod = relay.transform.InferType()(hr.IRModule.from_expr(relay.nn.softmax(relay.exp(x))))
    assert compilers_in(relay.transform.AnnotateTarget(["ccompiler"])(mod)) == ["exp"]


def test_nothing_is_supported_where_nothing_says_so():
    x = relay.var("x", shape=(2,))
    for compiler, op in (("nobody_checks", "exp"), ("nobody_checks", "no_such_op"), ("no name", "exp")):
        assert relay.op.contrib.get_extern_op(compiler, op)(None, [x]) is False


def test_a_module_that_fails_says_why(folder, tmp_path):
    (tmp_path / "broken_checks.py").write_text("import nothing_of_that_name\n")
    with pytest.raises(ModuleNotFoundError, match="nothing_of_that_name"):
        relay.transform.AnnotateTarget("broken_checks")
