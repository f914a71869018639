"""Backends in Python as `explain` and `verify` show them: reasons, regions that fail, wrong answers, warnings."""

import json
import re

import headrace as hr
import numpy as np
import pytest
from headrace import relay
from headrace.__main__ import _main
from headrace.backend import Backend
from headrace.relay.dataflow_pattern import is_op, wildcard

OK, USER, MISMATCH = 0, 3, 5
PROGRAM = """#[version = "0.0.5"]
def @main(%x: Tensor[(4), float32]) { negative(tanh(exp(%x))) }
"""


class Nothing(Backend):
    """Takes no op."""

    def supports(self, call):
        return "it computes patterns only"

    def compile(self, regions, options):
        return [b"code" for _ in regions]

    def load(self, data):
        raise ValueError("it is never loaded")


def made(name: str, **members) -> str:
    hr.backend.register(type("Changed", (Nothing,), {"name": name, **members})())
    return name


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.relay"
    path.write_text(PROGRAM)
    return str(path)


def report(capfd, *words: str, code: int = OK) -> dict:
    """The JSON that a verb of the program prints."""
    assert _main([*words, "--json"]) == code, capfd.readouterr()
    return json.loads(capfd.readouterr().out)


def row_of(report: dict, kind: str) -> dict:
    (row,) = (row for row in report["placement"] if row["kind"] == kind)
    return row


def test_the_reason_of_a_patterns_check(program, capfd):
    pattern = is_op("tanh")(is_op("exp")(wildcard()))
    name = made(
        "reason_pattern",
        patterns=lambda self: [
            ("reason_pattern.wide", is_op("negative")(pattern), lambda root: False),
            ("reason_pattern.pair", pattern, lambda root: f"{root.op.name} has less than 8 elements"),
        ],
    )
    shown = report(capfd, "explain", program, "--backends", name)
    why = (
        "reason_pattern: it computes patterns only; its pattern reason_pattern.wide is refused here: its check does "
        "not say why; its pattern reason_pattern.pair is refused here: tanh has less than 8 elements"
    )
    for kind in ("tanh", "exp"):  # both are parts of the match
        assert row_of(shown, kind)["message"] == why
    (other,) = shown["graph"]["nodes"][1]["alternatives"]
    assert (other["backend"], "reason_pattern: " + other["message"]) == (name, why)
    assert "pair" not in row_of(shown, "negative")["message"]
    by_cost = report(capfd, "explain", program, "--backends", name, "--placement", "cost")
    assert row_of(by_cost, "tanh")["message"] == why


def test_a_match_that_is_taken_has_no_refusal(program, capfd):
    tanh = is_op("tanh")(is_op("exp")(wildcard()))
    name = made(
        "reason_smaller",
        patterns=lambda self: [
            ("reason_smaller.big", is_op("negative")(tanh), lambda root: "three are too many"),
            ("reason_smaller.small", tanh),
        ],
    )
    shown = report(capfd, "explain", program, "--backends", name)
    assert row_of(shown, "tanh")["backend"] == row_of(shown, "exp")["backend"] == name
    assert "three are too many" in row_of(shown, "negative")["message"]


def test_the_reason_of_an_op_attribute(program, capfd):
    hr.register_func("relay.ext.reason_attr", lambda function: None, override=True)
    relay.op.contrib.register_extern_op("exp", "reason_attr", lambda call: f"it has no {call.op.name}")
    shown = report(capfd, "explain", program, "--backends", "reason_attr")
    assert row_of(shown, "exp")["message"] == "reason_attr: it has no exp"
    none = "reason_attr: the op has no attribute target.reason_attr that takes it"
    assert row_of(shown, "tanh")["message"] == none
    assert relay.op.contrib.get_extern_op("reason_attr", "exp")(None, [relay.var("x", shape=(4,))]) is False


def test_merge_composite_takes_reasons():
    x = relay.var("x", shape=(4,))
    mod = hr.IRModule.from_expr(relay.Function([x], relay.tanh(x)))
    for answer, is_merged in ((True, True), ("it is too small", False)):
        table = [("reasons.tanh", is_op("tanh")(wildcard()), lambda root, answer=answer: answer)]
        text = relay.transform.MergeComposite(table)(mod).astext()
        assert ("Composite" in text) == is_merged


def test_a_region_that_fails_is_wrong(program, capfd):
    def fail(name, inputs, outputs):
        raise RuntimeError("the chip is gone")

    name = made("reason_fails", supports=lambda self, call: call.op.name == "exp" or "no", load=lambda self, data: fail)
    (region,) = report(capfd, "verify", program, "--backends", name, code=MISMATCH)["regions"]
    assert not region["ok"]
    assert region["error"] is None
    assert region["note"].startswith("it fell back to native code: ")
    assert "the chip is gone" in region["note"]


def test_a_wrong_region_of_integers(tmp_path, capfd):
    path = tmp_path / "integers.relay"
    path.write_text("""#[version = "0.0.5"]
def @main(%x: Tensor[(4), int32]) { clip(add(%x, 1), a_min=0f, a_max=0f) }
""")

    def run(name, inputs, outputs):
        outputs[0][...] = inputs[0] + np.int32(2)

    name = made(
        "reason_integers", supports=lambda self, call: call.op.name == "add" or "no", load=lambda self, data: run
    )
    shown = report(capfd, "verify", str(path), "--backends", name, code=MISMATCH)
    assert [output["ok"] for output in shown["outputs"]] == [True]  # all are 0
    assert [region["ok"] for region in shown["regions"]] == [False]
    assert shown["bisection"]["guilty"]["kind"] == "add"


def takes(*ops: str):
    """A method supports that takes these ops."""
    return lambda self, call: call.op.name in ops or "no"


def pairs(name: str, *alone: str) -> str:
    """A backend with a pattern of exp and tanh, which takes some ops alone, too."""
    pattern = is_op("tanh")(is_op("exp")(wildcard()))
    return made(name, patterns=lambda self: [(f"{name}.pair", pattern)], supports=takes(*alone))


def placed(report: dict) -> list[tuple[str, str]]:
    return [(row["kind"], row["backend"]) for row in report["placement"]]


def test_a_placement_by_hand_breaks_a_pattern_up(program, capfd):
    name = pairs("hand_pair", "exp")
    words = ("explain", program, "--backends", name)
    assert placed(report(capfd, *words)) == [("exp", name), ("tanh", name), ("negative", "native")]
    # The line and column of tanh alone: exp is inside of it, further to the right.
    (tanh,) = (row["op"] for row in report(capfd, *words)["placement"] if row["kind"] == "tanh")
    shown = report(capfd, *words, "--place", f"{tanh}=native")
    assert placed(shown) == [("exp", name), ("tanh", "native"), ("negative", "native")]
    assert (
        row_of(shown, "exp")["message"]
        == f"--place '{tanh}=native' breaks up the pattern hand_pair.pair that it was in"
    )
    assert row_of(shown, "tanh")["message"] == f"--place '{tanh}=native' says so"
    assert [row_of(shown, kind)["reason_name"] for kind in ("exp", "tanh")] == ["PLACE_BY_OVERRIDE"] * 2
    # Together they stay a piece.
    both = report(capfd, *words, "--place", "*:2:*=native")
    assert placed(both) == [("exp", "native"), ("tanh", "native"), ("negative", "native")]


def test_an_op_of_a_broken_pattern_may_be_native(program, capfd):
    name = pairs("hand_alone")
    words = ("explain", program, "--backends", name)
    (exp,) = (row["op"] for row in report(capfd, *words)["placement"] if row["kind"] == "exp")
    shown = report(capfd, *words, "--place", f"{exp}=native")
    assert placed(shown) == [("exp", "native"), ("tanh", "native"), ("negative", "native")]
    assert row_of(shown, "tanh")["message"] == (
        f"--place '{exp}=native' breaks up the pattern hand_alone.pair that it was in; hand_alone: no"
    )
    assert _main([*words, "--place", f"{exp}={name}"]) == USER
    assert "hand_alone does not take the exp" in capfd.readouterr().err


def test_a_broken_pattern_in_a_plan_and_by_cost(program, capfd, tmp_path):
    name = pairs("hand_plan", "exp", "tanh")
    words = ("explain", program, "--backends", name)
    (exp,) = (row["op"] for row in report(capfd, *words)["placement"] if row["kind"] == "exp")
    saved = str(tmp_path / "plan.json")
    report(capfd, *words, "--save-plan", saved)
    assert [op["kind"] for op in json.loads((tmp_path / "plan.json").read_text())["ops"]] == [
        "hand_plan.pair",
        "negative",
    ]
    expected = [("exp", "native"), ("tanh", name), ("negative", "native")]
    apart = str(tmp_path / "apart.json")
    by_plan = report(capfd, "explain", program, "--plan", saved, "--place", f"{exp}=native", "--save-plan", apart)
    assert placed(by_plan) == expected
    rows = json.loads((tmp_path / "apart.json").read_text())["ops"]
    assert [(op["kind"], op["backend"]) for op in rows] == expected
    assert placed(report(capfd, "explain", program, "--plan", apart)) == expected
    by_cost = report(capfd, *words, "--placement", "cost", "--place", f"{exp}=native")
    assert dict(placed(by_cost))["exp"] == "native"
    assert by_cost["cost"]["lower_bound"] <= by_cost["cost"]["seconds"]


def test_a_plan_in_which_one_of_two_patterns_is_broken_up(tmp_path, capfd):
    path = tmp_path / "two.relay"
    path.write_text("""#[version = "0.0.5"]
def @main(%x: Tensor[(4), float32]) {
  %0 = tanh(exp(%x));
  negative(tanh(exp(negative(%0))))
}
""")
    name = pairs("hand_two", "exp")
    words = ("explain", str(path), "--backends", name)
    ops = [row["op"] for row in report(capfd, *words)["placement"]]
    saved = str(tmp_path / "plan.json")
    by_hand = placed(report(capfd, *words, "--place", f"{ops[1]}=native", "--save-plan", saved))
    assert by_hand[:2] == [("exp", name), ("tanh", "native")]
    assert by_hand[3:5] == [("exp", name), ("tanh", name)]
    kinds = [op["kind"] for op in json.loads((tmp_path / "plan.json").read_text())["ops"]]
    assert kinds == ["exp", "tanh", "negative", "hand_two.pair", "negative"]
    assert placed(report(capfd, "explain", str(path), "--plan", saved)) == by_hand


def test_refusals_have_their_reason(program, capfd):
    refusal = hr.backend.Refusal("DTYPE_UNSUPPORTED", "is no float16")
    pair = is_op("tanh")(is_op("exp")(wildcard()))
    cast = "cast the tensors to a dtype that the backend takes, or name another backend"
    for name, members in (
        ("coded_supports", {"supports": lambda self, call: refusal}),
        ("coded_check", {"patterns": lambda self: [("coded_check.pair", pair, lambda root: refusal)]}),
        ("coded_attribute", {}),
    ):
        made(name, **members)
        if name == "coded_attribute":
            relay.op.contrib.register_extern_op("tanh", name, lambda call: refusal)
        row = row_of(report(capfd, "explain", program, "--backends", name), "tanh")
        assert (row["reason_name"], row["remedy"]) == ("DTYPE_UNSUPPORTED", cast), name
        assert row["message"].endswith("is no float16")
    relay.op.get("tanh").reset_attr("target.coded_attribute")


def test_a_region_that_is_refused_has_its_reason(program, tmp_path, capfd):
    refusal = hr.backend.Refusal("SHAPE_UNSUPPORTED", "it is too large")
    made("coded_compile", supports=takes("tanh"), compile=lambda self, regions, options: [refusal])
    path = str(tmp_path / "refused.so")
    hr.compile(program, backends=["coded_compile"], output=path)
    row = row_of(report(capfd, "inspect", path)["programs"][0], "tanh")
    assert row["reason_name"] == "SHAPE_UNSUPPORTED"
    assert row["message"].endswith("it is too large")


def test_what_a_refusal_may_say():
    with pytest.raises(hr.UserError, match=r"'FUSE_DEPTH' is not a reason .*; the reasons are OP_UNSUPPORTED, .*BAD_M"):
        hr.backend.Refusal("FUSE_DEPTH", "no")
    for wrong in ((22, "no"), ("OP_UNSUPPORTED", None)):
        with pytest.raises(hr.UserError, match=r"Refusal: .*expected a str"):
            hr.backend.Refusal(*wrong)
    assert not hr.backend.Refusal("OP_UNSUPPORTED", "no")


def test_a_check_that_refuses_leaves_a_smaller_match(program, capfd):
    pattern = is_op("negative")(is_op("tanh")(wildcard()) | wildcard())
    seen = []

    def check(root):
        seen.append(type(root.args[0]).__name__)
        return seen[-1] == "Var" or "takes no tanh"

    name = made("smaller_match", patterns=lambda self: [("smaller_match.one", pattern, check)])
    shown = report(capfd, "explain", program, "--backends", name)
    assert seen == ["Call", "Var"] * (len(seen) // 2)
    assert row_of(shown, "negative")["backend"] == name
    assert "takes no tanh" in row_of(shown, "tanh")["message"]


def test_why_not_on_the_other_backends(program, capfd):
    made("why_first", supports=takes("exp", "tanh"))
    made("why_second", supports=lambda self, call: call.op.name == "exp" or "it has no such table")
    words = ("explain", program, "--backends", "why_first,why_second")
    assert _main([*words]) == OK
    text = capfd.readouterr().out
    first = "it is the first backend of the list that takes the op; not by why_second"
    assert f"{first} (PLACE_BY_ORDER): the backend takes the op, too; why_first is before it in the list\n" in text
    assert f"{first} (OP_UNSUPPORTED): it has no such table\n" in text
    assert re.search(r"OP_UNSUPPORTED +why_first: no; why_second: it has no such table\n", text)
    assert "to change OP_UNSUPPORTED: name another backend that takes the op (headrace backend list --ops), or " in text
    assert "to change PLACE_BY_ORDER: name the other backend earlier in --backends, or move the op (--place)\n" in text
    assert re.search(r"why_first +2 +1 tensor, 16 bytes +1 tensor, 16 bytes +none\n", text)
    assert text.endswith("1 region; 1 chosen, no choice for these ops has fewer than 1\n")
    shown = report(capfd, *words)
    assert shown["fewest_regions"] == 1
    assert row_of(shown, "exp")["remedy"].startswith("name the other backend earlier in --backends")
    other = shown["graph"]["nodes"][2]["alternatives"][0]
    assert (other["backend"], other["reason_name"]) == ("why_second", "OP_UNSUPPORTED")
    assert other["remedy"].startswith("name another backend")


def test_the_cost_of_a_plan_that_costs_do_not_decide(program, capfd, tmp_path):
    name = made("cost_known", supports=takes("exp"), cost=lambda self, call: 0.5)
    saved = tmp_path / "plan.json"
    shown = report(capfd, "explain", program, "--backends", name, "--save-plan", str(saved))
    cost = shown["cost"]
    assert 0.5 < cost["seconds"] < 0.501  # native code takes microseconds
    assert cost["others"]["list order"] == cost["seconds"]
    assert cost["lower_bound"] < 0.001
    assert cost["gap"] == cost["seconds"] - cost["lower_bound"]
    assert shown["cost_failure"] is None
    assert all(row["costs"] is None for row in shown["placement"])
    written = json.loads(saved.read_text())["cost"]
    assert written["seconds"] == pytest.approx(cost["seconds"], rel=1e-5)
    assert set(written) == {"seconds", "lower_bound", "gap", "source"}
    again = tmp_path / "again.json"
    report(capfd, "explain", program, "--plan", str(saved), "--save-plan", str(again))
    assert again.read_text() == saved.read_text()
    moved = report(capfd, "explain", program, "--backends", name, "--place", "*=native")
    assert moved["cost"]["seconds"] == pytest.approx(cost["others"]["native"], rel=1e-6)
    assert _main(["explain", program, "--backends", name]) == OK
    assert "the plan costs 500 ms, no plan less than " in capfd.readouterr().out


def test_a_cost_that_fails_is_said(program, capfd):
    name = made("cost_unknown", supports=takes("exp"), cost=lambda self, call: "much")
    shown = report(capfd, "explain", program, "--backends", name)
    assert shown["cost"] is None
    assert shown["cost_failure"].startswith("the backend 'cost_unknown': cost gave str")
    assert _main(["explain", program, "--backends", name]) == OK
    assert "the cost of the plan is not known: the backend 'cost_unknown': cost gave str" in capfd.readouterr().out


def test_wrong_answers_are_errors_of_the_user(program, capfd):
    for name, members, said in (
        ("wrong_supports", {"supports": lambda self, call: 3}, "supports gave int, expected True, False or a sentence"),
        (
            "wrong_compile",
            {"supports": takes("exp"), "compile": lambda self, regions, options: [3 for _ in regions]},
            "gave int, expected for each region bytes",
        ),
        (
            "wrong_count",
            {"supports": takes("exp"), "compile": lambda self, regions, options: []},
            "compile gave 0 answers for 1 regions",
        ),
    ):
        made(name, **members)
        assert _main(["compile", program, "--backends", name, "-o", program + ".so"]) == USER
        error = capfd.readouterr().err
        assert f"the backend '{name}'" in error
        assert said in error
        assert "defect" not in error


def test_a_fallback_warns_once(program):
    def fail(name, inputs, outputs):
        raise RuntimeError("the chip is gone")

    name = made("warns", supports=takes("exp"), load=lambda self, data: fail)
    model = hr.compile(program, backends=[name])
    with pytest.warns(RuntimeWarning, match="the region .* runs natively, not by warns: .*the chip is gone") as told:
        model(np.zeros(4, "float32"))
        model(np.zeros(4, "float32"))
    assert [one.filename for one in told] == [__file__]
    again = hr.compile(program, backends=[name])
    with pytest.warns(RuntimeWarning, match="the chip is gone") as told:
        again.run([np.zeros(4, "float32")])
    assert told[0].filename == __file__


def test_a_backend_that_cannot_load_warns_when_the_model_is_made(program):
    name = made("warns_early", supports=takes("exp"))  # its load fails
    with pytest.warns(RuntimeWarning, match="it is never loaded") as told:
        hr.compile(program, backends=[name])
    assert told[0].filename == __file__


def test_without_fallback_the_backends_error_is_raised(program, tmp_path):
    never = made("strict_early", supports=takes("exp"))  # its load fails
    for output in (None, tmp_path / "strict.so"):
        with pytest.raises(hr.UserError, match="strict_early"):
            hr.compile(program, backends=[never], output=output, fallback="none")

    def fail(name, inputs, outputs):
        raise RuntimeError("the chip is gone")

    name = made("strict", supports=takes("exp"), load=lambda self, data: fail)
    model = hr.compile(program, backends=[name], fallback="none")
    with pytest.raises(hr.UserError, match="the chip is gone"):
        model(np.zeros(4, "float32"))
    assert model.fallbacks == []
    with pytest.raises(hr.UserError, match="fallback: expected 'native' or 'none', got False"):
        hr.compile(program, fallback=False)


def test_annotations_by_hand_are_regions_of_a_compile(tmp_path, capfd):
    head = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(4), float32]) {\n'
    begin = '  %0 = annotation.compiler_begin(%x, compiler="hand_marked");\n'
    name = made("hand_marked")
    path = tmp_path / "annotated.relay"
    path.write_text(f'{head}{begin}  tanh(annotation.compiler_end(exp(%0), compiler="{name}"))\n}}\n')
    shown = report(capfd, "explain", str(path))
    assert [(row["kind"], row["backend"], row["reason_name"]) for row in shown["placement"]] == [
        ("exp", name, "PLACE_BY_HAND"),
        ("tanh", "native", "PLACE_ONLY_NATIVE"),
    ]
    path.write_text(f"{head}{begin}  exp(%0)\n}}\n")
    for words in (["explain", str(path)], ["compile", str(path), "-o", str(tmp_path / "a.so")]):
        assert _main(words) == USER
        error = capfd.readouterr().err
        assert "annotated.relay:3:8" in error
        assert "compiler_end" in error
