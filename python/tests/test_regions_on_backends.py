"""Regions of convolution networks on the backends that ship: results against the interpreter, without native forms."""

import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import headrace as hr
import numpy as np
import pytest
from headrace import relay
from headrace.relay import transform
from headrace.relay.dataflow_pattern import is_constant, is_op, wildcard

pytestmark = pytest.mark.backends("onednn")
ONEDNN = "onednn"


def tensor(*shape, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype("float32")


def module_of(body, *params):
    return transform.InferType()(hr.IRModule.from_expr(relay.Function(list(params), body)))


def partition(module, table=(), compiler=ONEDNN, **options):
    passes = [transform.MergeComposite(list(table))] if table else []
    passes += [
        transform.AnnotateTarget(compiler),
        transform.MergeCompilerRegions(),
        transform.PartitionGraph(**options),
    ]
    return hr.transform.Sequential(passes)(module)


def regions_of(module):
    return [f for _, f in module.functions.items() if f.attrs and "Compiler" in f.attrs]


def assert_same_results(before, after, tmp_path, **inputs):
    """The partitioned program, from its file, gives what the interpreter gives for the one before."""
    given = [inputs[param.name_hint] for param in before["main"].params]
    want = relay.create_executor("debug", mod=before).evaluate()(*given)
    path = tmp_path / "model.so"
    relay.build(after, "llvm").export_library(path)
    got = hr.load(path, fallback="none")(**inputs)
    want, got = ([one] if hasattr(one, "numpy") else list(one) for one in (want, got))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(np.asarray(a), b.numpy(), rtol=1e-4, atol=1e-5)


def conv(x, seed, channels=8, size=3, into=8, **attrs):
    kernel = relay.const(tensor(into, channels // attrs.get("groups", 1), size, size, seed=seed))
    return relay.nn.conv2d(x, kernel, kernel_size=(size, size), channels=into, padding=(size // 2, size // 2), **attrs)


def bias_of(x, seed):
    return relay.nn.bias_add(x, relay.const(tensor(8, seed=seed)))


IMAGE = relay.var("x", shape=(1, 8, 6, 6))
DATA = tensor(1, 8, 6, 6, seed=9)


def conv_table(prefix=ONEDNN):
    conv_part = is_op("nn.conv2d")(wildcard(), is_constant())
    biased = is_op("nn.bias_add")(conv_part, wildcard())
    return [
        (f"{prefix}.conv_bias_relu", is_op("nn.relu")(biased)),
        (f"{prefix}.conv_relu", is_op("nn.relu")(conv_part)),
    ]


def test_convolutions_that_a_program_merged(tmp_path):
    body = relay.nn.relu(conv(relay.nn.relu(bias_of(conv(IMAGE, 1), 2)), 3))
    before = module_of(body, IMAGE)
    after = partition(before, conv_table())
    (region,) = regions_of(after)
    names = []
    relay.analysis.post_order_visit(
        region,
        lambda e: (
            names.append(str(e.attrs["Composite"]))
            if isinstance(e, relay.Function) and "Composite" in e.attrs
            else None
        ),
    )
    assert sorted(set(names)) == ["onednn.conv_bias_relu", "onednn.conv_relu"]
    assert_same_results(before, after, tmp_path, x=DATA)


@pytest.mark.parametrize("name", ["onednn.mine", "onednn.swish", "onednn.gelu", "onednn.twice_gelu"])
def test_a_composite_is_what_its_body_is(tmp_path, name):
    table = [(name, is_op("nn.relu")(is_op("exp")(wildcard())))]
    before = module_of(relay.nn.relu(relay.exp(IMAGE)), IMAGE)
    after = partition(before, table)
    assert len(regions_of(after)) == 1
    assert_same_results(before, after, tmp_path, x=DATA)
    # Those of the backend's own patterns, too.
    swish = module_of(relay.multiply(IMAGE, relay.sigmoid(IMAGE)), IMAGE)
    x = wildcard()
    assert_same_results(swish, partition(swish, [(name, x * is_op("sigmoid")(x))]), tmp_path, x=DATA)
    square = module_of(relay.multiply(relay.sigmoid(IMAGE), relay.sigmoid(IMAGE)), IMAGE)
    y = is_op("sigmoid")(wildcard())
    assert_same_results(square, partition(square, [(name, y * is_op("sigmoid")(wildcard()))]), tmp_path, x=DATA)


def depthwise_block(x, seed, relu=True):
    x = conv(x, seed, groups=8)
    x = relay.nn.batch_norm(x, *(relay.const(np.abs(tensor(8, seed=seed + k)) + 0.5) for k in range(4)))[0]
    x = conv(relay.nn.relu(x), seed + 5, size=1)
    x = relay.nn.batch_norm(x, *(relay.const(np.abs(tensor(8, seed=seed + k)) + 0.5) for k in range(6, 10)))[0]
    return relay.nn.relu(x) if relu else x


def test_a_network_of_separable_convolutions(tmp_path):
    x = depthwise_block(depthwise_block(IMAGE, 1), 20)
    x = relay.nn.batch_flatten(relay.nn.global_avg_pool2d(x))
    x = relay.nn.softmax(relay.nn.dense(x, relay.const(tensor(4, 8, seed=40))))
    before = module_of(x, IMAGE)
    folded = hr.transform.Sequential(
        [transform.SimplifyInference(), transform.FoldConstant(), transform.FoldScaleAxis(), transform.FoldConstant()]
    )(before)
    after = partition(folded, conv_table())
    assert 1 <= len(regions_of(after)) <= 2
    assert_same_results(before, after, tmp_path, x=DATA)


@pytest.mark.parametrize("bind_constants", [True, False])
def test_constants_inside_and_outside(tmp_path, bind_constants):
    before = module_of(relay.nn.relu(bias_of(conv(IMAGE, 1), 2)), IMAGE)
    after = partition(before, bind_constants=bind_constants)
    (region,) = regions_of(after)
    assert len(region.params) == (1 if bind_constants else 3)
    assert_same_results(before, after, tmp_path, x=DATA)


def test_several_results_of_one_region(tmp_path):
    first = conv(IMAGE, 1)
    second = relay.nn.relu(first)
    body = relay.Tuple([first, relay.cos(first), second, relay.cos(relay.Tuple([second, first])[0]), second])
    before = module_of(body, IMAGE)
    after = partition(before)
    (region,) = regions_of(after)
    assert len(region.body.checked_type.fields) == 2
    assert_same_results(before, after, tmp_path, x=DATA)


def test_a_diamond_through_native_code(tmp_path):
    top = relay.nn.relu(conv(IMAGE, 1))
    before = module_of(relay.add(relay.add(conv(top, 2), relay.cos(top)), top), IMAGE)
    after = partition(before)
    assert len(regions_of(after)) == 2
    assert_same_results(before, after, tmp_path, x=DATA)


def test_tuples_into_and_out_of_regions(tmp_path):
    y = relay.var("y", shape=(1, 8, 6, 6))
    joined = relay.concatenate([conv(IMAGE, 1), relay.cos(y), y], axis=1)
    pieces = relay.split(relay.nn.relu(joined), 3, axis=1)
    body = relay.Tuple([pieces[2], relay.nn.relu(relay.add(pieces[0], pieces[1])), relay.Tuple([y, joined])[1]])
    before = module_of(body, IMAGE, y)
    after = partition(before)
    assert regions_of(after)
    assert_same_results(before, after, tmp_path, x=DATA, y=tensor(1, 8, 6, 6, seed=3))


@pytest.mark.backends("ccompiler")
def test_two_backends_share_a_network(tmp_path):
    body = relay.multiply(relay.nn.relu(conv(IMAGE, 1)), relay.subtract(IMAGE, relay.const(np.float32(2))))
    before = module_of(body, IMAGE)
    after = partition(before, compiler=[ONEDNN, "ccompiler"])
    assert {str(region.attrs["Compiler"]) for region in regions_of(after)} >= {ONEDNN}
    assert_same_results(before, after, tmp_path, x=DATA)
    swapped = partition(before, compiler=["ccompiler", ONEDNN])
    assert {str(region.attrs["Compiler"]) for region in regions_of(swapped)} == {"ccompiler", ONEDNN}
    assert_same_results(before, swapped, tmp_path, x=DATA)


def chain_of_regions(shapes):
    """A program of one region for each shape, which computes exp(sqrt(.)) of a reshaped operand."""
    x = relay.var("x", shape=shapes[0])
    body = x
    for i, shape in enumerate(shapes):
        operand = relay.var(f"operand{i}", shape=shape)
        region = relay.Function([operand], relay.exp(relay.sqrt(operand)))
        attrs = {"Compiler": ONEDNN, "global_symbol": f"region{i}", "Primitive": 1}
        body = relay.Call(region.with_attr(attrs), [relay.reshape(body, shape)])
    return hr.IRModule.from_expr(relay.Function([x], body))


def resident_bytes():
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) * 1024


def test_regions_use_the_same_memory_one_after_another():
    """Each of ten regions has an intermediate tensor of 16 MB, and only one region runs at a time."""
    shape = (1, 4, 1024, 1024)
    model = hr.compile(chain_of_regions([shape] * 10))
    before = resident_bytes()
    model(np.zeros(shape, "float32"))
    assert not model.fallbacks
    # The input, its copy, the result, two tensors between regions, and the intermediate tensor.
    assert resident_bytes() - before < 10 * 16 * 2**20


def test_runs_of_several_threads_share_no_memory():
    """Executors of one artifact use the same regions."""
    shape = (1, 2, 128, 128)
    artifact = relay.build(chain_of_regions([shape] * 4), "llvm")

    def run(seed):
        executor = hr.graph_executor.GraphModule(artifact["default"](hr.cpu()))
        x = np.random.default_rng(seed).uniform(0, 0.1, shape).astype("float32")
        want = x
        for _ in range(4):
            want = np.exp(np.sqrt(want))
        errors = []
        for _ in range(50):
            executor.run(x=x)
            errors.append(np.max(np.abs(executor.get_output(0).numpy() / want - 1)))
        return errors

    with ThreadPoolExecutor(4) as pool:
        errors = list(pool.map(run, range(4)))
    assert np.max(errors) < 1e-4


def answers(text, *inputs):
    """Results on onednn and natively, and the program with onednn's regions."""
    module = relay.fromtext('#[version = "0.0.5"]\n' + text)
    got, want = (np.asarray(hr.compile(module, backends=names).run(list(inputs))[0]) for names in ([ONEDNN], []))
    return got, want, str(relay.op.contrib.partition_for_onednn(module))


def gelu_of(half, root):
    """The formula of gelu, the two multiplications with these constants."""
    return (
        "def @main(%x: Tensor[(2, 8), float32]) {\n"
        f"  let %a = multiply(%x, {half}f);\n  let %b = add(erf(multiply(%x, {root}f)), 1f);\n  multiply(%a, %b)\n}}"
    )


def test_what_only_looks_like_gelu():
    """The constants count where the formula has them."""
    x = tensor(2, 8)
    for half, root, is_gelu in ((0.5, 0.70710678, True), (0.70710678, 0.5, False), (0.5, 0.5, False)):
        got, want, program = answers(gelu_of(half, root), x)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
        assert ('Composite="onednn.gelu"' in program) == is_gelu, (half, root)


@pytest.mark.parametrize(("size", "dilation", "is_taken"), [(1, 2, False), (3, 2, True), (2, 3, False)])
def test_dilated_pools_that_step_over_the_data(size, dilation, is_taken):
    """A window that reads padding alone gives -inf, for which oneDNN has another number."""
    got, want, program = answers(
        f"def @main(%x: Tensor[(1, 8, 1, {size}), float32]) {{\n  nn.max_pool2d(%x, pool_size=[1, 2], strides=[1, 1], "
        f"dilation=[1, {dilation}], padding=[0, 1, 0, 1])\n}}",
        tensor(1, 8, 1, size),
    )
    np.testing.assert_array_equal(got, want)
    assert ('Compiler="onednn"' in program) == is_taken


def test_a_forked_child_runs_regions_of_several_threads():
    """The child has none of OpenMP's threads, and would wait for them."""
    program = textwrap.dedent("""
        import os, signal, numpy as np, headrace as hr
        from headrace import relay
        text = '#[version = "0.0.5"]\\ndef @main(%x: Tensor[(1, 32, 28, 28), float32], '
        text += '%w: Tensor[(32, 32, 3, 3), float32]) {'
        text += ' nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=32, kernel_size=[3, 3]) }'
        module = relay.fromtext(text)
        inputs = [np.ones((1, 32, 28, 28), "f"), np.ones((32, 32, 3, 3), "f")]
        model = hr.compile(module, backends=["onednn"], threads=2)
        want = np.asarray(model.run(inputs)[0])
        for known in (True, False):
            child = os.fork()
            if child == 0:
                signal.alarm(60)
                own = model if known else hr.compile(module, backends=["onednn"], threads=2, cache=None)
                os._exit(0 if np.allclose(np.asarray(own.run(inputs)[0]), want) else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, known
        assert np.array_equal(np.asarray(model.run(inputs)[0]), want)
        print("ended")
    """)
    ran = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "ended\n"), ran.stderr
