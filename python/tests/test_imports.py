"""Texts and modules that take other texts in, and what a module knows of its texts."""

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import ir, relay  # noqa: E402
from headrace.relay import testing  # noqa: E402

HEAD = '#[version = "0.0.5"]\n'


@pytest.fixture
def folder(tmp_path):
    def write(name, text):
        (tmp_path / name).write_text(HEAD + text)

    write("lib.rly", 'import "prelude.rly"\nimport "more.rly"\ndef @two() { @both(1) }')
    write("more.rly", 'import "prelude.rly"\ndef @both(%x: int32) -> List[int32] { Cons(%x, Cons(%x, Nil)) }')
    return tmp_path


def test_a_text_imports_files_of_folders_that_it_is_given(folder):
    text = HEAD + 'import "lib.rly"\ndef @main() { @length(@two()) }'
    mod = relay.parse(text, import_paths=[folder])
    assert relay.create_executor(mod=mod).evaluate()().numpy() == 2
    assert set(mod.source_map.source_map) == {
        "from_string",
        "prelude.rly",
        str(folder / "lib.rly"),
        str(folder / "more.rly"),
    }
    assert relay.fromtext(text, import_paths=[str(folder)])["main"].body.op.name_hint == "length"
    with pytest.raises(hr.UserError, match=r"from_string:2:8: there is no text 'lib.rly' .*\(import_paths\)"):
        relay.parse(text)
    with pytest.raises(hr.UserError, match="lies outside the folders"):
        relay.parse(HEAD + f'import "{folder / "lib.rly"}"', import_paths=[folder / "elsewhere"])
    with pytest.raises(hr.UserError, match=r"import_paths: expected a list of folders, got one; write \["):
        relay.parse(text, import_paths=str(folder))
    with pytest.raises(hr.UserError, match="import_paths: expected a path"):
        relay.parse(text, import_paths=[1])


def test_a_module_imports_a_file(folder, monkeypatch):
    mod = hr.IRModule()
    mod._import(folder / "lib.rly")
    assert "two" in mod
    assert "both" in mod
    before = mod.functions
    monkeypatch.chdir(folder)
    mod._import("more.rly")
    assert ir.structural_equal(mod.functions, before)
    with pytest.raises(hr.UserError, match="there is no file"):
        mod._import(folder / "none.rly")


def test_an_import_replaces_nothing_of_the_users():
    x = relay.var("x", shape=(2,))
    mine = relay.Function([x], relay.exp(x))
    mod = hr.IRModule({"sum": mine, "other": mine})
    for take in (relay.prelude.Prelude, lambda mod: mod.import_from_std("prelude.rly")):
        with pytest.raises(hr.UserError, match=r"another definition .* '@sum' \(.*prelude.rly:\d+:1\); rename one"):
            take(mod)
        assert [var.name_hint for var in mod.functions] == ["sum", "other"]
        assert not mod.type_definitions
    known = "there are core.rly, gradient.rly, nat.rly, prelude.rly"
    with pytest.raises(hr.UserError, match=f"no text 'none.rly' to import; {known}"):
        mod.import_from_std("none.rly")


def test_a_constructor_is_known_by_its_name():
    mod = relay.prelude.Prelude().mod
    for given in (3, "List"):
        with pytest.raises(hr.UserError, match=r"as mod\.get_constructor\('List', 'Cons'\); .*\[1 \+ tag\]"):
            mod.get_constructor(given)


def test_what_is_imported_again_stays():
    mod = relay.prelude.Prelude().mod
    cons = mod.get_constructor("List", "Cons")
    mod = relay.transform.InferType()(mod)
    mod.import_from_std("nat.rly")  # which imports the prelude
    mod.import_from_std("prelude.rly")
    assert mod.get_constructor("List", "Cons").same_as(cons)


def test_a_module_knows_its_texts():
    text = HEAD + "def @main(%x: Tensor[(2), float32]) { exp(%x) }"
    mod = relay.parse(text, "model.relay")
    source = mod.source_map.source_map["model.relay"]
    assert (source.source_name, source.source) == ("model.relay", text)
    assert repr(mod.source_map) == "SourceMap(model.relay)"
    assert repr(source) == f"Source('model.relay', {len(text)} characters)"
    again = relay.parse(text, "other")
    ir.assert_structural_equal(mod, again)
    mod.update(again)
    assert list(mod.source_map.source_map) == ["model.relay", "other"]
    assert list(relay.transform.InferType()(mod).with_attr("a", 1).source_map.source_map) == ["model.relay", "other"]
    assert not hr.IRModule().source_map.source_map


def test_an_expression_becomes_a_function_of_its_free_variables():
    x = relay.var("x", shape=(2,))
    mod = hr.IRModule({"f": relay.exp(x)})
    mod["g"] = relay.log(x)
    mod["pair"] = relay.split(x, 2)
    mod.Add("h", relay.const(1.0))
    assert mod["f"].params == mod["g"].params == [x]
    assert mod["h"].params == []
    assert isinstance(mod["pair"], relay.Function)
    for value in (3, None, "exp"):
        with pytest.raises(hr.UserError, match="function 'g': expected an expression, got "):
            mod["g"] = value


def test_natural_numbers():
    p = relay.prelude.Prelude()
    testing.add_nat_definitions(p)
    run = relay.create_executor(mod=p.mod).evaluate
    for n in (0, 3, 1000):
        assert testing.count(p, testing.make_nat_value(p, n)) == n
        assert testing.count(p, run(testing.make_nat_expr(p, n))) == n
    assert testing.count(p, run(p.nat_add(testing.make_nat_expr(p, 2), testing.make_nat_expr(p, 3)))) == 5
    assert testing.count(p, run(p.nat_double)(testing.make_nat_value(p, 4))) == 8
    cons, nil = p.get_ctor("List", "Cons"), p.get_ctor("List", "Nil")
    assert run(p.nat_nth(cons(relay.const(5), nil()), testing.make_nat_expr(p, 0))).numpy() == 5
    with pytest.raises(hr.UserError, match="count: expected a value of type nat"):
        testing.count(p, run(nil()))


def test_small_helpers():
    assert hr.testing.enabled_targets() == testing.enabled_targets() == [("llvm", hr.cpu())]
    a = testing.rand("float32", 2, 3)
    assert (a.shape, a.dtype) == ((2, 3), "float32")
    assert not np.array_equal(a.numpy(), testing.rand("float32", 2, 3).numpy())


def test_a_file_of_text_imports_from_its_folder(tmp_path):
    (tmp_path / "lib.rly").write_text(HEAD + "def @twice(%x: Tensor[(2), float32]) { add(%x, %x) }")
    model = tmp_path / "model.relay"
    model.write_text(HEAD + 'import "lib.rly"\ndef @main(%x: Tensor[(2), float32]) { @twice(%x) }')
    run = hr.compile(str(model))
    np.testing.assert_array_equal(run(np.ones(2, "float32")), [2, 2])
    with pytest.raises(hr.UserError, match=r"lib\.rly"):
        hr.compile(str(model), output=tmp_path / "lib.rly")
