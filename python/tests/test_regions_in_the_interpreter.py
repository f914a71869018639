"""The interpreter calls the backends of regions: in lets, branches and recursive functions, and as values."""

import headrace as hr
import numpy as np
import pytest
from headrace import relay
from headrace.relay import transform

X = np.array([0, 1], "float32")
REGION = """#[version = "0.0.5"]
def @exp_of(%a: Tensor[(2), float32], Compiler="COMPILER", Primitive=1) -> Tensor[(2), float32] { exp(%a) }
"""


class Backend42(hr.backend.Backend):
    """Takes exp, and computes 42, so that results tell which of the two computed them."""

    name = "always42"
    version = "1"
    compiled: list[str] = []

    def supports(self, call):
        return True if call.op.name == "exp" else "it computes exp only"

    def compile(self, regions, options):
        self.compiled.extend(region.name for region in regions)
        return [region.name.encode() for region in regions]

    def load(self, data):
        def run(name, inputs, outputs):
            if inputs[0].flat[0] > 1000:
                raise RuntimeError("the chip is on fire")
            for output in outputs:
                output[...] = 42

        return run


@pytest.fixture(scope="module", autouse=True)
def registered():
    hr.backend.register(Backend42())


def executor_of(text, compiler="always42", **options):
    return relay.create_executor("debug", relay.parse(REGION.replace("COMPILER", compiler) + text), **options)


def test_a_branch_of_a_partitioned_program():
    mod = relay.parse(
        '#[version = "0.0.5"]\n'
        "def @main(%c: bool, %x: Tensor[(2), float32]) { if (%c) { exp(%x) } else { negative(%x) } }\n"
    )
    passes = [transform.AnnotateTarget("always42"), transform.MergeCompilerRegions(), transform.PartitionGraph()]
    parted = hr.transform.Sequential([transform.InferType(), *passes])(mod)
    assert len(parted.functions) == 2
    executor = relay.create_executor("debug", parted)
    run = executor.evaluate()
    np.testing.assert_array_equal(run(np.array(True), X).numpy(), [42, 42])
    np.testing.assert_array_equal(run(np.array(False), X).numpy(), -X)
    assert executor.fallbacks == []


def test_lets_and_values():
    run = executor_of(
        "def @twice(%f: fn (Tensor[(2), float32]) -> Tensor[(2), float32], %x: Tensor[(2), float32]) {\n"
        "  add(%f(%x), %f(%x))\n}\n"
        "def @main(%x: Tensor[(2), float32]) { let %y = @exp_of(%x); add(@twice(@exp_of, %x), %y) }\n"
    ).evaluate()
    np.testing.assert_array_equal(run(X).numpy(), [126, 126])


def test_a_recursive_function_compiles_its_region_once():
    run = executor_of(
        "def @go(%n: int32, %x: Tensor[(2), float32]) -> Tensor[(2), float32] {\n"
        '  if (equal(%n, 0)) { %x } else { @go(subtract(%n, 1), add(@exp_of(%x), cast(%n, dtype="float32"))) }\n}\n'
        "def @main(%n: int32, %x: Tensor[(2), float32]) { @go(%n, %x) }\n"
    ).evaluate()
    Backend42.compiled.clear()
    np.testing.assert_array_equal(run(np.array(100, "int32"), X).numpy(), [43, 43])
    np.testing.assert_array_equal(run(np.array(0, "int32"), X).numpy(), X)
    assert Backend42.compiled == ["exp_of"]


MAIN = "def @main(%x: Tensor[(2), float32]) { @exp_of(%x) }\n"


def test_a_missing_backend_is_reported():
    executor = executor_of(MAIN, "neverheardof")
    np.testing.assert_allclose(executor.evaluate()(X).numpy(), np.exp(X), rtol=1e-6)
    (event,) = executor.fallbacks
    assert (event["region"], event["backend"], event["run"]) == ("exp_of", "neverheardof", 0)
    assert "is for the compiler 'neverheardof', which is not registered" in event["message"]
    with pytest.raises(hr.UserError, match="compiler 'neverheardof', which is not registered"):
        executor_of(MAIN, "neverheardof", fallback="none").evaluate()(X)


def test_a_failing_backend_is_reported():
    hot = np.array([1001, 0], "float32")
    executor = executor_of(MAIN)
    assert executor.evaluate()(hot).numpy()[1] == 1
    (event,) = executor.fallbacks
    assert (event["region"], event["backend"], event["run"]) == ("exp_of", "always42", 1)
    assert (event["reason"], event["reason_name"]) == (17, "BACKEND_FAILED")
    assert "the chip is on fire" in event["message"]
    strict = executor_of(MAIN, fallback="none").evaluate()
    np.testing.assert_array_equal(strict(X).numpy(), [42, 42])
    with pytest.raises(hr.UserError, match="the chip is on fire"):
        strict(hot)


def test_fallback_is_a_word_of_the_interpreter():
    with pytest.raises(hr.UserError, match='fallback: expected "native" or "none", got "maybe"'):
        executor_of(MAIN, fallback="maybe").evaluate()
    with pytest.raises(hr.UserError, match='create_executor: fallback is for the kind "debug"'):
        relay.create_executor("graph", hr.IRModule(), fallback="none")


@pytest.mark.parametrize(
    "backend",
    [pytest.param(name, marks=pytest.mark.backends(name)) for name in ("onednn", "ccompiler")],
)
def test_backends_that_ship_give_the_results_of_the_bodies(backend):
    x = relay.var("x", shape=(2, 3))
    n = relay.var("n", shape=(), dtype="int32")
    mod = hr.IRModule()
    go = relay.GlobalVar("go")
    step = relay.multiply(relay.add(x, x), relay.const(np.float32(0.5)))
    again = relay.Call(go, [relay.subtract(n, relay.const(np.int32(1))), relay.add(step, relay.const(np.float32(1)))])
    body = relay.If(relay.equal(n, relay.const(np.int32(0))), x, again)
    mod[go] = relay.Function([n, x], body, relay.TensorType((2, 3), "float32"))
    m, y = relay.var("n", shape=(), dtype="int32"), relay.var("x", shape=(2, 3))
    mod["main"] = relay.Function([m, y], relay.Call(go, [m, y]))
    mod = transform.InferType()(mod)
    passes = [transform.AnnotateTarget(backend), transform.MergeCompilerRegions(), transform.PartitionGraph()]
    parted = hr.transform.Sequential(passes)(mod)
    assert any(f.attrs and "Compiler" in f.attrs for _, f in parted.functions.items())
    data = np.random.default_rng(1).uniform(-1, 1, (2, 3)).astype("float32")
    got = relay.create_executor("debug", parted, fallback="none").evaluate()(np.array(4, "int32"), data)
    np.testing.assert_allclose(got.numpy(), data + 4, rtol=1e-6)
