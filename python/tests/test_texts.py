"""Texts: what TVM's say in other words, what a reader is given beside them, comments that users add."""

import headrace as hr
import numpy as np
import pytest
from headrace import ir, relay, target

HEAD = '#[version = "0.0.5"]\n'
SPLIT = HEAD + "def @main(%x: Tensor[(6), float32]) {{ split(%x, indices_or_sections={}) }}"
PAIR = "type Pair { Both(int32, int32), }\ndef @first(%p: Pair[]) { match (%p) { Both(%a, _) => %a } }"


def _infer(mod):
    return relay.transform.InferType()(mod)


@pytest.mark.parametrize("given", [[1, 2], (1, 2), (np.int64(1), np.int32(2)), np.array([1, 2])])
def test_positions_of_split_have_one_form(given):
    text = _infer(relay.parse(SPLIT.format("[1i64, 2]")))
    made = relay.split(relay.var("x", shape=(6,)), given)
    assert len(made) == 3
    made = _infer(hr.IRModule.from_expr(made.astuple()))
    ir.assert_structural_equal(made, text)
    assert ir.structural_hash(made) == ir.structural_hash(text)
    assert list(made["main"].body.attrs.indices_or_sections) == [1, 2]


@pytest.mark.parametrize("given", [3, np.int64(3), np.uint8(3)])
def test_numbers_of_parts_have_one_form(given):
    text = _infer(relay.parse(SPLIT.format("3i64")))
    made = relay.split(relay.var("x", shape=(6,)), given)
    assert len(made) == 3
    made = _infer(hr.IRModule.from_expr(made.astuple()))
    ir.assert_structural_equal(made, text)
    assert ir.structural_hash(made) == ir.structural_hash(text)
    assert made["main"].body.attrs.indices_or_sections == 3


@pytest.mark.parametrize("given", [True, [True], 2.0, [1.0], "2", None, ["1"]])
def test_other_sections_are_refused(given):
    with pytest.raises(hr.UserError, match="indices_or_sections"):
        relay.split(relay.var("x", shape=(6,)), given)


@pytest.mark.parametrize("none", ["", "void", None])
def test_a_dtype_that_is_none_is_the_datas(none):
    x, w = relay.var("x", shape=(1, 2, 4, 4)), relay.var("w", shape=(2, 2, 3, 3))
    ir.assert_structural_equal(relay.nn.conv2d(x, w, out_dtype=none), relay.nn.conv2d(x, w), map_free_vars=True)
    resized = relay.image.resize2d(x, (2, 2), out_dtype=none)
    ir.assert_structural_equal(resized, relay.image.resize2d(x, (2, 2)), map_free_vars=True)
    assert resized.attrs.out_dtype is None


def test_the_rank_of_indices_is_checked_when_it_runs():
    text = "def @main(%x: Tensor[(3, 4), float32], %i: Tensor[(?, 2), int64]) { gather_nd(%x, %i, index_rank=2) }"
    run = relay.create_executor("debug", mod=relay.parse(HEAD + text)).evaluate()
    x = np.arange(12, dtype="float32").reshape(3, 4)
    assert run(x, np.array([[2, 1], [3, 0]])).numpy().tolist() == [11, 4]
    with pytest.raises(hr.UserError, match="index_rank"):
        run(x, np.array([[2, 1]]))


def test_an_initial_module_is_known_to_the_text():
    library = relay.parse(HEAD + PAIR, "library")
    before = library.astext()
    mod = relay.parse(f"{HEAD}def @main() {{ @first(Both(3, 4)) }}", "from_string", library)
    assert [var.name_hint for var in mod.get_global_vars()] == ["first", "main"]
    assert library.astext() == before
    assert sorted(mod.source_map.source_map) == ["from_string", "library"]
    assert relay.create_executor("debug", mod=mod).evaluate()().numpy() == 3
    ir.assert_structural_equal(mod["first"], library["first"])


def test_an_initial_module_has_the_prelude_that_the_text_imports():
    library = relay.parse(f'{HEAD}import "prelude.rly"\ndef @two() {{ Cons(1, Cons(2, Nil)) }}', "library")
    mod = relay.parse(f'{HEAD}import "prelude.rly"\ndef @main() {{ @hd(@two()) }}', init_module=library)
    assert relay.create_executor("debug", mod=mod).evaluate()().numpy() == 1


def test_names_of_an_initial_module_are_taken():
    library = relay.parse(f"{HEAD}type T {{ A, }}\ndef @f() {{ 1 }}", "library")
    with pytest.raises(hr.UserError) as told:
        relay.parse(f"{HEAD}def @f() {{ 2 }}", init_module=library)
    assert str(told.value) == (
        "from_string:2:5: the function '@f' is defined twice; the first is at library:3:1\n  def @f() { 2 }\n      ^^"
    )
    with pytest.raises(hr.UserError, match="the type 'T' is defined twice; the first is at library:2:1"):
        relay.parse(f"{HEAD}type T {{ B, }}", init_module=library)
    with pytest.raises(hr.UserError, match="init_module: expected an IRModule, got str"):
        relay.parse(HEAD, init_module="library")


def test_a_meta_table_holds_constants_and_devices():
    text = (
        f"{HEAD}def @main(%x {{virtual_device=meta[VirtualDevice][0]}}: Tensor[(2), float32]) {{\n"
        "  on_device(add(%x, meta[relay.Constant][1]), virtual_device=meta[VirtualDevice][1])\n}"
    )
    numbers = [relay.const(np.arange(3)), np.array([1, 2], "float32")]
    devices = [target.VirtualDevice(hr.device("cuda", 1)), "cpu"]
    mod = relay.parse(text, init_meta_table={"relay.Constant": numbers, "VirtualDevice": devices})
    call = mod["main"].body
    assert call.attrs.virtual_device == "cpu:0"
    assert (call.args[0].args[1].data.numpy() == [1, 2]).all()
    assert list(mod["main"].attrs["param_virtual_devices"]) == ["cuda:1"]
    ir.assert_structural_equal(relay.parse(mod.astext()), mod)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"relay.Var": [1]}, "init_meta_table: relay.Var: expected nodes, got int"),
        ({"VirtualDevice": [3]}, "init_meta_table: expected VirtualDevice, got int"),
        ({"relay.Constant": [1], "VirtualDevice": ["warp"]}, "'warp' in 'warp' is not a kind of device"),
        ({"VirtualDevice": "cpu"}, "init_meta_table: VirtualDevice: expected a list, got str"),
        ({"relay.Constant": [relay.var("x")]}, "init_meta_table: relay.Constant: expected tensors, got Var"),
        ([], "init_meta_table: expected a dict, got list"),
        ({"relay.Constant": []}, "there is no data for constant 0: the text has 0"),
    ],
)
def test_meta_tables_that_are_none_are_told(table, message):
    text = f"{HEAD}def @main() {{ on_device(meta[relay.Constant][0], virtual_device=meta[VirtualDevice][0]) }}"
    with pytest.raises(hr.UserError, match="^.*" + message.replace("[", r"\[")):
        relay.parse(text, init_meta_table=table)


def test_constants_are_not_given_twice():
    large = hr.IRModule.from_expr(relay.const(np.arange(64.0)))
    with pytest.raises(hr.UserError, match="holds the data of its constants itself"):
        relay.parse(large.astext(), init_meta_table={"relay.Constant": [np.arange(64.0)]})


def test_texts_are_read_by_name():
    assert relay.fromtext(source="def @main() { 1 }", source_name="mine")["main"].span.source_name == "mine"
    assert relay.parse(source=f"{HEAD}def @main() {{ 1 }}", source_name="mine")["main"].span.source_name == "mine"
    with pytest.raises(hr.UserError, match="source_name: expected a str, got int"):
        relay.parse(HEAD, 3)


def test_users_comments_stand_behind_expressions():
    mod = relay.parse(f"{HEAD}def @main(%x: int32) {{ let %y = negative(%x); (abs(%y), %x + 1).0 }}")
    seen = []

    def annotate(expr):
        seen.append(type(expr).__name__)
        if isinstance(expr, relay.Call):
            return {"negative": "one", "abs": " /* two\n */ ", "add": "a */ b /* c /*/ d"}[expr.op.name]
        return None if isinstance(expr, relay.Tuple) else ""

    text = mod.astext(True, annotate)
    assert text == (
        f"{HEAD}def @main(%x: int32) -> int32 {{\n"
        "  let %y = negative(%x) /* one */;\n"
        "  %0 = abs(%y) /* two */;\n"
        "  %1 = add(%x, 1) /* a * / b / * c / * / d */;\n"
        "  %2 = (%0, %1);\n"
        "  %2.0\n}\n"
    )
    assert seen == ["Call", "Call", "Call", "Tuple", "TupleGetItem"]
    ir.assert_structural_equal(relay.parse(text), mod)
    assert relay.astext(mod, annotate=annotate) == text
    typed = _infer(mod)["main"].body.value
    assert typed.astext(annotate=lambda _: "here", show_types=True).endswith("negative(%x) /* ty=int32 */ /* here */\n")


def test_answers_that_are_no_comments_are_told():
    with pytest.raises(hr.UserError, match="astext: annotate gave int, expected a str"):
        relay.negative(relay.var("x")).astext(annotate=lambda _: 3)
    with pytest.raises(ZeroDivisionError):
        relay.negative(relay.var("x")).astext(annotate=lambda _: 1 / 0)


def test_a_text_gets_the_types_of_results():
    """As Relay's parser, also of functions inside; a text that inference refuses stays as it is written."""
    mod = relay.parse(f"{HEAD}def @main(%x: int32) {{ let %f = fn (%y: int32) {{ %y + %x }}; (%f(%x), %x) }}")
    integer = relay.TensorType((), "int32")
    assert mod["main"].ret_type == relay.TupleType([integer, integer])
    assert mod["main"].body.value.ret_type == integer
    assert relay.parse(f"{HEAD}def @main(%x: int32) {{ exp(%x) }}")["main"].ret_type is None
    assert relay.fromtext("def @main(%x: int32) { %x }")["main"].ret_type == integer
