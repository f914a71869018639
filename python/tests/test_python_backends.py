"""Backends in Python: classes of headrace.backend, from the compile of a file to its run in another process."""

import re
import subprocess
import sys

import headrace as hr
import numpy as np
import pytest
from headrace import relay
from headrace.backend import Backend
from headrace.relay.dataflow_pattern import is_op, wildcard

PROGRAM = """#[version = "0.0.5"]
def @main(%x: Tensor[(4), float32]) { negative(exp(add(%x, 1f))) }
"""


class Exp(Backend):
    """Takes exp; a region is the text "exp"."""

    name = "test_exp"
    version = "7"

    def supports(self, call):
        return True if call.op.name == "exp" else "is not exp"

    def compile(self, regions, options):
        return [b"exp" for _ in regions]

    def load(self, data):
        if data != b"exp":
            raise ValueError("this is not exp")

        def run(name, inputs, outputs):
            outputs[0][...] = np.exp(inputs[0])

        return run


def made(name: str, **members) -> Backend:
    """A registered backend that is Exp but for these members."""
    backend = type("Changed", (Exp,), {"name": name, **members})()
    hr.backend.register(backend)
    return backend


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.relay"
    path.write_text(PROGRAM)
    return path


def zeros() -> np.ndarray:
    return np.zeros(4, "float32")


def test_a_backend_compiles_saves_loads_and_runs(program, tmp_path):
    backend = made("test_whole")
    path = tmp_path / "model.so"
    for model in (hr.compile(program, backends=["test_whole"], output=path), hr.load(path, fallback="none")):
        np.testing.assert_allclose(model(zeros()).numpy(), -np.exp(np.ones(4)), rtol=1e-6)
        assert model.fallbacks == []
    assert hr.backend.find("test_whole") is backend
    assert "test_whole" in hr.backend.names()
    # Elsewhere, where nobody registers it, the native form runs.
    text = (
        "import sys, numpy, headrace as hr; model = hr.load(sys.argv[1])\n"
        "print(model(numpy.zeros(4, 'float32')).numpy()[0], model.fallbacks[0]['backend'])"
    )
    ran = subprocess.run([sys.executable, "-c", text, path], capture_output=True, text=True, check=True)
    value, backend_name = ran.stdout.split()
    assert float(value) == pytest.approx(-np.e, rel=1e-6)
    assert backend_name == "test_whole"


def test_the_moments_of_a_backend(program):
    seen = []

    class Moments(Exp):
        name = "test_moments"

        def supports(self, call):
            seen.append(("supports", call.op.name, call.args[0].checked_type.dtype))
            return super().supports(call)

        def compile(self, regions, options):
            (region,) = regions
            seen.append(("compile", region.function.attrs["Compiler"], options))
            assert region.module[region.name].same_as(region.function)
            return super().compile(regions, options)

        def load(self, data):
            seen.append(("load", data))
            run = super().load(data)
            return type("Loaded", (), {"run": lambda self, *args: seen.append(("run", args[0])) or run(*args)})()

    hr.backend.register(Moments())
    model = hr.compile(program, backends=["test_moments"], backend_options={"test_moments": {"speed": 3}})
    model(zeros())
    assert ("supports", "exp", "float32") in seen
    assert ("compile", "test_moments", {"speed": 3}) in seen
    assert ("load", b"exp") in seen
    assert seen[-1] == ("run", "tvmgen_default_test_moments_main_0")


def test_options_that_compile_refuses_are_errors_without_a_region(tmp_path):
    """By any exception, but not by one that compile raises without options, too."""
    path = tmp_path / "none.relay"
    path.write_text('#[version = "0.0.5"]\ndef @main(%x: Tensor[(4), float32]) { cos(%x) }\n')

    def refuses(self, regions, options):
        return [{"level": b"exp"}[option] for option in options]

    made("test_strict", compile=refuses)
    with pytest.raises(hr.UserError, match="the backend 'test_strict' failed in compile: KeyError: 'foo'"):
        hr.compile(path, backends=["test_strict"], backend_options={"test_strict": {"foo": 1}})

    def wants_regions(self, regions, options):
        return [regions[0].name.encode()]

    made("test_wants_regions", compile=wants_regions)
    hr.compile(path, backends=["test_wants_regions"], backend_options={"test_wants_regions": {"foo": 1}})


def test_timeouts_of_the_kit():
    made("test_timeouts")
    for wrong in (0, -1, 1e99, float("nan"), "a", True):
        with pytest.raises(hr.UserError, match=r"is not a number of seconds from 0\.1 to 86400"):
            hr.backend.check("test_timeouts", ["exp/*"], timeout=wrong)


def test_regions_of_equal_bytes_are_loaded_once(tmp_path):
    path = tmp_path / "two.relay"
    path.write_text('#[version = "0.0.5"]\ndef @main(%x: Tensor[(4), float32]) { exp(cos(exp(%x))) }\n')
    loads = []
    made("test_shared", load=lambda self, data: loads.append(data) or Exp.load(self, data))
    model = hr.compile(path, backends=["test_shared"])
    np.testing.assert_allclose(model(zeros()).numpy(), np.full(4, np.exp(np.cos(1))), rtol=1e-6)
    assert loads == [b"exp"]


def test_patterns_become_composite_functions(tmp_path):
    path = tmp_path / "pattern.relay"
    path.write_text(
        '#[version = "0.0.5"]\ndef @main(%x: Tensor[(4), float32]) { negative(exp(cos(negative(exp(%x))))) }\n'
    )
    composites, checked = [], []

    class Pairs(Backend):
        name = "test_pairs"

        def patterns(self):
            def check(root):
                checked.append(root.op.name)
                return root.args[0].args[0].checked_type.dtype == "float32"

            return [("test_pairs.negative_exp", is_op("negative")(is_op("exp")(wildcard())), check)]

        def compile(self, regions, options):
            composites.extend(str(region.function.body.op.attrs["Composite"]) for region in regions)
            return [b"" for _ in regions]

        def load(self, data):
            def run(name, inputs, outputs):
                outputs[0][...] = -np.exp(inputs[0])

            return run

    hr.backend.register(Pairs())
    model = hr.compile(path, backends=["test_pairs"])
    np.testing.assert_allclose(model(zeros()).numpy(), -np.exp(np.cos(-np.ones(4))), rtol=1e-6)
    assert composites == ["test_pairs.negative_exp"] * 2
    assert set(checked) == {"negative"}


def test_checks_of_patterns_that_fail(program):
    pattern = is_op("negative")(is_op("exp")(wildcard()))

    def fail(root):
        raise KeyError("nothing")

    for name, check, message in (
        ("test_check_fails", fail, r"failed in the check of the pattern 'test_check_fails\.p': KeyError: 'nothing' \("),
        (
            "test_check_gives",
            lambda root: 1,
            r"the check of the pattern 'test_check_gives\.p' gave int, expected a bool, or why not as a str",
        ),
    ):
        made(name, patterns=lambda self, name=name, check=check: [(f"{name}.p", pattern, check)])
        with pytest.raises(hr.UserError, match=message):
            hr.compile(program, backends=[name])
    with pytest.raises(hr.UserError, match="gave int, expected a function of an expression as its check"):
        made("test_no_check", patterns=lambda self: [("test_no_check.p", pattern, 3)])


def test_a_region_that_is_refused_is_native(program):
    made("test_refuses", compile=lambda self, regions, options: ["the chip has no room" for _ in regions])
    model = hr.compile(program, backends=["test_refuses"])
    np.testing.assert_allclose(model(zeros()).numpy(), -np.exp(np.ones(4)), rtol=1e-6)
    assert model.fallbacks == []


def test_a_backend_of_one_call_has_a_region_for_each(tmp_path):
    body = "exp(exp(concatenate((%x, exp(%x)))))"
    path = tmp_path / "chain.relay"
    path.write_text(PROGRAM.replace("negative(exp(add(%x, 1f)))", body))
    compiled = []

    def supports(self, call):
        return True if call.op.name in ("exp", "concatenate") else "is something else"

    def compile_each(self, regions, options):
        compiled.extend(region.function.body.op.name for region in regions)
        return [region.function.body.op.name.encode() for region in regions]

    def load(self, data):
        def run(name, inputs, outputs):
            outputs[0][...] = np.concatenate(inputs) if data == b"concatenate" else np.exp(inputs[0])

        return run

    members = {"supports": supports, "compile": compile_each, "load": load}
    backend = made("test_lone", one_call_per_region=True, **members)
    x = np.full(4, -1, "float32")
    model = hr.compile(path, backends=[backend.name])
    result = model(x).numpy()
    assert model.fallbacks == []
    assert sorted(compiled) == ["concatenate", "exp", "exp", "exp"]
    np.testing.assert_allclose(result, np.exp(np.exp(np.concatenate([x, np.exp(x)]))), rtol=1e-6)

    # The pass that joins parts leaves them apart, too.
    mod = relay.transform.InferType()(relay.parse(path.read_text()))
    for pass_ in (
        relay.transform.AnnotateTarget(backend.name),
        relay.transform.MergeCompilerRegions(),
        relay.transform.PartitionGraph(),
    ):
        mod = pass_(mod)
    assert len([f for f in mod.functions.values() if f.attrs.get("Compiler") == backend.name]) == 4


def test_costs_decide_where_an_op_runs(tmp_path):
    path = tmp_path / "large.relay"
    path.write_text('#[version = "0.0.5"]\ndef @main(%x: Tensor[(512, 512), float32]) { exp(%x) }\n')
    x = np.zeros((512, 512), "float32")
    for name, seconds, expected in (("test_cheap", 0.0, 1), ("test_dear", 1, 0)):
        runs = []

        def load(self, data, runs=runs):
            run = Exp.load(self, data)
            return lambda *args: runs.append(1) or run(*args)

        made(name, load=load, cost=lambda self, call, seconds=seconds: seconds)
        np.testing.assert_array_equal(hr.compile(path, backends=[name], placement="cost")(x).numpy(), np.ones_like(x))
        assert len(runs) == expected


@pytest.mark.parametrize(
    ("name", "methods", "expected"),
    [
        ("test_joined", {"saved": lambda self, call, producers: 1.0 if producers else 0.0}, [2]),
        ("test_apart", {}, []),
        ("test_near", {"saved": lambda self, call, producers: 1.0, "border": lambda self, type: 0.0}, [2]),
        ("test_far", {"saved": lambda self, call, producers: 1.0, "border": lambda self, type: 1.0}, []),
    ],
)
def test_joins_and_borders_decide_where_ops_run(tmp_path, name, methods, expected):
    """The first call costs the backend nothing, the second a second, which it saves behind the first."""
    path = tmp_path / "large.relay"
    path.write_text('#[version = "0.0.5"]\ndef @main(%x: Tensor[(512, 512), float32]) { exp(exp(%x)) }\n')
    sizes = []

    def compile(self, regions, options):
        sizes.extend(str(region.function).count("exp(") for region in regions)
        return ["only its size matters" for _ in regions]

    made(name, compile=compile, cost=lambda self, call: float(isinstance(call.args[0], relay.Call)), **methods)
    hr.compile(path, backends=[name], placement="cost")
    assert sizes == expected


def test_answers_about_joins_and_borders_are_checked(tmp_path):
    path = tmp_path / "large.relay"
    path.write_text('#[version = "0.0.5"]\ndef @main(%x: Tensor[(512, 512), float32]) { exp(exp(%x)) }\n')
    for name, methods, message in (
        ("test_joins_text", {"saved": lambda self, call, producers: "half"}, "saved gave str, expected seconds as a f"),
        (
            "test_joins_nan",
            {"saved": lambda self, call, producers: float("nan")},
            "saved gave nan seconds, expected 0 ",
        ),
        ("test_borders", {"border": lambda self, type: -1}, "border gave -1.0 seconds, expected 0 to 1000"),
        ("test_borders_fail", {"border": lambda self, type: 1 // 0}, "failed in border: ZeroDivisionError"),
    ):
        made(name, cost=lambda self, call: 1.0, **methods)
        with pytest.raises(hr.UserError, match=message):
            hr.compile(path, backends=[name], placement="cost")


def test_a_run_that_fails_is_replaced_by_native_code(program, tmp_path):
    def load(self, data):
        def run(name, inputs, outputs):
            raise RuntimeError("the chip is gone")

        return run

    made("test_run_fails", load=load)
    path = tmp_path / "model.so"
    model = hr.compile(program, backends=["test_run_fails"], output=path)
    np.testing.assert_allclose(model(zeros()).numpy(), -np.exp(np.ones(4)), rtol=1e-6)
    (event,) = model.fallbacks
    assert event["backend"] == "test_run_fails"
    assert event["run"] == 1
    assert "RuntimeError: the chip is gone (" in event["message"]
    with pytest.raises(
        hr.UserError, match=r"failed in run of the region '.*': RuntimeError: the chip is gone \(.*py:\d+"
    ) as raised:
        hr.load(path, fallback="none")(zeros())
    assert isinstance(raised.value.__cause__, RuntimeError)


def test_bytes_that_do_not_load_are_replaced_by_native_code(program, tmp_path):
    made("test_load_fails", compile=lambda self, regions, options: [b"other" for _ in regions])
    path = tmp_path / "model.so"
    model = hr.compile(program, backends=["test_load_fails"], output=path)
    np.testing.assert_allclose(model(zeros()).numpy(), -np.exp(np.ones(4)), rtol=1e-6)
    (event,) = model.fallbacks
    assert "the backend 'test_load_fails' failed in load: ValueError: this is not exp (" in event["message"]
    with pytest.raises(hr.UserError, match="ValueError: this is not exp"):
        hr.load(path, fallback="none")


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (None, ""),
        (False, ""),
        ("it had no minus", ", which says: it had no minus"),
        (True, None),
        (7, "accepts_version gave .*, expected True, False or a sentence"),
    ],
)
def test_a_file_of_another_version(program, tmp_path, answer, says):
    asked = []

    def accepts_version(self, recorded):
        asked.append(recorded)
        return answer

    name = f"test_version_{answer}".replace(" ", "_")
    made(name)
    path = tmp_path / "model.so"
    hr.compile(program, backends=[name], output=path)
    members = {} if answer is None else {"accepts_version": accepts_version}
    later = type("Later", (Exp,), {"name": name, "version": "8", **members})
    hr.backend.register(later(), override=True)
    model = hr.load(path)
    np.testing.assert_allclose(model(zeros()).numpy(), -np.exp(np.ones(4)), rtol=1e-6)
    assert set(asked) == ({"7"} if members else set())
    if says is None:
        assert model.fallbacks == []
        return
    (event,) = model.fallbacks
    expected = says or (
        f"the backend '{name}' does not load its part: the region was compiled by version 7 of the backend, and this "
        "is version 8; compile the model again"
    )
    assert re.search(expected, event["message"])
    with pytest.raises(hr.UserError, match=says or "compiled by version 7 of the backend, and this is version 8;"):
        hr.load(path, fallback="none")


def test_a_file_of_the_same_version_is_not_asked_about(program, tmp_path):
    def accepts_version(self, recorded):
        raise AssertionError("asked")

    made("test_version_same", accepts_version=accepts_version)
    path = tmp_path / "model.so"
    hr.compile(program, backends=["test_version_same"], output=path)
    assert hr.load(path, fallback="none").fallbacks == []


@pytest.mark.parametrize("name", ["numpy", "onnxruntime"])
def test_our_backends_read_files_of_other_packages(name):
    backend = hr.backend.find(name)
    form, _, package = backend.version.partition(" on ")
    assert package.startswith(f"{name} ")
    assert backend.accepts_version(f"{form} on {name} 0.0.1") is True
    assert "of the form" in backend.accepts_version(f"{form}1 on {package}")


class Declaring:
    """A loaded region of one exp, with types by its own word."""

    def __init__(self, types):
        self.types = lambda name: types

    def run(self, name, inputs, outputs):
        outputs[0][...] = np.exp(inputs[0])


def test_code_of_other_types_is_replaced_by_native_code(program, tmp_path):
    right = relay.TensorType((4,), "float32")
    cases = [
        ("right", ([right], [right]), None),
        ("any_size", ([relay.TensorType((relay.Any(),), "float32")], [right]), None),
        ("silent", None, None),
        (
            "result",
            ([right], [relay.TensorType((2, 2), "float32")]),
            "has result 0 of the type float32 2x2, and the mo",
        ),
        (
            "input",
            ([relay.TensorType((4,), "int8")], [right]),
            "has input 0 of the type int8 4, and the model was comp",
        ),
        ("count", ([right, right], [right]), "takes 2 tensors and gives 1, and the model was compiled for a region"),
        ("one_list", [right], r"types of the region '.*' gave list, expected \(types of inputs, types of outputs\)"),
        ("numbers", ([4], [4]), r"types of the region '.*' gave list, expected \(types of inputs, types of outputs\)"),
    ]
    for case, types, message in cases:
        name, path = f"test_declares_{case}", tmp_path / f"{case}.so"
        made(name, load=lambda self, data, types=types: Declaring(types))
        model = hr.compile(program, backends=[name], output=path)
        np.testing.assert_allclose(model(zeros()).numpy(), -np.exp(np.ones(4)), rtol=1e-6)
        if message is None:
            assert model.fallbacks == []
            continue
        (event,) = model.fallbacks
        assert event["run"] == 0
        assert re.search(message, event["message"])
        with pytest.raises(hr.UserError, match=message):
            hr.load(path, fallback="none")


def test_the_kit_compares_declared_types():
    wrong = relay.TensorType((1,), "float32")
    made("test_declares_to_the_kit", load=lambda self, data: Declaring(([wrong], [wrong])))
    (report,) = hr.backend.check("test_declares_to_the_kit", ["exp/float32"])
    (finding,) = [one for one in report.findings if one.check == "types"]
    assert "has input 0 of the type float32 1, and the model was compiled for" in finding.message


class Interrupt(KeyboardInterrupt):
    """A handler of a signal may raise its own kind of interrupt."""


class Stop(BaseException):
    """An exception that no handler of Exception catches, as those of frameworks for tests and tasks."""


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, Interrupt, Stop])
@pytest.mark.parametrize("moment", ["supports", "check", "cost", "compile", "load", "run"])
def test_what_asks_the_program_to_stop_reaches_the_caller(program, moment, kind):
    def stop(*arguments):
        raise kind("stop")

    name = f"test_stop_{kind.__name__.lower()}_{moment}"
    members = {
        "check": {"patterns": lambda self: [(f"{name}.exp", is_op("exp")(wildcard()), stop)]},
        "run": {"load": lambda self, data: stop},
    }
    made(name, **members.get(moment, {moment: stop}))
    with pytest.raises(kind, match="stop"):
        hr.compile(program, backends=[name], placement="cost" if moment == "cost" else "order")(zeros())


@pytest.mark.parametrize("kind", [KeyboardInterrupt, Interrupt, Stop])
def test_a_run_with_a_time_limit_that_is_asked_to_stop(program, tmp_path, kind):
    def stop(*arguments):
        raise kind("stop")

    name = f"test_limit_{kind.__name__.lower()}"
    made(name, load=lambda self, data: stop)
    hr.compile(program, backends=[name], output=tmp_path / "model.so")
    with pytest.raises(kind, match="stop"):
        hr.load(tmp_path / "model.so", region_timeout=10)(zeros())


def test_the_kit_asks_for_costs():
    made("test_kit_cost_nan", cost=lambda self, call: float("nan"))
    (report,) = hr.backend.check("test_kit_cost_nan", ["exp/float32"])
    assert [one.check for one in report.findings] == ["cost"]
    assert report.findings[0].message.startswith("the cost of exp with 1 thread is nan")
    made("test_kit_cost_slow", cost=lambda self, call: 9.0)
    (report,) = hr.backend.check("test_kit_cost_slow", ["exp/float32"])
    assert report.findings == []
    ((check, message),) = [(one.check, one.message) for one in report.warnings]
    assert check == "cost_time"
    assert message.startswith("the estimate is 9 s, and a run takes ")


def test_the_kit_compares_costs_of_other_names():
    made("test_kit_cost_names", cost=lambda self, call: 1e-6 * len(call.args[0].name_hint))
    (report,) = hr.backend.check("test_kit_cost_names", ["exp/float32"])
    assert [one.check for one in report.findings] == ["cost_names"]


def test_the_kit_has_one_finding_for_code_that_does_not_load():
    made("test_kit_loads_nothing", load=lambda self, data: None)
    (report,) = hr.backend.check("test_kit_loads_nothing", ["exp/float32"])
    ((check, message),) = [(one.check, one.message) for one in report.findings]
    assert check == "load"
    assert "load gave None, expected a function" in message
    assert "C++ frames" not in message


def test_patterns_that_match_nothing_are_refused():
    table = [("test_mistaken.relu", "exp(nn.relu(_, _))")]
    message = (
        "'test_mistaken.relu', number 1 of 1, with a part that matches nothing: nn.relu takes 1 argument and has 2"
    )
    with pytest.raises(hr.UserError, match=message):
        made("test_mistaken", patterns=lambda self: table)


def test_exceptions_while_compiling_have_a_place(program):
    def fail(*args):
        raise KeyError("nothing")

    made("test_supports_fails", supports=fail)
    with pytest.raises(
        hr.DiagnosticError, match=r"'test_supports_fails' failed in supports: KeyError: 'nothing' \("
    ) as e:
        hr.compile(program, backends=["test_supports_fails"])
    assert e.value.op in ("add", "exp", "negative")
    assert e.value.place.startswith("program.relay:2:") or "program.relay:2:" in e.value.place
    assert isinstance(e.value.__cause__, KeyError)
    made("test_compile_fails", compile=fail)
    with pytest.raises(hr.UserError, match="'test_compile_fails' failed in compile: KeyError"):
        hr.compile(program, backends=["test_compile_fails"])
    made("test_cost_fails", cost=fail)
    with pytest.raises(hr.UserError, match="'test_cost_fails' failed in cost: KeyError"):
        hr.compile(program, backends=["test_cost_fails"], placement="cost")

    def refuse(*args):
        raise hr.UserError("the option 'speed' is a number")

    made("test_own_error", compile=refuse)
    with pytest.raises(hr.UserError, match=r"^the option 'speed' is a number$"):
        hr.compile(program, backends=["test_own_error"])


@pytest.mark.parametrize(
    ("member", "answer", "message"),
    [
        ("supports", 1, "supports gave int, expected True, False or a sentence"),
        ("compile", b"exp", "compile gave bytes, expected a list"),
        ("compile", [], "compile gave 0 answers for 1 regions"),
        ("compile", [None], r"compile of the region '.*' gave None, expected for each region bytes"),
        ("cost", "cheap", "cost gave str, expected seconds"),
    ],
)
def test_a_wrong_answer_is_an_error(program, member, answer, message):
    name = f"test_answers_{member}_{type(answer).__name__}_{len(str(answer))}"
    made(name, **{member: lambda self, *args: answer})
    with pytest.raises(hr.UserError, match=message):
        hr.compile(program, backends=[name], placement="cost" if member == "cost" else "order")


def test_wrong_answers_at_load_and_run(program, tmp_path):
    made("test_loads_nothing", load=lambda self, data: 3)
    made("test_returns", load=lambda self, data: lambda name, inputs, outputs: np.exp(inputs[0]))

    def write_input(name, inputs, outputs):
        inputs[0][...] = 0

    made("test_writes_inputs", load=lambda self, data: write_input)
    kept = []
    made("test_keeps", load=lambda self, data: lambda name, inputs, outputs: kept.append(outputs[0]))
    for name, message in (
        ("test_loads_nothing", r"load gave int, expected a function \(name, inputs, outputs\)"),
        ("test_returns", r"gave ndarray, expected None; results are written to the outputs"),
        ("test_writes_inputs", r"ValueError: assignment destination is read-only"),
        ("test_keeps", "keeps an array that was passed to it"),
    ):
        path = tmp_path / f"{name}.so"
        hr.compile(program, backends=[name], output=path)
        with pytest.raises(hr.UserError, match=message):
            hr.load(path, fallback="none")(zeros())


def test_a_reason_that_is_no_text(program):
    made("test_surrogate", compile=lambda self, regions, options: ["\ud800bad" for _ in regions])
    message = r"'test_surrogate': compile of the region '.*main_0' gave '\\ud800bad', which is not text in UTF-8"
    with pytest.raises(hr.UserError, match=message):
        hr.compile(program, backends=["test_surrogate"])


KEEPS_ARRAYS = """
import gc, sys, warnings
import headrace as hr
import numpy as np
from headrace import relay

kept = []


class Keeps(hr.backend.Backend):
    name = "test_keeps_arrays"

    def supports(self, call):
        return call.op.name == "exp" or "is not exp"

    def compile(self, regions, options):
        return [b"exp" for _ in regions]

    def load(self, data):
        def run(name, inputs, outputs):
            outputs[0][...] = np.exp(inputs[0])
            kept.append((inputs[0][1:], outputs[0][1:]))
            if sys.argv[2] == "raises":
                raise ValueError("after it kept them")

        return run


hr.backend.register(Keeps())
size = int(sys.argv[1])
x = relay.var("x", shape=(size,))
body = {"between": relay.tanh(relay.exp(relay.negative(x))), "ends": relay.exp(x)}[sys.argv[3]]
model = hr.compile(hr.IRModule.from_expr(relay.Function([x], body)), backends=["test_keeps_arrays"])
given = np.full(size, 0.5, "float32")
sign = 1 if sys.argv[3] == "ends" else -1
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    result = model(given)
want = np.exp(sign * given)
np.testing.assert_allclose(result.numpy(), want if sign > 0 else np.tanh(want), rtol=1e-5)
assert len(model.fallbacks) == len(kept) == len(seen) == 1, (model.fallbacks, seen)
wanted = want[1:]
del model, result, given, want
gc.collect()
filled = [np.full(size, 9, "float32") for _ in range(50)]
filled += [hr.nd.array(one) for one in filled]
(source, target), = kept
np.testing.assert_allclose(source, np.full(size - 1, sign * 0.5))
target[...] = 3
assert all((np.asarray(one) == 9).all() for one in filled)
np.testing.assert_allclose(source, np.full(size - 1, sign * 0.5))
print("whole")
"""


@pytest.mark.parametrize("size", [3, 10**6])
@pytest.mark.parametrize("how", ["returns", "raises"])
@pytest.mark.parametrize("place", ["between", "ends"])
def test_the_memory_of_an_array_that_is_kept_stays(size, how, place):
    # In a process of its own, which would crash.
    command = [sys.executable, "-c", KEEPS_ARRAYS, str(size), how, place]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "whole\n"), ran.stderr


@pytest.mark.backends("ccompiler")
def test_what_cannot_be_registered():
    for given, message in (
        (Exp, "expected a headrace.backend.Backend, got .*; give an object of the class"),
        (3, "expected a headrace.backend.Backend, got int"),
        (type("NoLoad", (Backend,), {"name": "test_no_load", "compile": Exp.compile})(), "has no method load"),
        (
            type(
                "Typo",
                (Backend,),
                {"name": "test_typo", "suports": Exp.supports, "compile": Exp.compile, "load": Exp.load},
            )(),
            "the backend 'test_typo' has no method supports, and one named suports; did you mean supports?",
        ),
        (type("NoName", (Exp,), {"name": "a b"})(), "'a b' is not a name of a backend"),
        (type("Native", (Exp,), {"name": "native"})(), "'native' is a word of the compiler's own"),
        (type("Default", (Exp,), {"name": "default"})(), "'default' is a word of the compiler's own"),
        (type("Number", (Exp,), {"name": 3})(), "Number.name: expected a str, got int"),
        (type("Taken", (Exp,), {"name": "ccompiler"})(), "there is a backend 'ccompiler' already"),
        (type("T", (Exp,), {"name": "test_t", "patterns": lambda self: 3})(), "patterns gave int, expected a list"),
        (type("T", (Exp,), {"name": "test_t", "patterns": lambda self: [("x",)]})(), r"patterns\[0\] gave tuple"),
        (
            type("T", (Exp,), {"name": "test_t", "patterns": lambda self: [(3, wildcard())]})(),
            r"patterns\[0\] gave int, expected the name of the pattern as a str",
        ),
        (
            type("T", (Exp,), {"name": "test_t", "patterns": lambda self: [("other.x", wildcard())]})(),
            "a pattern 'other.x'; names of its patterns must begin with 'test_t.'",
        ),
    ):
        with pytest.raises(hr.UserError, match=message):
            hr.backend.register(given)
    with pytest.raises(hr.MissingError, match=r"there is no backend 'nobody' in Python; there are .*numpy"):
        hr.backend.find("nobody")
    with pytest.raises(hr.MissingError, match="the backend 'ccompiler' is not in Python"):
        hr.backend.find("ccompiler")


@pytest.mark.backends("ccompiler")
def test_a_backend_is_replaced(program):
    first = made("test_replaced")
    model = hr.compile(program, backends=["test_replaced"])

    class Doubled(Exp):
        name = "test_replaced"
        version = "8"

        def patterns(self):
            return [("test_replaced.both", is_op("negative")(is_op("exp")(wildcard())))]

        def load(self, data):
            def run(name, inputs, outputs):
                outputs[0][...] = -2 * np.exp(inputs[0])

            return run

    with pytest.raises(
        hr.UserError, match=r"'test_replaced' already, that of the class .*Changed; register\(.*override=True"
    ):
        hr.backend.register(Doubled())
    assert hr.backend.find("test_replaced") is first
    hr.backend.register(Doubled(), override=True)
    np.testing.assert_allclose(model(zeros()).numpy(), -np.exp(np.ones(4)), rtol=1e-6)
    replaced = hr.compile(program, backends=["test_replaced"])
    np.testing.assert_allclose(replaced(zeros()).numpy(), -2 * np.exp(np.ones(4)), rtol=1e-6)
    assert hr.backend.find("test_replaced").version == "8"
    has_it = "there is a backend 'ccompiler' already, which this program has; leave out that of Python, or"
    with pytest.raises(hr.UserError, match=has_it):
        hr.backend.register(type("Taken", (Exp,), {"name": "ccompiler"})(), override=True)


def test_bytes_of_a_module_that_are_cut_or_changed(program, tmp_path):
    made("test_bytes")
    kind = "python.test_bytes"
    good = b"HRPYMOD1" + (1).to_bytes(8, "little") + (1).to_bytes(8, "little") + b"f" + (1).to_bytes(8, "little")
    good += (3).to_bytes(8, "little") + b"exp"
    module = hr.runtime.load_binary(kind, good)
    assert module.save_to_binary() == good
    x, y = hr.nd.array(zeros()), hr.nd.array(zeros())
    module["f"](x, y)
    np.testing.assert_array_equal(y.numpy(), np.ones(4))
    for end in range(len(good)):
        with pytest.raises(hr.UserError):
            hr.runtime.load_binary(kind, good[:end])
    with pytest.raises(hr.UserError, match="there are bytes after their end"):
        hr.runtime.load_binary(kind, good + b"x")
    with pytest.raises(hr.UserError, match="they do not begin as such a module"):
        hr.runtime.load_binary(kind, b"x" * 40)


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """A folder on sys.path; calls make packages with entry points in it."""
    monkeypatch.syspath_prepend(tmp_path)

    def add(name: str, value: str, source: str = "") -> None:
        info = tmp_path / f"{name}-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        (info / "entry_points.txt").write_text(f"[headrace.backends]\n{name} = {value}\n")
        (tmp_path / f"{value.partition(':')[0]}.py").write_text(source)

    return add


SOURCE = """
import headrace.backend
from test_python_backends import Exp
class Installed(Exp):
    name = "{}"
"""


def test_installed_packages_are_found_by_name(program, packages):
    packages("test_installed", "test_installed_module:Installed", SOURCE.format("test_installed"))
    assert "test_installed" in hr.backend.names()
    assert "test_installed_module" not in sys.modules
    model = hr.compile(program, backends=["test_installed"])
    assert "test_installed_module" in sys.modules
    np.testing.assert_allclose(model(zeros()).numpy(), -np.exp(np.ones(4)), rtol=1e-6)
    assert hr.backend.find("test_installed").version == "7"


def test_installed_packages_that_are_broken(program, packages):
    packages("test_broken", "test_broken_module:Installed", "import nothing_of_that_name")
    with pytest.raises(hr.MissingError, match=r"'test_broken' cannot be imported from .*: ModuleNotFoundError"):
        hr.compile(program, backends=["test_broken"])
    packages("test_renamed", "test_renamed_module:Installed", SOURCE.format("test_other"))
    with pytest.raises(hr.MissingError, match="a backend named 'test_other'; give it that name"):
        hr.backend.find("test_renamed")
    with pytest.raises(hr.UserError, match="there is no backend 'nobody'"):
        hr.compile(program, backends=["nobody"])


def test_an_output_that_is_replaced_is_an_error(program):
    """In a list, `outputs[0] = result` would leave the tensor as it was."""

    def load(self, data):
        def run(name, inputs, outputs):
            outputs[0] = np.exp(inputs[0])

        return run

    name = "test_replaces_outputs"
    made(name, load=load)
    model = hr.compile(program, backends=[name])
    np.testing.assert_allclose(model(zeros()).numpy(), -np.exp(np.ones(4)), rtol=1e-6)
    (event,) = model.fallbacks
    assert "'tuple' object does not support item assignment" in event["message"]


class Silent(Exception):
    def __str__(self):
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("error", "says"), [(Silent(), "Silent: it cannot be shown as text"), (ValueError("\udcff"), "ValueError: ?")]
)
def test_exceptions_without_a_text_name_the_backend(program, error, says):
    def supports(self, call):
        raise error

    name = f"test_text_of_{type(error).__name__.lower()}"
    made(name, supports=supports)
    with pytest.raises(hr.UserError) as raised:
        hr.compile(program, backends=[name])
    assert f"the backend '{name}' failed in supports: {says} (" in str(raised.value)


@pytest.mark.parametrize("method", ["cost", "border"])
def test_seconds_that_no_float_holds(program, method):
    name = f"test_large_{method}"
    made(name, **{method: lambda self, *args: 10**400})
    with pytest.raises(hr.UserError, match=f"the backend '{name}': {method} gave int, expected seconds as a float"):
        hr.compile(program, backends=[name], placement="cost")
