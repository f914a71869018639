#!/usr/bin/env python3
"""Plants one violation of each kind into a small house and sees check_op_names.py catch exactly it."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from check_op_names import names_in, registered_ops, sources, without_comments

TOOL = Path(__file__).resolve().parent / "check_op_names.py"
REPOSITORY = TOOL.parent.parent

SOUND_HOUSE = {
    "src/ops/tensor/math.cc": """
template <typename F>
void unary(const char* name, const char* what, F f) { OpBuilder(name, what).eval(f); }
void register_math() {
  unary("negative", "-x", 1);
  const auto sorting = [](const char* name, const char* doc) { OpBuilder(name, doc); };
  sorting("argsort", "...");
  OpBuilder("nn.relu", "max(x, 0)").arg("data");
  for (const char* name : {"mod", "trunc_mod"}) OpBuilder(name, "the rest");
  OpBuilder(fmt::format("nn.conv{}d", 2), "...");
}
""",
    "src/ops/nn/rows.cc": """
const Row rows[] = {{"nn.softmax", "doc"}, {"nn.log_softmax", "doc"}};
void register_rows() { for (const Row& row : rows) OpBuilder(row.name, row.doc); }
""",
    "src/ops/op_handles.h": 'inline constexpr OpHandle kRelu{"nn.relu"};\n',
    "src/passes/simplify/laws.cc": (
        'bool f(const Expr& e) { return is_call(e, op::kRelu); }  // "nn.relu"\nconst char* word = "data";\n'
    ),
    "src/passes/simplify/laws_test.cc": 'auto call = make_call("nn.relu", {});\n',
    "src/passes/tests/kit.cc": 'auto call = make_call("nn.relu", {});\n',
    "src/lower/rules/relu.cc": 'void register_relu() { set_rule("nn.relu", rule); }\n',
    "src/frontend/onnx/relu.cc": 'auto call = make_call("nn.relu", {});\n',
}


class CheckOpNamesTest(unittest.TestCase):
    def check(self, planted: dict[str, str]) -> tuple[int, list[str]]:
        """Exit status and the lines of the tool for the sound house with `planted` files added to it."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (SOUND_HOUSE | planted).items():
                path = Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            run = subprocess.run([sys.executable, TOOL, folder], capture_output=True, text=True, check=False)
            self.assertEqual(run.stderr, "")
            return run.returncode, run.stdout.splitlines()

    def expect(self, planted: dict[str, str], *expected: str) -> None:
        """Exactly the violations that start with `expected` are reported, in order."""
        status, lines = self.check(planted)
        self.assertEqual(status, 1)
        self.assertEqual(len(lines), len(expected), lines)
        for line, start in zip(lines, expected, strict=True):
            self.assertTrue(line.startswith(start), f"{line} does not start with {start}")

    def test_sound_house_passes(self) -> None:
        self.assertEqual(self.check({}), (0, ["2 files match ops by 1 handles"]))

    def test_literal(self) -> None:
        for name in ("nn.relu", "negative", "argsort", "trunc_mod", "nn.conv3d", "nn.log_softmax"):
            planted = {"src/plan/bad.cc": f'\nauto call = make_call("{name}", {{}});\n'}
            self.expect(planted, f'src/plan/bad.cc:2: literal: "{name}" names an op')

    def test_part_of_a_name(self) -> None:
        for part in ('starts_with("nn.")', 'ends_with("conv")', 'substr(3) == "relu"', 'find("softmax") != 0'):
            planted = {"src/plan/bad.cc": f"if (call.as_op()->name.{part}) return;\n"}
            self.expect(planted, "src/plan/bad.cc:1: compare: ")

    def test_tools(self) -> None:
        planted = {"tools/headrace/bad.cc": 'if (op->name == "nn.relu") return;\n'}
        self.expect(planted, "tools/headrace/bad.cc:1: compare: ", "tools/headrace/bad.cc:1: literal: ")

    def test_literal_in_a_header(self) -> None:
        self.expect({"src/driver/bad.h": 'inline const char* kOp = "mod";\n'}, "src/driver/bad.h:1: literal: ")

    def test_literal_after_what_looks_like_a_comment(self) -> None:
        planted = {"src/interp/bad.cc": 'auto pair = std::pair("http://x", "nn.relu");\n'}
        self.expect(planted, "src/interp/bad.cc:1: literal: ")

    def test_other_words_are_free(self) -> None:
        planted = {"src/passes/bad.cc": '#include "nn.relu"\nauto names = {"axis", "relu", "nn.convd", "doc"};\n'}
        self.assertEqual(self.check(planted)[0], 0)

    def test_compare(self) -> None:
        for text in ("call->as_op()->name == other", 'op->name != "x"', "name == call.as_op()->name", "op.name == row"):
            self.expect({"src/passes/bad.cc": f"bool f() {{ return {text}; }}\n"}, "src/passes/bad.cc:1: compare: ")

    def test_compare_of_a_name_that_a_variable_holds(self) -> None:
        for text in ("if (name == other) return;", "return other != name;", "return name == f(other);"):
            function = f"void f() {{\n  const std::string& name = call.as_op()->name;\n  {text}\n}}\n"
            self.expect({"src/passes/bad.cc": function}, "src/passes/bad.cc:3: compare: ")
        for text in ("return name.size() == 3;", "return other == name.size();", "return row.name == other;"):
            function = f"void f() {{\n  const std::string& name = op->name;\n  {text}\n}}\n"
            self.assertEqual(self.check({"src/passes/good.cc": function})[0], 0)
        later = "void f() {\n  const auto name = op->name;\n}\nbool g(int name) { return name == 3; }\n"
        self.assertEqual(self.check({"src/passes/good.cc": later})[0], 0)

    def test_rules_name_ops_where_they_are_registered(self) -> None:
        registered = 'void register_relus() {\n  for (const char* op : {"nn.relu", "mod"}) set_rule(op, rule);\n}\n'
        self.assertEqual(self.check({"src/lower/rules/good.cc": registered})[0], 0)
        used = 'bool f(const Op& op) {\n  return names.contains("nn.relu");\n}\n'
        self.expect({"src/lower/rules/bad.cc": registered + used}, "src/lower/rules/bad.cc:5: literal: ")
        elsewhere = {"src/lower/loops/bad.cc": registered}
        self.expect(elsewhere, *['src/lower/loops/bad.cc:2: literal: "'] * 2)

    def test_handle_of_no_op(self) -> None:
        header = SOUND_HOUSE["src/ops/op_handles.h"] + 'inline constexpr OpHandle kRely{"nn.rely"};\n'
        planted = {"src/ops/op_handles.h": header, "src/plan/user.cc": "auto& x = op::kRely;\n"}
        self.expect(planted, "src/ops/op_handles.h: handle: kRely names 'nn.rely'")

    def test_handle_that_nothing_uses(self) -> None:
        header = SOUND_HOUSE["src/ops/op_handles.h"] + 'inline constexpr OpHandle kMod{"mod"};\n'
        self.expect({"src/ops/op_handles.h": header}, "src/ops/op_handles.h: handle: nothing uses kMod")

    def test_the_names_are_those_of_the_page_of_ops(self) -> None:
        text = (REPOSITORY / "docs" / "ops.md").read_text(encoding="utf-8")
        page = text.split("\n## Ops of Relay that Headrace does not have")[0]
        listed = set(re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE))
        self.assertGreater(len(listed), 100)
        ops = registered_ops(REPOSITORY)
        self.assertEqual([name for name in sorted(listed) if not ops.match(name)], [])
        found = set()
        for path in sources(REPOSITORY / "src" / "ops"):
            found |= names_in(without_comments(path.read_text(encoding="utf-8")))
        self.assertEqual(sorted(name for name in found if "{}" not in name and name not in listed), [])


if __name__ == "__main__":
    unittest.main()
