"""Configurations of pipelines: what may be connected, how they print, what `build` refuses and what it calls."""

import sys

import numpy as np
import pytest

hr = pytest.importorskip("headrace", reason="the package is not built (nanobind is not in .venv)")
from headrace import cc, pipeline_executor, relay  # noqa: E402
from pipeline_kit import connect_three, const, module, three_modules  # noqa: E402

A = module("x", lambda x: (x + const(1), x * const(2)))
B = module("x y", lambda x, y: x - y)
TALL = module("x", lambda x: x + const(1), shape=(4, 3))
INTS = module("x", lambda x: x + x, dtype="int32")
NO_MAIN = hr.IRModule()
ILL_TYPED = hr.IRModule.from_expr(relay.Function([], relay.const(np.ones(2)) + relay.const(np.ones(3))))


@pytest.fixture
def cfg():
    return pipeline_executor.PipelineConfig()


def shown(cfg):
    """All that a configuration tells of itself."""
    return str(cfg), str(cfg.get_config())


# --- wrong configurations


WRONG_LOOKUPS = [
    (None, lambda c: c["foo"], "foo not found! A PipelineConfig has 'input', 'output' and 'param_group'"),
    (None, lambda c: c["param"], "param not found!"),
    (None, lambda c: c["Input"], "Input not found!"),
    (None, lambda c: c[3], "asked for an IRModule, 'input', 'output' or 'param_group', got int"),
    (None, lambda c: c[None], "got None"),
    (None, lambda c: c[A["main"]], "got Function; IRModule.from_expr makes a module of a function"),
    (None, lambda c: c[A, "second"], "stage 'second' not found! cfg.stage(mod, NAME) makes a stage"),
    (None, lambda c: c[A, []], "stage [] not found!"),
    (None, lambda c: c[A, {}], "a tuple; from_onnx gives (mod, params): write cfg[mod], and cfg[mod].params = params"),
    (None, lambda c: c[A, hr.container.Map({})], "got a tuple; from_onnx gives (mod, params)"),
    (None, lambda c: c.stage((A, {}), "s"), "an IRModule, got tuple; from_onnx gives (mod, params), so give mod"),
    (None, lambda c: c[A, ""], "stage '' not found!"),
    (None, lambda c: c[A]["foo"], "foo not found! A module has 'input', 'output' and 'param'"),
    (None, lambda c: c[A][0], "0 not found!"),
    (None, lambda c: c[A]["input"]["nope"], "Cannot find nope in binding list input: mod1 has x"),
    (None, lambda c: c[B]["input"][0], "Cannot find 0 in binding list input: mod1 has x, y"),
    (None, lambda c: c[A]["input"][None], "Cannot find None in binding list input"),
    (None, lambda c: c[A]["output"][9], "Cannot find 9 in binding list output: mod1 has 0, 1"),
    (None, lambda c: c[A]["output"]["9"], "Cannot find 9 in binding list output"),
    (None, lambda c: c[A]["output"][-1], "Cannot find -1 in binding list output"),
    (None, lambda c: c[A]["output"]["00"], "Cannot find 00 in binding list output"),
    (None, lambda c: c[A]["output"]["first"], "Cannot find first in binding list output"),
    (None, lambda c: c[A]["output"][True], "Cannot find True in binding list output"),
    (None, lambda c: c[A]["output"][1.0], "Cannot find 1.0 in binding list output"),
    (None, lambda c: c[B]["output"][1], "Cannot find 1 in binding list output: mod1 has 0"),
    (None, lambda c: c["output"]["first"], "Cannot find first in binding list output: the pipeline's ports of this"),
    (None, lambda c: c["output"][-1], "Cannot find -1 in binding list output"),
    (None, lambda c: c["output"]["01"], "are numbers from 0 on"),
    (None, lambda c: c["input"][None], "Cannot find None in binding list input"),
    (None, lambda c: c["input"][""], "are named by a str"),
    (None, lambda c: c["param_group"]["p",], "Cannot find ('p',) in binding list param"),
    (None, lambda c: c[NO_MAIN], "the module of a stage: the module has no function '@main'"),
    (None, lambda c: c[ILL_TYPED], "the module of a stage: "),
    (None, lambda c: c.stage(3, "s"), "stage: mod: expected an IRModule, got int"),
    (None, lambda c: c.stage(A, ""), "stage: name: expected a name, as in cfg.stage(mod, 'second'), got ''"),
    (None, lambda c: c.stage(A, 5), "got 5"),
    (lambda c: c.stage(A, "s"), lambda c: c.stage(A, "s"), "the module has a stage 's'; cfg[mod, 's'] is it"),
    (None, lambda c: setattr(c[A], "tagret", "llvm"), "a module has no setting 'tagret'; its settings are target,"),
    (None, lambda c: setattr(c[A], "idx", 3), "a module has no setting 'idx'"),
]


def x_of(c, mod):
    return c[mod]["input"]["x"]


def out_of(c, mod, index=0):
    return c[mod]["output"][index]


ITSELF = "a module cannot feed itself"
NO_SOURCE = "an input of a module is not a source; connect the port that feeds it to it"
END = "an output of the pipeline is not a source"
INNER = "an input of the pipeline feeds inputs of modules only"
GROUP = "a parameter group feeds the parameters of a module, cfg[mod]['param']"
PIPE = {"in": lambda c: c["input"]["d"], "out": lambda c: c["output"][0], "group": lambda c: c["param_group"]["p"]}
OF_A = {"in": lambda c: x_of(c, A), "out": lambda c: out_of(c, A), "param": lambda c: c[A]["param"]}
OF_B = {"in": lambda c: x_of(c, B), "out": lambda c: out_of(c, B), "param": lambda c: c[B]["param"]}
# The source, the destination, and the error of connecting them.
WRONG_CONNECTIONS = [
    (OF_A["out"], OF_A["in"], f"cannot connect mod1.output(0) to mod1.x: {ITSELF}"),
    (OF_A["out"], OF_A["out"], f"cannot connect mod1.output(0) to mod1.output(0): {ITSELF}"),
    (OF_A["in"], OF_A["in"], f"cannot connect mod1.x to mod1.x: {NO_SOURCE}"),
    (OF_A["in"], OF_B["in"], f"cannot connect mod1.x to mod2.x: {NO_SOURCE}"),
    (OF_A["in"], OF_B["out"], f"cannot connect mod1.x to mod2.output(0): {NO_SOURCE}"),
    (OF_A["in"], PIPE["out"], f"cannot connect mod1.x to pipeline output(0): {NO_SOURCE}"),
    (OF_A["in"], PIPE["in"], f"cannot connect mod1.x to pipeline input d: {NO_SOURCE}"),
    (
        OF_A["out"],
        OF_B["out"],
        "cannot connect mod1.output(0) to mod2.output(0): an output of a module feeds inputs",
    ),
    (OF_A["out"], PIPE["in"], "cannot connect mod1.output(0) to pipeline input d: the caller sets the inputs"),
    (OF_A["out"], OF_B["param"], "cannot connect mod1.output(0) to mod2.param: only a parameter group feeds"),
    (OF_A["out"], PIPE["group"], "cannot connect mod1.output(0) to parameter group p: only a parameter group"),
    (OF_A["param"], OF_B["param"], "cannot connect mod1.param to mod2.param: the parameters of a module are no"),
    (PIPE["out"], OF_A["out"], f"cannot connect pipeline output(0) to mod1.output(0): {END}"),
    (PIPE["out"], OF_A["in"], f"cannot connect pipeline output(0) to mod1.x: {END}"),
    (PIPE["out"], PIPE["out"], f"cannot connect pipeline output(0) to pipeline output(0): {END}"),
    (PIPE["in"], OF_A["out"], f"cannot connect pipeline input d to mod1.output(0): {INNER}"),
    (PIPE["in"], PIPE["out"], f"cannot connect pipeline input d to pipeline output(0): {INNER}"),
    (PIPE["in"], PIPE["in"], f"cannot connect pipeline input d to pipeline input d: {INNER}"),
    (PIPE["in"], OF_A["param"], "cannot connect pipeline input d to mod1.param: only a parameter group feeds"),
    (PIPE["group"], OF_A["in"], f"cannot connect parameter group p to mod1.x: {GROUP}"),
    (PIPE["group"], PIPE["out"], f"cannot connect parameter group p to pipeline output(0): {GROUP}"),
    (
        OF_A["out"],
        lambda c: "mod2.x",
        "mod1.output(0): connect takes a port, as cfg[mod]['input']['data_0'] is, got str",
    ),
    (
        OF_A["out"],
        lambda c: None,
        "mod1.output(0): connect takes a port, as cfg[mod]['input']['data_0'] is, got None",
    ),
    (PIPE["in"], lambda c: c[A]["input"], "pipeline input d: connect takes a port"),
    (
        OF_A["out"],
        lambda c: x_of(pipeline_executor.PipelineConfig(), B),
        "cannot connect mod1.output(0) to mod1.x: the two are of different PipelineConfigs",
    ),
    (
        OF_A["out"],
        lambda c: pipeline_executor.ModuleWrapper(B)["input"]["x"],
        "a module.x is of no PipelineConfig; cfg[mod] gives the stage of a module",
    ),
    (
        OF_A["out"],
        lambda c: x_of(c, TALL),
        "cannot connect mod1.output(0) to mod2.x: the types differ: "
        "Tensor[(3, 3), float32] and Tensor[(4, 3), float32]",
    ),
    (
        OF_A["out"],
        lambda c: x_of(c, INTS),
        "cannot connect mod1.output(0) to mod2.x: the types differ: Tensor[(3, 3), float32] and Tensor[(3, 3), int32]",
    ),
]
C = module("x", lambda x: x + const(1))


def connect_a_to_b(c):
    out_of(c, A).connect(x_of(c, B))


def connect_a_to_c(c):
    connect_a_to_b(c)
    out_of(c, B).connect(x_of(c, C))


WRONG_CYCLES = [
    (
        connect_a_to_b,
        lambda c: out_of(c, B).connect(x_of(c, A)),
        "cannot connect mod2.output(0) to mod1.x: this would make a cycle: mod1 -> mod2 -> mod1",
    ),
    (
        connect_a_to_c,
        lambda c: out_of(c, C).connect(x_of(c, A)),
        "cannot connect mod3.output(0) to mod1.x: this would make a cycle: mod1 -> mod2 -> mod3 -> mod1",
    ),
]


def complete(c):
    c["input"]["d"].connect(x_of(c, A))
    out_of(c, A).connect(c["output"][0])


def with_setting(name, value):
    def prepare(c):
        complete(c)
        setattr(c[A], name, value)

    return prepare


def to_two_types(c):
    complete(c)
    c["input"]["d"].connect(x_of(c, TALL))


def fed_twice(c):
    complete(c)
    c["input"]["e"].connect(x_of(c, A))


def bound_twice(c):
    complete(c)
    out_of(c, A, 1).connect(c["output"]["0"])


def without_source(c):
    complete(c)
    out_of(c, A).connect(x_of(c, B))


def with_gap(c):
    complete(c)
    out_of(c, A, 1).connect(c["output"][2])


def of_two_modules(c):
    complete(c)
    c["input"]["t"].connect(x_of(c, TALL))
    c["param_group"]["p"].connect(c[A]["param"])
    c["param_group"]["p"].connect(c[TALL]["param"])


def with_two_problems(c):
    without_source(c)
    out_of(c, A, 1).connect(c["output"]["0"])


AFFINITY = 'mod1.cpu_affinity: expected numbers of processors, as "0,1", got'
# The configuration, and the error of building it.
WRONG_BUILDS = [
    (None, "build: the configuration is empty; connect inputs and outputs"),
    (lambda c: x_of(c, A), "build: the configuration is empty"),
    (lambda c: c["input"]["d"], "build: the configuration is empty"),
    (lambda c: c.stage(A, "s"), "2 problems: mod1.x has no source; connect an output of a module or cfg['input']"),
    (lambda c: c["input"]["d"].connect(x_of(c, A)), "build: the pipeline has no output; connect an output of a"),
    (lambda c: out_of(c, A).connect(c["output"][0]), "build: mod1.x has no source; connect"),
    (without_source, "build: mod2.y has no source"),
    (fed_twice, "build: mod1.x has 2 sources: pipeline input d, pipeline input e; keep one"),
    (with_setting("params", {"x": np.ones((3, 3))}), "build: mod1.x has 2 sources: pipeline input d, mod1.params"),
    (bound_twice, "output(0) of the pipeline is bound 2 times, to mod1.output(0) and mod1.output(1); keep one"),
    (with_gap, "the outputs of the pipeline are numbered from 0 on, and output(1) is not connected"),
    (
        to_two_types,
        "pipeline input d feeds inputs of different types: mod1.x is Tensor[(3, 3), float32] and mod2.x is "
        "Tensor[(4, 3), float32]; give each an input of the pipeline",
    ),
    (of_two_modules, "parameter group p is connected to 2 modules: mod1, mod2; give each a group of its own"),
    (with_two_problems, "the configuration has 2 problems: mod2.y has no source"),
    (with_setting("params", [1]), "build: mod1.params: expected a dict, got list"),
    (with_setting("cpu_affinity", "a"), f"{AFFINITY} 'a'"),
    (with_setting("cpu_affinity", "0,-1"), f"{AFFINITY} '0,-1'"),
    (with_setting("cpu_affinity", 3), f"{AFFINITY} 3"),
    (with_setting("cpu_affinity", [0.5]), "mod1.cpu_affinity: mod1.cpu_affinity[0]: expected an int, got 0.5"),
    (with_setting("dev", "cpu"), "build: mod1.dev: expected a device, as headrace.cpu(0) is, got str"),
    (with_setting("dev", hr.device("cuda", 0)), "build: mod1.dev: cuda(0) is not here"),
    (
        with_setting("build_func", "relay.build"),
        "build: mod1.build_func: expected a function like relay.build, got",
    ),
    (with_setting("build_func", lambda *args, **kwargs: None), "build of mod1: its build_func gave None"),
    (with_setting("target", "pdp11"), "build of mod1: "),
]


def wrong_configurations():
    """Yields for each case a configuration to begin with, the wrong step, and the text of its error."""
    yield from WRONG_LOOKUPS
    for source, destination, message in WRONG_CONNECTIONS:
        yield None, lambda c, s=source, d=destination: s(c).connect(d(c)), message
    yield from WRONG_CYCLES
    for prepare, message in WRONG_BUILDS:
        yield prepare, pipeline_executor.build, message
    yield None, lambda c: pipeline_executor.build("cfg"), "build: expected a PipelineConfig, got str"
    yield None, lambda c: pipeline_executor.build(A), "build: expected a PipelineConfig, got IRModule"


WRONG = list(wrong_configurations())


def test_there_are_many_wrong_configurations():
    assert len(WRONG) >= 60


@pytest.mark.parametrize(("prepare", "wrong", "message"), WRONG)
def test_a_wrong_configuration_is_refused_and_changes_nothing(cfg, prepare, wrong, message):
    if prepare is not None:
        prepare(cfg)
    before = shown(cfg)
    with pytest.raises(RuntimeError) as caught:
        wrong(cfg)
    assert message in str(caught.value)
    assert isinstance(caught.value, hr.UserError)
    assert shown(cfg) == before


def test_a_refused_connection_leaves_the_way_free(cfg):
    out_of(cfg, A).connect(x_of(cfg, B))
    with pytest.raises(RuntimeError):
        out_of(cfg, B).connect(x_of(cfg, A))
    assert x_of(cfg, A).parents == []
    assert out_of(cfg, B).bindings == []
    cfg["input"]["d"].connect(x_of(cfg, A))
    cfg["input"]["e"].connect(cfg[B]["input"]["y"])
    out_of(cfg, B).connect(cfg["output"][0])
    assert pipeline_executor.build(cfg).pipeline_mods.keys() == {1, 2}


# --- printing, and the configuration as a dict


THREE = """\
Params
  |group: mod1:param

Inputs
  |data_a: mod1:data_0
  |data_b: mod2:data_1

output
  |output(0) : mod3.output(0)
  |output(1) : mod1.output(2)

connections
  |mod1.output(0)-> mod2.data_0
  |mod1.output(1)-> mod3.data_0
  |mod2.output(0)-> mod3.data_1
"""


def test_a_configuration_prints_its_sources(cfg, capsys):
    first, second, third = three_modules()
    connect_three(cfg, first, second, third)
    cfg["param_group"]["group"].connect(cfg[first]["param"])
    print(cfg)
    assert capsys.readouterr().out == THREE + "\n"


def test_an_empty_configuration_prints_its_sections(cfg):
    assert str(cfg) == "Params\n\nInputs\n\noutput\n\nconnections\n"
    assert cfg.get_config() == {"module_connection": {}, "input_connection": [], "param_connection": []}


def test_sources_print_once_and_by_their_numbers(cfg):
    many = module("x", lambda x: tuple(x + const(i) for i in range(11)))
    for name in ("d10", "d2", "name"):
        cfg["input"][name].connect(cfg[many if name == "d2" else B]["input"]["y" if name == "name" else "x"])
    out_of(cfg, many, 10).connect(cfg["output"]["10"])
    out_of(cfg, many, 9).connect(cfg["output"]["2"])
    out_of(cfg, many, 2).connect(x_of(cfg, A))
    out_of(cfg, many, 2).connect(cfg.stage(B, "other")["input"]["x"])
    out_of(cfg, many, 2).connect(cfg[B, "other"]["input"]["y"])
    out_of(cfg, many, 10).connect(cfg.stage(A, "last")["input"]["x"])
    assert str(cfg) == (
        "Params\n\nInputs\n  |name: mod1:y\n  |d2: mod2:x\n  |d10: mod1:x\n\n"
        "output\n  |output(2) : mod2.output(9)\n  |output(10) : mod2.output(10)\n\n"
        "connections\n  |mod2.output(2)-> mod3.x mod4.x mod4.y\n  |mod2.output(10)-> mod5.x\n"
    )
    assert repr(cfg["input"]["d2"]) == "|d2: mod2:x"
    assert repr(cfg["input"]["none"]) == "|none:"


def test_reading_changes_nothing(cfg):
    first, second, third = three_modules()
    connect_three(cfg, first, second, third)
    before = shown(cfg)
    for reader in (str, repr, pipeline_executor.PipelineConfig.get_config):
        reader(cfg)
    _ = cfg[A], cfg[A]["input"]["x"], cfg[A].name, cfg["input"]["other"], cfg["output"][7], cfg["param_group"]["p"]
    _ = cfg[first]["output"][0].bindings.append(None)
    cfg[A].input_bindings.get_binding_data_type("x")
    cfg.dag_topology_sort()
    assert shown(cfg) == before
    assert list(cfg.mod_wrapper) == [first, second, third]
    assert shown(cfg) == before
    assert [stage.name for stage in cfg.mod_wrapper.values()] == ["mod1", "mod2", "mod3"]
    factory = pipeline_executor.build(cfg)
    assert shown(cfg) == before
    assert pipeline_executor.build(cfg).mods_config == factory.mods_config


def settings(**others):
    empty = {"target_host": None, "mod_name": "default", "build": None, "params": None, "target": None, "dev": None}
    return {**empty, **others}


def test_the_configuration_as_a_dict(cfg):
    first, second, third = three_modules()
    connect_three(cfg, first, second, third)
    cfg["param_group"]["group"].connect(cfg[first]["param"])
    cfg[first].target, cfg[first].dev, cfg[first].cpu_affinity = "llvm", hr.cpu(0), "0"
    cfg[second].fcompile, cfg[second].export_cc, cfg[second].target_host = cc.create_shared, "gcc", "llvm"
    cfg[third].params, cfg[third].build_func = {"w": 1}, relay.build
    config = cfg.get_config()
    to_pipeline = {"mod_idx": 0, "input_name": "1"}
    outputs = [
        {"output_idx": 0, "dependencies": [{"mod_idx": 2, "input_name": "data_0"}]},
        {"output_idx": 1, "dependencies": [{"mod_idx": 3, "input_name": "data_0"}]},
        {"output_idx": 2, "dependencies": [to_pipeline]},
    ]
    second_output = {"output_idx": 0, "dependencies": [{"mod_idx": 3, "input_name": "data_1"}]}
    last = {"output_idx": 0, "dependencies": [{"mod_idx": 0, "input_name": "0"}]}
    assert config["module_connection"] == {
        first: settings(pipeline={"mod_idx": 1, "output": outputs, "cpu_affinity": "0"}, target="llvm", dev=hr.cpu(0)),
        second: settings(
            pipeline={"mod_idx": 2, "output": [second_output]},
            fcompile=cc.create_shared,
            export_cc="gcc",
            target_host="llvm",
        ),
        third: settings(pipeline={"mod_idx": 3, "output": [last]}, params={"w": 1}, build=relay.build),
    }
    assert list(config["module_connection"]) == [first, second, third]
    assert config["input_connection"] == [
        {"global_interface_name": "data_a", "mod_idx": 1, "module_interface_name": "data_0"},
        {"global_interface_name": "data_b", "mod_idx": 2, "module_interface_name": "data_1"},
    ]
    assert config["param_connection"] == [{"global_param_name": "group", "mod_idx": 1}]


def test_one_source_may_feed_many(cfg):
    cfg["input"]["d"].connect(x_of(cfg, A))
    cfg["input"]["d"].connect(x_of(cfg, B))
    cfg["input"]["d"].connect(cfg[B]["input"]["y"])
    second = cfg.stage(B, "both")
    out_of(cfg, A).connect(second["input"]["x"])
    out_of(cfg, A).connect(second["input"]["y"])
    out_of(cfg, A).connect(cfg["output"][1])
    second["output"][0].connect(cfg["output"][0])
    assert [port.get_name() for port in cfg["input"]["d"].bindings] == [("mod1", "x"), ("mod2", "x"), ("mod2", "y")]
    assert cfg.get_config()["input_connection"] == [
        {"global_interface_name": "d", "mod_idx": 1, "module_interface_name": "x"},
        {"global_interface_name": "d", "mod_idx": 2, "module_interface_name": "x"},
        {"global_interface_name": "d", "mod_idx": 2, "module_interface_name": "y"},
    ]
    assert "  |mod1.output(0)-> mod3.x mod3.y\n" in str(cfg)
    assert pipeline_executor.build(cfg).pipeline_mods.keys() == {1, 2, 3}


def test_connecting_again_changes_nothing(cfg):
    complete(cfg)
    before = shown(cfg)
    complete(cfg)
    assert shown(cfg) == before
    pipeline_executor.build(cfg)


# --- stages: their order, several of one module, names


def test_stages_are_numbered_along_the_connections(cfg):
    mods = [module("x", lambda x: x + const(1)) for _ in range(4)]
    for source, destination in ((3, 2), (2, 1), (1, 0)):
        out_of(cfg, mods[source]).connect(x_of(cfg, mods[destination]))
    assert [cfg[mod].idx for mod in mods] == [4, 3, 2, 1]
    assert [cfg[mod].name for mod in mods] == ["mod4", "mod3", "mod2", "mod1"]
    assert [cfg.get_mod_idx(mod) for mod in mods] == [4, 3, 2, 1]
    assert list(cfg.get_config()["module_connection"]) == mods[::-1]


def test_stages_that_nothing_orders_keep_the_order_in_which_they_came(cfg):
    mods = [module("x", lambda x: x + const(1)) for _ in range(5)]
    for mod in mods:
        cfg[mod].target = "llvm"
    assert [cfg[mod].idx for mod in mods] == [1, 2, 3, 4, 5]
    out_of(cfg, mods[4]).connect(x_of(cfg, mods[1]))  # which waits for the next sweep, the others do not
    out_of(cfg, mods[0]).connect(x_of(cfg, mods[3]))
    assert [cfg[mod].idx for mod in mods] == [1, 5, 2, 3, 4]


def sweep_over(count, edges):
    """The order that taking stages again and again gives, each when all that feed it are taken; of stages by number."""
    order = []
    while len(order) < count:
        for stage in range(count):
            if stage not in order and all(source in order for source, fed in edges if fed == stage):
                order.append(stage)
    return order


@pytest.mark.parametrize("seed", range(20))
def test_random_configurations_are_numbered_as_by_sweeping(cfg, seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 12))
    stages = [cfg.stage(B, f"s{i}") for i in range(count)]
    edges = []
    for _ in range(3 * count):
        source, fed = (int(i) for i in rng.integers(0, count, 2))
        depends_on_fed = {fed}
        for _ in range(count):
            depends_on_fed |= {after for before, after in edges if before in depends_on_fed}
        port = stages[fed]["input"]["xy"[int(rng.integers(0, 2))]]
        if source in depends_on_fed:
            with pytest.raises(RuntimeError, match="cannot feed itself" if source == fed else "would make a cycle"):
                stages[source]["output"][0].connect(port)
        else:
            stages[source]["output"][0].connect(port)
            edges.append((source, fed))
    assert len(edges) > 0, seed
    order = sweep_over(count, edges)
    assert [stages[i].idx for i in order] == list(range(1, count + 1)), (seed, edges)


def test_a_deep_configuration_is_numbered_and_checked_without_recursion(cfg):
    stages = [cfg.stage(A, f"s{i}") for i in range(2000)]
    for source, destination in zip(stages[1:], stages, strict=False):
        source["output"][0].connect(destination["input"]["x"])
    assert [stage.idx for stage in stages[:3]] == [2000, 1999, 1998]
    with pytest.raises(RuntimeError, match="this would make a cycle: mod1 -> mod2"):
        stages[0]["output"][0].connect(stages[-1]["input"]["x"])
    last = stages[0]["input"]["x"]
    assert not last.check_dag_acyclic(stages[-1], {"x": last})


def test_the_same_module_may_be_several_stages(cfg):
    second = cfg.stage(A, "second")
    assert cfg[A, "second"] is second
    assert cfg[A] == cfg[A]
    assert cfg[A] != second
    assert second == cfg[A, "second"]
    cfg["input"]["d"].connect(x_of(cfg, A))
    out_of(cfg, A, 1).connect(second["input"]["x"])
    second["output"][1].connect(cfg["output"][0])
    second.target = "llvm"
    assert cfg[A].target is None
    assert list(cfg.get_config()["module_connection"]) == [A, (A, "second")]
    assert "  |mod1.output(1)-> mod2.x\n" in str(cfg)
    assert [type(parts["lib"]).__name__ for parts in pipeline_executor.build(cfg).pipeline_mods.values()] == [
        "GraphExecutorFactoryModule"
    ] * 2


def test_a_number_and_its_text_are_one_port(cfg):
    assert cfg[A]["output"][0] is cfg[A]["output"]["0"]
    assert cfg["output"][0] is cfg["output"]["0"] is cfg.pipe_output(0)
    assert cfg["input"][0] is cfg["input"]["0"] is cfg.pipe_input("0")
    out_of(cfg, A).connect(cfg["output"][0])
    out_of(cfg, A, "1").connect(cfg["output"]["0"])
    with pytest.raises(RuntimeError, match="bound 2 times"):
        pipeline_executor.build(cfg)


def test_names_and_numbers_of_ports(cfg):
    connect_three(cfg, *three_modules())
    first, second, third = cfg.mod_wrapper
    port = cfg[second]["input"]["data_1"]
    assert (port.get_name(), port.get_owner_idx(), port.is_global_interface()) == (("mod2", "data_1"), 2, False)
    port = cfg["input"]["data_a"]
    assert (port.get_name(), port.get_owner_idx(), port.is_global_interface()) == (("", "data_a"), 0, True)
    assert port.is_pipeline_executor_interface()
    assert [source.get_name() for source in cfg[third]["input"]["data_1"].parents] == [("mod2", "0")]
    assert (cfg[first].is_root_mod(), cfg[second].is_root_mod()) == (True, False)
    assert cfg[third]["input"]["data_0"].check_dag_acyclic(cfg[third], cfg[first]["input"].bindings)
    assert not cfg[third]["input"]["data_0"].check_dag_acyclic(cfg[first], cfg[third]["input"].bindings)
    assert not cfg[third]["input"]["data_0"].check_dag_acyclic(cfg[third], cfg[third]["input"].bindings)


def test_types_of_ports(cfg):
    tensor = relay.TensorType((3, 3), "float32")
    assert cfg[A].get_data_type("x", "input") == tensor
    assert cfg[A].get_data_type(1, "output") == cfg[A].get_data_type("1", "output") == tensor
    assert cfg[A]["output"].get_binding_data_type(0) == tensor
    assert (cfg[A].get_data_type("y", "input"), cfg[A].get_data_type(2, "output")) == (None, None)
    assert (cfg[A].get_data_type("x", "param"), cfg["input"].get_binding_data_type("d")) == (None, None)
    nested = module("x", lambda x: (x, relay.Tuple([x + const(1), relay.cast(x, "int32")])))
    assert [str(cfg[nested]["output"][i].data_type) for i in range(3)] == [
        "Tensor[(3, 3), float32]",
        "Tensor[(3, 3), float32]",
        "Tensor[(3, 3), int32]",
    ]


def test_a_number_that_is_set_holds_until_stages_are_numbered_again(cfg):
    complete(cfg)
    cfg[A].set_idx_name(5)
    assert (cfg[A].idx, cfg[A].name) == (5, "mod5")
    cfg.dag_topology_sort()
    assert (cfg[A].idx, cfg[A].name) == (1, "mod1")
    alone = pipeline_executor.ModuleWrapper(A)
    alone.set_idx_name(2)
    alone.target = "llvm"
    assert (alone.idx, alone.name, alone.target) == (2, "mod2", "llvm")


def test_names_are_where_programs_for_tvm_look_for_them():
    names = "Binding BindingList ModuleWrapper PipelineConfig PipelineExecutorFactoryModule PipelineModule"
    for name in [*names.split(), "build", "create", "pipeline_executor_enabled"]:
        assert getattr(hr.contrib.pipeline_executor, name) is getattr(pipeline_executor, name)
    for owner in (pipeline_executor.PipelineConfig, pipeline_executor.ModuleWrapper):
        assert owner.Binding is pipeline_executor.Binding
        assert owner.BindingList is pipeline_executor.BindingList
    assert pipeline_executor.PipelineConfig.ModuleWrapper is pipeline_executor.ModuleWrapper
    from headrace.contrib import pipeline_executor_build

    assert pipeline_executor_build.build is pipeline_executor.build
    assert pipeline_executor_build.PipelineConfig is pipeline_executor.PipelineConfig
    assert pipeline_executor_build.pipeline_executor_build_enabled() is pipeline_executor.pipeline_executor_enabled()
    with pytest.raises(RuntimeError, match="export_library: factory: expected what build"):
        pipeline_executor_build.export_library("factory", ".")
    assert issubclass(pipeline_executor.PipelineExecutorMissingError, hr.MissingError)


# --- what build calls


def test_build_func_is_called_for_each_module_in_the_order_of_the_stages(cfg):
    first, second, third = three_modules()
    connect_three(cfg, first, second, third)
    calls = []

    def recorder(name):
        def build(*args, **kwargs):
            calls.append((name, args, kwargs))
            return f"code of {name}"

        return build

    params = {"w": np.ones(2, "float32")}
    for name, mod in (("third", third), ("first", first), ("second", second)):
        cfg[mod].build_func = recorder(name)
    cfg[second].target, cfg[second].target_host, cfg[second].params = "llvm -mcpu=x86-64-v3", "llvm", params
    factory = pipeline_executor.build(cfg)
    plain = {"params": None, "target_host": None, "mod_name": "default"}
    assert calls == [
        ("first", (first, None), plain),
        ("second", (second, "llvm -mcpu=x86-64-v3"), {**plain, "params": params, "target_host": "llvm"}),
        ("third", (third, None), plain),
    ]
    assert calls[1][2]["params"] is params
    assert [factory.pipeline_mods[i]["lib"] for i in (1, 2, 3)] == ["code of first", "code of second", "code of third"]


def test_an_error_of_build_func_is_the_callers(cfg):
    complete(cfg)

    def build(*args, **kwargs):
        raise KeyError("mine")

    cfg[A].build_func = build
    with pytest.raises(KeyError, match="mine"):
        pipeline_executor.build(cfg)


def test_a_module_that_was_changed_is_refused_when_its_ports_are_others(cfg):
    mod = module("x", lambda x: x + const(1))
    cfg["input"]["d"].connect(cfg[mod]["input"]["x"])
    cfg[mod]["output"][0].connect(cfg["output"][0])
    mod.update_func("main", module("x", lambda x: x * const(2))["main"])
    assert pipeline_executor.build(cfg).pipeline_mods.keys() == {1}
    for other in (module("y", lambda y: y * const(2)), module("x", lambda x: relay.cast(x, "int32")), TALL):
        mod.update_func("main", other["main"])
        with pytest.raises(RuntimeError, match="the inputs or outputs of mod1's module were changed after cfg"):
            pipeline_executor.build(cfg)


def test_nothing_is_compiled_for_an_incomplete_configuration(cfg):
    complete(cfg)
    calls = []
    cfg[A].build_func = lambda *args, **kwargs: calls.append(args)
    out_of(cfg, A).connect(x_of(cfg, B))
    with pytest.raises(RuntimeError, match=r"mod2\.y has no source"):
        pipeline_executor.build(cfg)
    assert calls == []


def test_parameters_that_no_module_takes_are_told(cfg):
    cfg["input"]["x"].connect(cfg[B]["input"]["x"])
    cfg[B]["output"][0].connect(cfg["output"][0])
    cfg[B].params = {"y": np.ones((3, 3), "float32"), "nope": 3}
    with pytest.warns(
        UserWarning, match=r"^mod1\.params has nope, which the module does not take; its inputs are x, y$"
    ):
        pipeline_executor.build(cfg)


def test_what_a_factory_holds(cfg, tmp_path):
    first, second, third = three_modules()
    connect_three(cfg, first, second, third)
    cfg[second].cpu_affinity = "1, 0,1"
    cfg[third].fcompile = cc.create_shared
    factory = pipeline_executor.build(cfg)
    assert [parts["cpus"] for parts in factory.pipeline_mods.values()] == [[], [1, 0], []]
    assert factory.pipeline_mods[3]["fcompile"] is cc.create_shared
    assert all(parts["dev"] == hr.cpu(0) for parts in factory.pipeline_mods.values())
    assert [entry["mod_idx"] for entry in factory.mods_config["module_connection"]] == [1, 2, 3]
    assert factory.mods_config["module_connection"][1]["cpu_affinity"] == "1, 0,1"
    assert factory.mods_config["module_connection"][1]["dev"] == "1,0"
    modules, text = factory.graph_executor_create(factory.pipeline_mods, factory.mods_config)
    assert '"global_interface_name": "data_b"' in text
    executor = hr.graph_executor.GraphModule(modules[1])
    executor.run(data_0=np.ones((3, 3), "float32"), data_1=np.full((3, 3), 2, "float32"))
    assert executor.get_output(0).numpy().tolist() == [[8.0] * 3] * 3


@pytest.mark.parametrize(
    ("path", "message"),
    [("nowhere", "export_library: there is no folder"), (3, "export_library: directory_path: expected a path")],
)
def test_a_pipeline_is_exported_to_a_folder(cfg, tmp_path, path, message):
    complete(cfg)
    factory = pipeline_executor.build(cfg)
    with pytest.raises(RuntimeError, match=message) as caught:
        factory.export_library(tmp_path / path if isinstance(path, str) else path)
    assert isinstance(caught.value, hr.UserError)


def test_a_factory_needs_its_parts(tmp_path):
    empty = {"module_connection": [], "input_connection": [], "param_connection": []}
    with pytest.raises(RuntimeError, match="export_library: the factory has no modules"):
        pipeline_executor.PipelineExecutorFactoryModule({}, empty).export_library(tmp_path)
    with pytest.raises(RuntimeError, match="mods_config has no 'param_connection'"):
        pipeline_executor.PipelineExecutorFactoryModule({}, {"module_connection": [], "input_connection": []})


def test_without_the_runtime_create_names_the_option(cfg, monkeypatch):
    monkeypatch.setitem(sys.modules, "headrace.pipeline", None)
    complete(cfg)
    factory = pipeline_executor.build(cfg)
    assert not pipeline_executor.pipeline_executor_enabled()
    for start in (pipeline_executor.create, pipeline_executor.PipelineModule):
        with pytest.raises(RuntimeError, match="build it with the CMake option USE_PIPELINE_EXECUTOR=ON") as caught:
            start(factory)
        assert isinstance(caught.value, hr.MissingError)
