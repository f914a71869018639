"""Calls are put on backends, where names and effects matter."""

import os
import re
import subprocess
import sys

import headrace as hr
import pytest
from headrace import relay

HEAD = '#[version = "0.0.5"]\n'
BACKENDS = """
from headrace.backend import Backend

class Own(Backend):
    name = "own"
    version = "1"
    def supports(self, call):
        return "not alone"
    def patterns(self):
        return [("own.both", "tanh(nn.softmax(_))"), ("own.exp", "nn.softmax(_)")]
    def cost(self, call):
        return 1.0 if str(call.op.attrs["Composite"]) == "own.both" else 1e-9
    def compile(self, regions, options):
        return [b"x"] * len(regions)
    def load(self, data):
        return lambda name, inputs, outputs: None
"""


def headrace(*words, cwd, code=0):
    command = [sys.executable, "-m", "headrace", *words, "--plugin", "own.py"]
    done = subprocess.run(command, cwd=cwd, env=dict(os.environ), capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ["m.relay", "m#1.relay", "m#2"])
def test_a_plan_that_takes_a_pattern_is_read_again(tmp_path, name):
    """The second of two ops with one name has "#2" after it, and names may hold such a mark themselves."""
    (tmp_path / "own.py").write_text(BACKENDS)
    file = name if name.endswith(".relay") else name + ".relay"
    (tmp_path / file).write_text(HEAD + "def @main(%x: Tensor[(512, 512), float32]) { tanh(nn.softmax(%x)) }\n")
    chosen = ("--backends", "own", "--placement", "cost")
    shown = headrace("explain", file, *chosen, "--save-plan", "plan.json", cwd=tmp_path)
    assert "own.exp" in shown or "by own" in shown
    headrace("compile", file, "--plan", "plan.json", "-o", "m.so", cwd=tmp_path)
    assert "by own" in headrace("inspect", "m.so", cwd=tmp_path)


TICK = """
from headrace import relay
relay.op.register("test.tick")
relay.op.get("test.tick").set_num_inputs(1)
relay.op.get("test.tick").add_argument("data", "Tensor", "The input.")
relay.op.get("test.tick").add_type_rel("Identity")
relay.op.register_stateful("test.tick")
"""
GREEDY = TICK + BACKENDS.replace('return "not alone"', "return True").replace(
    "def patterns(self):", "def others(self):"
)


def test_ops_with_effects_are_never_given_to_a_backend(tmp_path):
    (tmp_path / "own.py").write_text(GREEDY)
    (tmp_path / "m.relay").write_text(HEAD + "def @main(%x: Tensor[(2, 3), float32]) { nn.relu(test.tick(%x)) }\n")
    shown = headrace("explain", "m.relay", "--backends", "own", cwd=tmp_path)
    assert "own: an op with effects is never given to a backend" in shown
    assert re.search(r"test\.tick +native +- ", shown)
    assert re.search(r"nn\.relu +own ", shown)


def test_aliases_are_the_backend_also_for_composites():
    text = HEAD + (
        "def @main(%x: Tensor[(2, 3), float32]) {\n"
        '  %0 = fn (%a: Tensor[(2, 3), float32], Composite="onednn.ar") { nn.relu(%a) };\n  %0(%x) }\n'
    )
    module = relay.transform.InferType()(hr.parser.fromtext(text))
    for target in ("onednn", "dnnl", "mkldnn"):
        assert f'compiler="{target}"' in relay.transform.AnnotateTarget([target])(module).astext(), target
