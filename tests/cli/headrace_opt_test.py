"""Tests headrace-opt as a person at the command line sees it: results, messages, exit codes."""

import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop(1) if len(sys.argv) > 1 else "headrace-opt"
TEXT = """#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32]) {
  nn.relu(add(%x, add(1f, 2f)))
}
"""
FOLDED = """#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32]) {
  %0 = add(%x, 3f);
  nn.relu(%0)
}
"""
LOOPS = """#[tir_version = "1"]

prim_func @f(x: Buffer[(n), float32]) -> (y: Buffer[(4), float32]) {
  for i in vectorized(4) {
    y[i] = exp(x[i]);
  }
}
"""
VECTORS = """#[tir_version = "1"]

prim_func @f(x: Buffer[(n), float32]) -> (y: Buffer[(4), float32]) {
  y[ramp(0, 1, 4)] = exp(x[ramp(0, 1, 4)]);
}
"""


BIG = '#[version = "0.0.5"]\ndef @main() { (add(ones(shape=[40]), 1f), add(ones(shape=[40]), 1f)) }\n'
DIGITS = pathlib.Path(__file__).resolve().parents[2] / "models/digits.onnx"


def run(*arguments: str, text: str = "", stack_bytes: int = 0) -> subprocess.CompletedProcess:
    def limit_stack() -> None:
        if stack_bytes > 0:
            resource.setrlimit(resource.RLIMIT_STACK, (stack_bytes, resource.getrlimit(resource.RLIMIT_STACK)[1]))

    command = [PROGRAM, *arguments]
    return subprocess.run(
        command, input=text, capture_output=True, text=True, timeout=60, check=False, preexec_fn=limit_stack
    )


class HeadraceOpt(unittest.TestCase):
    def ok(self, *arguments: str, text: str = TEXT) -> subprocess.CompletedProcess:
        result = run(*arguments, text=text)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def fails(self, code: int, message: str, *arguments: str, text: str = TEXT) -> None:
        result = run(*arguments, text=text)
        self.assertEqual(result.returncode, code, result.stderr)
        self.assertIn(message, result.stderr)
        self.assertEqual(result.stdout, "")

    def test_runs_passes(self) -> None:
        self.assertEqual(self.ok("-", "--passes", "fold_constant").stdout, FOLDED)
        self.assertEqual(self.ok("-", "-p", "FoldConstant").stdout, FOLDED)

    def test_native_passes_see_the_machine_of_the_target(self) -> None:
        text = """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 64, 14, 14), float32]) {
  let %w = ones(shape=[64, 64, 3, 3], dtype="float32");
  nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=64, kernel_size=[3, 3])
}
"""
        for target, layout in ((), "NCHW8c"), (("--target", "llvm -mcpu=x86-64-v4"), "NCHW16c"):
            for passes in ("canonical,native", "canonical,AssignLayout"):
                program = self.ok("-", "-p", passes, "--hide-data", *target, text=text).stdout
                self.assertIn(f'layout="{layout}"', program)
        self.fails(3, "there is no kind of target 'lvm'", "-", "-p", "native", "--target", "lvm", text=text)

    def test_explains_fusion(self) -> None:
        text = TEXT.replace("add(1f, 2f)", "sum(%x)")
        self.assertEqual(
            self.ok("-", "-p", "fuse_ops", "--explain-fusion", text=text).stderr,
            "<stdin>:3:19: sum | add: FUSE_KINDS: 'sum' is a reduction, which ends its group\n",
        )
        both = self.ok("-", "-p", "fuse_ops", "--explain-fusion", "--max-depth", "1", text=text).stderr
        self.assertIn(
            ": add | nn.relu: FUSE_DEPTH: with 'nn.relu' the group would have more than max_depth = 1 op calls", both
        )
        bound = TEXT.replace("nn.relu(", "let %a = exp(%x);\n  nn.relu(")
        self.assertIn(
            ": exp: FUSE_SCOPE: the value of 'exp' is bound by a let",
            self.ok("-", "-p", "native", "--explain-fusion", text=bound).stderr,
        )
        self.fails(3, "--explain-fusion is about FuseOps, which is not among", "-", "-p", "inline", "--explain-fusion")

    def test_only_prints_without_passes(self) -> None:
        printed = self.ok("-").stdout
        self.assertIn("add(1f, 2f)", printed)
        self.assertEqual(self.ok("-", text=printed).stdout, printed)

    def test_type_errors_show_the_line(self) -> None:
        text = TEXT.replace("1f, 2f", "%x, 2i64")
        result = run("-", "-p", "fold_constant", text=text)
        self.assertEqual(result.returncode, 3)
        self.assertEqual(
            result.stderr.split("\n", 1)[1],
            "  at: add\n  in: <stdin>:3:19\n"
            "      nn.relu(add(%x, add(%x, 2i64)))\n"
            "                      ^^^^^^^^^^^^^\n",
        )

    def test_loop_programs(self) -> None:
        self.assertEqual(self.ok("-", text=LOOPS).stdout, LOOPS)
        self.assertEqual(self.ok("-", "-p", "vectorize_loop", "--verify-each", text=LOOPS).stdout, VECTORS)
        self.assertEqual(self.ok("-", "-p", "kernel", "--disable", "LowerMath", text=LOOPS).stdout, VECTORS)
        self.ok("-", "-p", "kernel", "--verify-text", text=LOOPS)
        diff = self.ok("-", "-p", "kernel", "--dump-diff", text=LOOPS).stderr
        self.assertIn("VectorizeLoop: changed", diff)
        self.assertIn("UnrollLoop: no change", diff)
        self.fails(
            3, "FuseOps is a pass of Relay programs, and this is a loop program", "-", "-p", "FuseOps", text=LOOPS
        )
        self.fails(3, "<stdin>:5:16: 'z' is neither", "-", text=LOOPS.replace("x[", "z["))
        self.fails(3, "not well-formed", "-", text=LOOPS.replace("vectorized(4)", "vectorized(n)"))

    def test_files(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            source, target = pathlib.Path(folder, "in.relay"), pathlib.Path(folder, "out.relay")
            source.write_text(TEXT)
            self.assertEqual(self.ok(str(source), "-p", "fold_constant", "-o", str(target)).stdout, "")
            self.assertEqual(target.read_text(), FOLDED)

    def test_no_input_is_overwritten(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            source, weights, other = folder / "in.relay", folder / "w.safetensors", folder / "other"
            source.write_text(self.ok("-", "-p", "fold_constant", "--weights", str(weights), text=BIG).stdout)
            data = weights.read_bytes()
            self.assertEqual(weights.stat().st_mode & 0o111, 0)  # data is not to be executed
            os.link(source, other)
            given = (str(source), "--input-weights", str(weights))
            for output in (source, other, folder / "." / "in.relay"):
                self.fails(3, f"cannot write '{output}': the program is read from it", *given, "-o", str(output))
                self.fails(3, "the program is read from it", *given, "--weights", str(output))
            for option in ("-o", "--weights"):
                self.fails(3, "the data of constants is read from it", *given, option, str(weights))
            both = str(folder / "new")
            self.fails(2, "--output and --weights name one file", *given, "-o", both, "--weights", both)
            self.fails(2, "weights are not text for the standard output", *given, "--weights", "-")
            self.assertEqual(weights.read_bytes(), data)
            self.assertEqual(sorted(path.name for path in folder.iterdir()), ["in.relay", "other", "w.safetensors"])
            self.ok(*given, "-o", "-")

    def test_fuses(self) -> None:
        fused = self.ok("-", "-p", "canonical,native", "--verify-each").stdout
        self.assertEqual(fused.count("Primitive=1"), 1)
        single = self.ok("-", "-p", "canonical,native", "--max-depth", "1").stdout
        self.assertEqual(single.count("Primitive=1"), 2)

    def test_level_and_disable(self) -> None:
        self.assertIn("add(1f, 2f)", self.ok("-", "-p", "canonical", "-O", "0").stdout)
        self.assertIn("add(1f, 2f)", self.ok("-", "-p", "canonical", "--disable", "fold_constant").stdout)
        lists = ("--disable-pass", "SimplifyExpr,fold_constant", "--disable-pass", "FoldScaleAxis", "--dump-diff")
        result = self.ok("-p", "canonical", *lists, "-")
        self.assertIn("add(1f, 2f)", result.stdout)
        self.assertNotRegex(result.stderr, "SimplifyExpr|FoldScaleAxis")
        self.assertEqual(self.ok("-", "-p", "fold_constant", "-O", "0").stdout, FOLDED)

    def test_dumps_go_to_the_standard_error(self) -> None:
        result = self.ok("-", "-p", "fold_constant,fuse_ops", "--dump-diff", "--time-passes")
        self.assertIn("// ---- FoldConstant: changed", result.stderr)
        self.assertIn("-  %1 = add(%x, %0);\n+  %2 = add(%x, 3f);\n-  nn.relu(%1)\n+  nn.relu(%2)\n", result.stderr)
        self.assertIn("FuseOps", result.stderr)
        self.assertNotIn("----", result.stdout)
        self.assertIn("// ---- after FoldConstant", self.ok("-", "-p", "fold_constant", "--print-after-all").stderr)

    def test_hides_data(self) -> None:
        text = '#[version = "0.0.5"]\ndef @main() { add(ones(shape=[40]), 1f) }\n'
        self.assertIn("#[metadata]", self.ok("-", "-p", "fold_constant", text=text).stdout)
        self.assertNotIn("#[metadata]", self.ok("-", "-p", "fold_constant", "--hide-data", text=text).stdout)

    def test_shows_types(self) -> None:
        shown = self.ok("-", "--show-types").stdout
        self.assertIn("nn.relu(%1) /* ty=Tensor[(2, 3), float32] */\n", shown)
        self.assertEqual(self.ok("-", text=shown).stdout, self.ok("-").stdout)
        folded = self.ok("-", "-p", "fold_constant", "--show-types").stdout
        self.assertIn("%0 = add(%x, 3f /* ty=float32 */) /* ty=Tensor[(2, 3), float32] */;\n", folded)
        self.fails(3, "'-' is a loop program, whose text has its types", "-", "--show-types", text=LOOPS)

    def test_weights_go_to_a_file_and_come_back(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            weights = str(folder / "w.safetensors")
            text = self.ok("-", "-p", "fold_constant", "--weights", weights, text=BIG).stdout
            self.assertEqual(text.count("meta[relay.Constant][0]"), 2)
            self.assertNotIn("#[metadata]", text)
            # Each content once: a header and forty floats.
            data = (folder / "w.safetensors").read_bytes()
            self.assertEqual(len(data), 8 + int.from_bytes(data[:8], "little") + 160)
            copy = folder / "copy.safetensors"
            again = self.ok("-", "--input-weights", weights, "--weights", str(copy), text=text)
            self.assertEqual(again.stdout, text)
            self.assertEqual(copy.read_bytes(), data)
            self.assertIn("#[metadata]", self.ok("-", "--input-weights", weights, text=text).stdout)
            self.fails(3, "there is no data for constant 0", "-", text=text)
            whole = self.ok("-", "--input-weights", weights, text=text).stdout
            self.fails(
                3, "the text holds the data of its constants itself", "-", "--input-weights", weights, text=whole
            )
            (folder / "half").write_bytes(data[:-80])
            self.fails(3, "the file is truncated", "-", "--input-weights", str(folder / "half"), text=text)
            self.fails(3, "cannot read the weights file '/no/w'", "-", "--input-weights", "/no/w", text=text)
            self.fails(3, "'/no/w': No such file", "-", "--weights", "/no/w")
            # A constant of another dtype or shape than the program wants is an error of the op that takes it.
            calls = text.replace("(meta[relay.Constant][0], meta[relay.Constant][0])", "nn.relu(%0, meta)")
            wrong = calls.replace("nn.relu(%0, meta)", "reshape(meta[relay.Constant][0], newshape=[7])")
            self.fails(3, "reshape", "-", "-p", "canonical", "--input-weights", weights, text=wrong)
            dtype = calls.replace("nn.relu(%0, meta)", "add(meta[relay.Constant][0], 1i64)")
            self.fails(3, "int64", "-", "-p", "canonical", "--input-weights", weights, text=dtype)
            others = data.replace(b"relay.Constant.0", b"another.weight.0")
            (folder / "others").write_bytes(others)
            self.fails(3, "tensor 'another.weight.0' is not called", "-", "--input-weights", str(folder / "others"))

    def test_reads_onnx(self) -> None:
        shape = ("--shape", "x=2,1,8,8")
        text = self.ok(str(DIGITS), *shape, "-p", "canonical,native", "--verify-text", "--hide-data").stdout
        self.assertIn("%x: Tensor[(2, 1, 8, 8), float32]", text)
        self.fails(3, "leaves these dimensions open: x[0]", str(DIGITS))
        self.fails(3, "'y', but the model's inputs are: x", str(DIGITS), "--shape", "y=1")
        self.fails(2, "--shape: 'x' must have the form", str(DIGITS), "--shape", "x")
        self.fails(3, "--shape is for ONNX models", "-", *shape)
        self.fails(3, "is for relay text", str(DIGITS), *shape, "--input-weights", "w.safetensors")

    def test_deep_text_on_a_small_stack(self) -> None:
        relay = '#[version = "0.0.5"]\ndef @main(%x: {}) {{\n{}\n}}\n'.format
        signature = "prim_func @f(x: Buffer[(n), float32]) -> (y: Buffer[(4), float32])"
        tir = ('#[tir_version = "1"]\n' + signature + " {{\n{}\n}}\n").format
        store = "y[0] = x[0];"
        n, few, many = 4000, 20, 550
        texts = {
            "parentheses": relay("float32", "(" * n + "%x" + ")" * n),
            "calls": relay("float32", "nn.relu(" * n + "%x" + ")" * n),
            "minus": relay("float32", "- " * n + "%x"),
            "blocks": relay("float32", "{" * n + "%x" + "}" * n),
            "functions": relay("float32", "fn () {" * n + "%x" + "}" * n),
            "ifs": relay("bool", "if (%x) { " * n + "%x" + " } else { %x }" * n),
            "tuples": relay("float32", "(" * n + "%x" + ",)" * n),
            "types": relay("(" * n + "float32" + ",)" * n, "%x"),
            "few types": relay("(" * few + "float32" + ",)" * few, "%x"),
            "many types": relay("(" * 190 + "float32" + ",)" * 190, "%x"),
            "sizes": relay("Tensor[(" + "(n + " * n + "1" + ")" * n + "), float32]", "%x"),
            "attributes": tir(store).replace("{\n", 'attrs {"a" = ' + "[" * 99 + "]" * 99 + "} {\n", 1),
            "sums": tir("y[0] = " + "(x[0] + " * 290 + "x[0]" + ")" * 290 + ";"),
            "few sums": tir("y[0] = " + "(x[0] + " * 20 + "x[0]" + ")" * 20 + ";"),
            "loads": tir("y[0] = " + "x[" * 1 + "0" + "]" * 1 + ";"),
            "loops": tir("".join(f"for i{k} in serial(1) {{" for k in range(many)) + store + "}" * many),
            "few loops": tir("".join(f"for i{k} in serial(1) {{" for k in range(few)) + store + "}" * few),
            "lets": tir("".join(f"let v{k}: int64 = {k};" for k in range(many)) + store),
            "branches": tir("if (x[0] < 1f) {" * many + store + "}" * many),
            "chains": tir(
                "if (x[0] < 1f) {" + store + "} else " * 1 + ("if (x[0] < 1f) {" + store + "} else ") * many + "{}"
            ),
        }
        for name, text in texts.items():
            passes = "canonical,native" if "#[version" in text else "kernel"
            with self.subTest(name=name):
                done = run("-", "-p", passes, "--verify-each", text=text, stack_bytes=256 * 1024)
                self.assertIn(done.returncode, (0, 3), done.stderr[:500])
                if "few" in name:
                    self.assertEqual(done.returncode, 0, done.stderr[:500])

    def test_lists_passes(self) -> None:
        listed = self.ok("--list-passes").stdout
        for name in ("InferType", "FoldConstant", "FuseOps"):
            self.assertRegex(listed, rf"(?m)^{name} +level \d")
        options = (
            ("CombineParallelDense.min_num_branches", "int", "default 3"),
            ("CombineParallelDense.to_batch", "bool", "default true"),
            ("FuseOps.max_depth", "int", "default 256"),
            ("RemoveUnusedFunctions.entry_functions", r"Array\[str\]", "default main"),
        )
        for option, kind, default in options:
            self.assertRegex(
                listed, rf"(?m)^{option.split('.')[0]} .*\n(    .*\n)*    relay.{option} \({kind}\): .*; {default}$"
            )
        self.assertRegex(listed, r"(?m)^    relay.ConvertLayout.desired_layouts \(Map\[.*\]\): [^;]*$")

    def test_a_full_disk_is_reported(self) -> None:
        for option in ("--list-passes", "--help"):
            with self.subTest(option=option), pathlib.Path("/dev/full").open("w") as full:
                done = subprocess.run([PROGRAM, option], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
                self.assertEqual(done.returncode, 3, done.stderr)
                self.assertIn("headrace-opt: the standard output cannot be written to; make room", done.stderr)

    def test_every_pass_of_relay_is_named(self) -> None:
        rows = (DIGITS.parents[1] / "src/passes/tests/relay_passes.txt").read_text().splitlines()
        listed = self.ok("--list-passes").stdout
        names = []
        for row in rows:
            if row.startswith("#"):
                continue
            name, spellings = (part.split() for part in row.split("|"))
            self.assertRegex(listed, rf"(?m)^{name[0]} +level \d")
            names += name + spellings
        self.assertGreaterEqual(len(names), 39)
        text = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(2, 3), float32]) {\n  add(%x, 3f)\n}\n'
        for name in names:
            self.ok("-", "-p", name, text=text)
        self.ok("-", "-p", "canonical", "--disable", "PartialEval,DeFuseOps", text=text)

    def test_config(self) -> None:
        two = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), float32]) {\n  exp(tanh(%x))\n}\n'
        fused = self.ok("-", "-p", "fuse_ops", text=two).stdout
        self.assertEqual(fused.count("Primitive=1"), 1)
        apart = self.ok("-", "-p", "fuse_ops", "--config", "relay.FuseOps.max_depth=1", text=two).stdout
        self.assertEqual(apart.count("Primitive=1"), 2)
        conv = (
            '#[version = "0.0.5"]\ndef @main(%x: Tensor[(1, 2, 4, 4), float32], %w: Tensor[(2, 2, 1, 1), float32]) {\n'
            "  nn.conv2d(%x, %w)\n}\n"
        )
        layouts = "relay.ConvertLayout.desired_layouts=nn.conv2d=NHWC,OHWI;nn.max_pool2d=NHWC"
        self.assertIn(
            'kernel_layout="OHWI"', self.ok("-", "-p", "ConvertLayout", "--config", layouts, text=conv).stdout
        )
        self.ok("-", "-p", "EtaExpand", "--config", "relay.EtaExpand.expand_global_var=true")
        branches = ", ".join(f"nn.dense(%x, {weight}(%w))" for weight in ("exp", "abs", "tanh"))
        params = "%x: Tensor[(1, 2), float32], %w: Tensor[(3, 2), float32]"
        dense = f'#[version = "0.0.5"]\ndef @main({params}) {{ ({branches}) }}\n'
        forms = {"true": "nn.batch_matmul", "false": "nn.dense"}
        for to_batch, op in forms.items():
            option = ("--config", f"relay.CombineParallelDense.to_batch={to_batch}")
            combined = self.ok("-", "-p", "CombineParallelDense", *option, text=dense).stdout
            self.assertEqual(
                [combined.count(form) for form in forms.values()], [int(form == op) for form in forms.values()]
            )
        self.fails(
            3,
            "'relay.FuseOps.max_depth': 'true' is not of the kind int (",
            "-",
            "--config",
            "relay.FuseOps.max_depth=true",
        )
        self.fails(
            3,
            "'relay.FuseOps.max_depth': 'four' is not of the kind int (",
            "-",
            "--config",
            "relay.FuseOps.max_depth=four",
        )
        self.fails(3, "there is no configuration 'depth'; there are: relay.AnnotateTarget", "-", "--config", "depth=4")
        self.fails(2, "--config: 'depth' must have the form KEY=VALUE; an example: --config", "-", "--config", "depth")
        twice = ("--config", "relay.FuseOps.max_depth=1", "--config", "relay.FuseOps.max_depth=4")
        self.fails(2, "--config: 'relay.FuseOps.max_depth' is given twice", "-", *twice)

    def test_notes_go_to_the_standard_error(self) -> None:
        # A sum over six axes of 100 takes more steps than constants may; the loop comes to it at each of its rounds.
        text = """#[version = "0.0.5"]
def @loop(%n: int32, %x: Tensor[(100), float32]) -> Tensor[(100), float32] {
  let %one = ones(shape=[100, 100]);
  if (less(%n, 1)) { %x } else {
    @loop(subtract(%n, 1), add(%x, einsum((%one, %one, %one), equation="ab,cd,ef->a")))
  }
}
def @main(%x: Tensor[(100), float32]) { @loop(3, %x) }
"""
        result = self.ok("-", "-p", "PartialEvaluate", text=text)
        self.assertRegex(
            result.stderr,
            r"\Anote: PartialEvaluate at <stdin>:5:36: a call of einsum of constants is left to be computed at each "
            r"run: evaluating it takes more steps than a compile spends on constants\n\Z",
        )
        self.assertIn("einsum", result.stdout)
        self.assertEqual(self.ok("-", "-p", "FoldConstant").stderr, "")

    def test_required_passes(self) -> None:
        self.assertNotEqual(self.ok("-", "-O0", "-p", "canonical").stdout, FOLDED)
        self.assertEqual(self.ok("-", "-O0", "-p", "canonical", "--require", "fold_constant").stdout, FOLDED)
        self.fails(3, "pass FuseOps is required and not among", "-", "-p", "canonical", "--require", "FuseOps")
        both = ("--require", "FoldConstant", "--disable", "FoldConstant")
        self.fails(3, "both required and disabled", "-", "-p", "canonical", *both)
        self.fails(3, "there is no pass 'fold'", "-", "-p", "canonical", "--require", "fold")

    def test_help(self) -> None:
        shown = self.ok("--help").stdout
        for word in ("--passes", "examples:", "exit codes:"):
            self.assertIn(word, shown)
        self.assertRegex(self.ok("--version").stdout, r"^\d+\.\d+")

    def test_usage_errors(self) -> None:
        self.fails(2, "no input")
        self.fails(2, "--what", "-", "--what")
        self.fails(2, "see: headrace-opt --help", "-", "--what")
        self.fails(2, "there is no option '--what' here", "-", "--what")
        self.fails(2, "'b.relay' is one argument too many", "a.relay", "b.relay")
        for level in ("nine", "5", "-1"):
            text = f"--opt-level: '{level}' is not a whole number from 0 to 4; an example: --opt-level 3"
            self.fails(2, text, "-", f"-O{level}")
        self.fails(
            2, "--max-depth: '0' is not a whole number of 1 or more; an example: --max-depth 1", "-", "--max-depth=0"
        )
        self.fails(2, "--max-depth needs a value", "-", "--max-depth")
        self.fails(2, "give --weights or --hide-data, not both", "-", "--hide-data", "--weights", "w")

    def test_user_errors(self) -> None:
        self.fails(3, "there is no pass 'fold'; there are canonical", "-", "-p", "fold")
        self.fails(3, "there is no pass 'fold'", "-", "-p", "canonical", "--disable", "fold")
        self.fails(3, "cannot read the program '/nowhere/a.relay': No such file", "/nowhere/a.relay")
        self.fails(3, "the program '/' is a directory", "/")
        self.fails(3, "the program '/dev/zero' is not a regular file", "/dev/zero")
        folder = os.open("/", os.O_RDONLY)
        done = subprocess.run([PROGRAM, "-"], stdin=folder, capture_output=True, text=True, check=False)
        os.close(folder)
        self.assertEqual(done.returncode, 3)
        self.assertIn("cannot read the standard input: Is a directory", done.stderr)
        self.ok("-", "-o", "/dev/null")
        self.fails(3, "'/dev/full': No space", "-", "-o", "/dev/full")
        self.fails(3, "/nowhere", "-", "-o", "/nowhere/out.relay")
        self.fails(3, "<stdin>:2:", "-", text='#[version = "0.0.5"]\ndef @main( {\n')
        self.fails(3, "%y", "-", text='#[version = "0.0.5"]\ndef @main() { add(%y, 1f) }\n')
        wrong = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), float32]) { nn.dense(%x) }\n'
        self.fails(3, "nn.dense", "-", "-p", "canonical", text=wrong)


if __name__ == "__main__":
    unittest.main()
