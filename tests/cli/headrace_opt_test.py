"""What a person at the command line sees of headrace-opt: results, messages, exit codes."""

import pathlib
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


def run(*arguments: str, text: str = "") -> subprocess.CompletedProcess:
    return subprocess.run([PROGRAM, *arguments], input=text, capture_output=True, text=True, timeout=60, check=False)


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

    def test_only_prints_without_passes(self) -> None:
        printed = self.ok("-").stdout
        self.assertIn("add(1f, 2f)", printed)
        self.assertEqual(self.ok("-", text=printed).stdout, printed)

    def test_loop_programs(self) -> None:
        self.assertEqual(self.ok("-", text=LOOPS).stdout, LOOPS)
        self.assertEqual(self.ok("-", "-p", "vectorize_loop", "--verify-each", text=LOOPS).stdout, VECTORS)
        self.assertEqual(self.ok("-", "-p", "kernel", "--disable", "LowerMath", text=LOOPS).stdout, VECTORS)
        diff = self.ok("-", "-p", "kernel", "--dump-diff", text=LOOPS).stderr
        self.assertIn("VectorizeLoop: changed", diff)
        self.assertIn("UnrollLoop: no change", diff)
        self.fails(3, "there is no pass 'FuseOps' of loop programs", "-", "-p", "FuseOps", text=LOOPS)
        self.fails(3, "<stdin>:5:16: 'z' is neither", "-", text=LOOPS.replace("x[", "z["))
        self.fails(3, "not well-formed", "-", text=LOOPS.replace("vectorized(4)", "vectorized(n)"))

    def test_files(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            source, target = pathlib.Path(folder, "in.relay"), pathlib.Path(folder, "out.relay")
            source.write_text(TEXT)
            self.assertEqual(self.ok(str(source), "-p", "fold_constant", "-o", str(target)).stdout, "")
            self.assertEqual(target.read_text(), FOLDED)

    def test_fuses(self) -> None:
        fused = self.ok("-", "-p", "canonical,native", "--verify-each").stdout
        self.assertEqual(fused.count("Primitive=1"), 1)
        single = self.ok("-", "-p", "canonical,native", "--max-depth", "1").stdout
        self.assertEqual(single.count("Primitive=1"), 2)

    def test_level_and_disable(self) -> None:
        self.assertIn("add(1f, 2f)", self.ok("-", "-p", "canonical", "-O", "0").stdout)
        self.assertIn("add(1f, 2f)", self.ok("-", "-p", "canonical", "--disable", "fold_constant").stdout)
        self.assertEqual(self.ok("-", "-p", "fold_constant", "-O", "0").stdout, FOLDED)

    def test_dumps_go_to_the_standard_error(self) -> None:
        result = self.ok("-", "-p", "fold_constant,fuse_ops", "--dump-diff", "--time")
        self.assertIn("// ---- FoldConstant: changed", result.stderr)
        self.assertIn("+  %0 = add(%x, 3f);", result.stderr)
        self.assertIn("FuseOps", result.stderr)
        self.assertNotIn("----", result.stdout)
        self.assertIn("// ---- after FoldConstant", self.ok("-", "-p", "fold_constant", "--print-after-all").stderr)

    def test_hides_data(self) -> None:
        text = '#[version = "0.0.5"]\ndef @main() { add(ones(shape=[40]), 1f) }\n'
        self.assertIn("#[metadata]", self.ok("-", "-p", "fold_constant", text=text).stdout)
        self.assertNotIn("#[metadata]", self.ok("-", "-p", "fold_constant", "--hide-data", text=text).stdout)

    def test_lists_passes(self) -> None:
        listed = self.ok("--list-passes").stdout
        for name in ("InferType", "FoldConstant", "FuseOps"):
            self.assertRegex(listed, rf"(?m)^{name} +level \d")

    def test_help(self) -> None:
        shown = self.ok("--help").stdout
        for word in ("--passes", "examples:", "exit codes:"):
            self.assertIn(word, shown)
        self.assertRegex(self.ok("--version").stdout, r"^\d+\.\d+")

    def test_usage_errors(self) -> None:
        self.fails(2, "no input")
        self.fails(2, "--what", "-", "--what")
        self.fails(2, "opt-level", "-", "-O", "nine")
        self.fails(2, "max-depth", "-", "--max-depth", "0")

    def test_user_errors(self) -> None:
        self.fails(3, "there is no pass 'fold'; there are canonical", "-", "-p", "fold")
        self.fails(3, "there is no pass 'fold'", "-", "-p", "canonical", "--disable", "fold")
        self.fails(3, "'/nowhere/a.relay' cannot be read", "/nowhere/a.relay")
        self.fails(3, "/nowhere", "-", "-o", "/nowhere/out.relay")
        self.fails(3, "<stdin>:2:", "-", text='#[version = "0.0.5"]\ndef @main( {\n')
        self.fails(3, "%y", "-", text='#[version = "0.0.5"]\ndef @main() { add(%y, 1f) }\n')
        wrong = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), float32]) { nn.dense(%x) }\n'
        self.fails(3, "nn.dense", "-", "-p", "canonical", text=wrong)


if __name__ == "__main__":
    unittest.main()
