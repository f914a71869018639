#!/usr/bin/env python3
"""Plans as a user meets them: saved, edited, given to a compile, compared. Standard library only.

tests/cli/test_plans.py --program headrace [--junit FILE] [TEST ...]
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from test_cli import DIGITS, MISMATCH, ONE, USAGE, USER, CliTest, main

PARTS = """#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(2, 3), float32]) {
  let %a = multiply(add(%x, %y), %x);
  let %b = nn.softmax(%a);
  subtract(nn.relu(%b), %y)
}
"""


# Softmax is native, so no op of this program joins the kernel of another one.
PATHS = """#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32]) { (nn.softmax(nn.relu(%x)), nn.softmax(negative(%x))) }
"""


class PlanTest(CliTest):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.needs_backends("ccompiler", "examplejson")
        (cls.folder / "parts.relay").write_text(PARTS)
        cls.call("explain", "parts.relay", "--backends", "ccompiler", "--save-plan", "plan.json", check=True)

    def text(self, name: str = "plan.json") -> str:
        return (self.folder / name).read_text()

    def without_cost(self, name: str) -> str:
        """A plan without its cost, which an edit of another line does not change."""
        return re.sub(r',\n  "cost": \{.*', "", self.text(name))

    def edit(self, name: str, *changes: tuple[str, str]) -> str:
        """A plan with parts of the text changed; returns its name."""
        text = self.text()
        for before, after in changes:
            self.assertIn(before, text)
            text = text.replace(before, after, 1)
        (self.folder / name).write_text(text)
        return name

    def backends(self, *arguments: object) -> list[tuple[str, str, int]]:
        rows = json.loads(self.call(*arguments, "--json", check=True).stdout)["placement"]
        return [(row["kind"], row["backend"], row["reason"]) for row in rows]

    def compiled(self, *arguments: object) -> Any:
        self.call("compile", "parts.relay", "-o", "parts.so", *arguments, check=True)
        return json.loads(self.call("inspect", "parts.so", "--json", check=True).stdout)["programs"][0]["placement"]

    def test_what_a_plan_says(self) -> None:
        plan = json.loads(self.text())
        self.assertEqual((plan["headrace"], plan["version"]), ("plan", 2))
        self.assertEqual(plan["model"]["inputs"], [f"{name}: Tensor[(2, 3), float32]" for name in "xy"])
        self.assertEqual(plan["backends"], [{"name": "ccompiler", "version": "1"}])
        rows = [(op["name"], op["kind"], op["backend"], op["reason"]) for op in plan["ops"]]
        self.assertEqual(
            rows,
            [
                ("parts.relay:3:21", "add", "ccompiler", 63),
                ("parts.relay:3:12", "multiply", "ccompiler", 63),
                ("parts.relay:4:12", "nn.softmax", "native", 20),
                ("parts.relay:5:12", "nn.relu", "ccompiler", 63),
                ("parts.relay:5:3", "subtract", "ccompiler", 63),
            ],
        )

    def test_saving_again_gives_the_same_bytes(self) -> None:
        relu = '"kind": "nn.relu", "backend": "ccompiler"'
        edited = self.edit("edited.json", (relu, relu.replace("ccompiler", "native")))
        for name in ("plan.json", edited):
            self.call("explain", "parts.relay", "--plan", name, "--save-plan", "again.json", check=True)
            self.assertEqual(self.without_cost("again.json"), self.without_cost(name))
        self.call("explain", "parts.relay", "--plan", "plan.json", "--save-plan", "again.json", check=True)
        self.assertEqual(self.text("again.json"), self.text())
        (self.folder / "else").mkdir()
        (self.folder / "else/parts.relay").write_text(PARTS)
        self.call("explain", "else/parts.relay", "--plan", "plan.json", "--save-plan", "again.json", check=True)
        self.assertEqual(self.text("again.json"), self.text())

    def test_digits(self) -> None:
        digits = (DIGITS, *ONE, "--save-plan")
        self.call("explain", *digits, "d.json", "--backends", "ccompiler", check=True)
        self.call("explain", *digits, "e.json", "--plan", "d.json", check=True)
        self.assertEqual(self.text("d.json"), self.text("e.json"))
        names = [(op["name"], op["kind"]) for op in json.loads(self.text("d.json"))["ops"]]
        self.assertEqual(len(set(names)), len(names))
        pattern = "d.json:5:13: .*its inputs were x: Tensor.*1, 1, 8, 8.* and are x: Tensor.*2, 1, 8, 8"
        self.fails(USER, pattern, "explain", DIGITS, "--shape", "x=2,1,8,8", "--plan", "d.json")

    def test_a_compile_does_what_the_plan_says(self) -> None:
        relu = '"kind": "nn.relu", "backend": "ccompiler"'
        edited = self.edit("edited.json", (relu, relu.replace("ccompiler", "native")))
        for backends in ((), ("--backends", "ccompiler")):
            rows = self.compiled("--plan", edited, *backends)
            self.assertEqual(
                [row["backend"] for row in rows], ["ccompiler", "ccompiler", "native", "native", "ccompiler"]
            )
            self.assertEqual({(row["reason"], row["message"]) for row in rows}, {(66, "the plan says so")})
        by_plan = self.compiled("--plan", "plan.json")
        by_order = self.compiled("--backends", "ccompiler")
        self.assertEqual([row["region"] for row in by_plan], [row["region"] for row in by_order])
        self.call("verify", "parts.relay", "--plan", edited, check=True)

    def test_overrides(self) -> None:
        explain = ("explain", "parts.relay", "--backends", "ccompiler")
        self.assertEqual(
            self.backends(*explain, "--place", "*:3:21=ccompiler", "--place", "*:3:*=native"),
            [("add", "ccompiler", 67), ("multiply", "native", 67), ("nn.softmax", "native", 20),
             ("nn.relu", "ccompiler", 63), ("subtract", "ccompiler", 63)],
        )  # fmt: skip
        self.call("explain", "parts.relay", "--plan", "plan.json", "--place", "*:5:*=native", "--save-plan", "o.json",
                  check=True)  # fmt: skip
        self.assertEqual([op["reason"] for op in json.loads(self.text("o.json"))["ops"]], [63, 63, 20, 67, 67])
        self.assertEqual(
            self.backends("explain", "parts.relay", "--plan", "o.json"),
            [("add", "ccompiler", 66), ("multiply", "ccompiler", 66), ("nn.softmax", "native", 66),
             ("nn.relu", "native", 66), ("subtract", "native", 66)],
        )  # fmt: skip
        self.fails(USER, "--place 'layer4.[*]=native': it decides on no op", *explain, "--place", "layer4.*=native")
        self.fails(USER, "ccompiler does not take the nn.softmax at parts.relay:4:12: the backend has no C text for "
                   "this op\n", *explain, "--place", "*:4:*=ccompiler")  # fmt: skip
        self.fails(USER, "'nobody' is not among those", *explain, "--place", "*=nobody")
        for text in ("native", "=native", "x="):
            self.fails(USAGE, f"--place: '{text}' is not a PATTERN=BACKEND", *explain, "--place", text)

    def write_costs(self, relu_seconds: float) -> None:
        """A table in which each op of PATHS takes 1 ms natively; ccompiler takes 10 ms for negative."""
        about = re.match(r"headrace (\S+)\nnative code: .*this machine: (\S+)", self.call("--version").stdout)
        native = [(op, "native", about[1], 1e-3) for op in ("nn.relu", "negative", "nn.softmax")]
        rows = [*native, ("nn.relu", "ccompiler", "1", relu_seconds), ("negative", "ccompiler", "1", 1e-2)]
        head = '#[version = "0.0.5"]\nfn (%x0: Tensor[(2, 3), float32]) {\n  '
        costs = [
            {"call": f"{head}{op}(%x0)\n}}\n", "backend": backend, "version": version, "seconds": seconds}
            for op, backend, version, seconds in rows
        ]
        table = {"headrace_costs": 1, "cpu": about[2], "threads": 1, "costs": costs}
        (self.folder / "costs.json").write_text(json.dumps(table))

    def test_a_plan_that_saves_too_little(self) -> None:
        (self.folder / "paths.relay").write_text(PATHS)
        words = ("explain", "paths.relay", "--backends", "ccompiler", "--placement", "cost", "--costs", "costs.json")
        line = "at least cost: 3.7 ms; not taken, since it saves too little to be sure of by measured costs\n"
        self.write_costs(0.7e-3)
        explained = json.loads(self.call(*words, "--json", check=True).stdout)
        self.assertEqual(explained["cost"]["source"], "measured (costs.json)")
        self.assertAlmostEqual(explained["cost"]["passed_over"], 3.701e-3, places=9)  # 1 us for the region's border
        self.assertAlmostEqual(explained["cost"]["seconds"], 4e-3, places=9)
        self.assertEqual({op["backend"] for op in explained["placement"]}, {"native"})
        self.assertIn(line, self.call(*words, check=True).stdout)
        self.write_costs(0.1e-3)
        explained = json.loads(self.call(*words, "--json", check=True).stdout)
        self.assertIsNone(explained["cost"]["passed_over"])
        self.assertAlmostEqual(explained["cost"]["seconds"], 3.101e-3, places=9)
        self.assertEqual([op["kind"] for op in explained["placement"] if op["backend"] == "ccompiler"], ["nn.relu"])
        self.assertNotIn("not taken", self.call(*words, check=True).stdout)

    def test_costs_of_two_threads(self) -> None:
        """Verbs compile for their --threads, which those of the costs must be."""
        (self.folder / "paths.relay").write_text(PATHS)
        self.write_costs(0.1e-3)
        table = json.loads((self.folder / "costs.json").read_text())
        (self.folder / "two.json").write_text(json.dumps(table | {"threads": 2}))
        by_cost = ("paths.relay", "--backends", "ccompiler", "--placement", "cost", "--costs", "two.json")
        for verb in ("explain", "verify", "bench", "profile"):
            rounds = ("--rounds", "1") if verb in ("bench", "profile") else ()
            self.fails(USER, "; measure again with headrace profile, or give --threads 2", verb, *by_cost, *rounds)
            self.call(verb, *by_cost, *rounds, "--threads", "2", check=True)
        (self.folder / "two.json").write_text(json.dumps(table | {"cpu": "none"}))
        done = self.call("explain", *by_cost)
        self.assertIn("measure again with headrace profile", done.stderr)
        self.assertNotIn("give --threads", done.stderr)

    def test_costs_of_a_program_that_marks_a_region(self) -> None:
        tensor = "Tensor[(2, 3), float32]"
        (self.folder / "marked.relay").write_text(
            '#[version = "0.0.5"]\n'
            f'def @f(%a: {tensor}, Compiler="ccompiler", global_symbol="f") {{ add(%a, %a) }}\n'
            f"def @main(%x: {tensor}) {{ @f(%x) }}\n"
        )
        line = "the costs leave out the regions that the program marks\n"
        self.assertIn(line, self.call("explain", "marked.relay", "--backends", "ccompiler", check=True).stdout)
        self.assertNotIn(line, self.call("explain", "parts.relay", "--backends", "ccompiler", check=True).stdout)

    def test_a_profile_of_a_plan_measures_its_backends(self) -> None:
        self.call("explain", "parts.relay", "--backends", "ccompiler", "--save-plan", "profiled.json", check=True)
        profile = ("profile", "parts.relay", "--plan", "profiled.json", "--rounds", "1")
        self.call(*profile, "-o", "measured.json", check=True)
        table = json.loads(self.text("measured.json"))
        self.assertEqual({row["backend"] for row in table["costs"]}, {"native", "ccompiler"})
        self.assertLessEqual({"native", "ccompiler"}, {row["plan"] for row in table["plans"]})
        report = json.loads(self.call(*profile, "--json", check=True, HEADRACE_CACHE=str(self.folder / "kept")).stdout)
        self.assertEqual(report["costs"]["measured"], len(table["costs"]))
        self.assertIn("ccompiler", report["steps"][0]["callee"])

    def test_a_plan_that_was_tried(self) -> None:
        """A profile times the plan of least cost, here of relu alone by ccompiler, and it costs what it took."""
        (self.folder / "paths.relay").write_text(PATHS)
        words = ("paths.relay", "--backends", "ccompiler")
        folder = self.folder / "tried"
        profile = ("profile", *words, "--rounds", "2", "--json")
        measured = json.loads(self.call(*profile, check=True, HEADRACE_CACHE=str(folder)).stdout)["costs"]
        file = Path(measured["file"])
        table = json.loads(file.read_text())
        table["plans"] = [row for row in table["plans"] if " by cost " not in row["plan"]]
        for row in table["costs"]:
            is_slow = "negative" in row["call"] and row["backend"] == "ccompiler"
            row["seconds"] = 1e-3 if row["backend"] == "native" else 1e-2 if is_slow else 1e-6
        for row in table["plans"]:
            row["seconds"] = 4e-3 if row["plan"] == "native" else 1.2e-2
        file.write_text(json.dumps(table))
        again = json.loads(self.call(*profile, check=True, HEADRACE_CACHE=str(folder)).stdout)["costs"]
        self.assertEqual(again["measured"], 0)
        table = json.loads(file.read_text())
        (tried,) = (row for row in table["plans"] if row["plan"].startswith("ccompiler by cost "))
        self.assertGreater(tried["seconds"], 0)
        explain = ("explain", *words, "--placement", "cost", "--costs", "costs.json")
        for seconds, backends, line in (
            (3.5e-3, {"native", "ccompiler"}, "this plan was tried, and costs what it took\n"),
            (3.95e-3, {"native"}, "at least cost: 3 ms; not taken, since it took 3.95 ms when it was tried\n"),
        ):
            tried["seconds"] = seconds
            (self.folder / "costs.json").write_text(json.dumps(table))
            explained = json.loads(self.call(*explain, "--json", check=True).stdout)
            self.assertEqual(explained["cost"]["tried"], seconds)
            self.assertEqual({op["backend"] for op in explained["placement"]}, backends)
            self.assertIn(line, self.call(*explain, check=True).stdout)

    def test_a_plan_knows_the_costs_that_it_was_made_by(self) -> None:
        (self.folder / "paths.relay").write_text(PATHS)
        self.write_costs(0.1e-3)
        explain = ("explain", "paths.relay")
        by_cost = ("--backends", "ccompiler", "--placement", "cost", "--save-plan")
        self.call(*explain, *by_cost, "estimated.json", check=True)
        self.call(*explain, *by_cost, "measured.json", "--costs", "costs.json", check=True)
        self.assertNotIn("costs", json.loads(self.text("estimated.json")))
        given = json.loads(self.text("measured.json"))["costs"]
        self.assertRegex(given, "^[0-9a-f]{32}$")
        for costs in ((), ("--costs", "costs.json")):
            self.call(*explain, "--plan", "measured.json", *costs, "--save-plan", "again.json", check=True)
            known = self.text if costs else self.without_cost  # the cost is not known without the file
            self.assertEqual(self.text("again.json"), known("measured.json"))
        self.fails(USER, "estimated.json:1:1: the plan was made without measured costs; leave the costs out", *explain,
                   "--plan", "estimated.json", "--costs", "costs.json")  # fmt: skip
        self.fails(USER, "none.json", *explain, "--plan", "measured.json", "--costs", "none.json")
        self.write_costs(0.2e-3)
        compiled = ("compile", "paths.relay", "-o", "p.so", "--plan", "measured.json", "--costs", "costs.json")
        self.fails(
            USER, "measured.json:8:12: the plan was made by other measured costs; make the plan again", *compiled
        )
        told = json.loads(self.call("plan", "diff", "estimated.json", "measured.json", "--json").stdout)
        self.assertIn({"what": "costs", "before": "none", "after": given}, told["plans"])
        self.fails(USER, "the costs in 'costs.json' have no effect without placement by cost", *explain, "--costs",
                   "costs.json")  # fmt: skip

    def test_compile_says_where_ops_went(self) -> None:
        (self.folder / "paths.relay").write_text(PATHS)
        compiled = ("compile", "paths.relay", "-o", "paths.so")
        kinds = [op["kind"] for op in json.loads(self.call("explain", "paths.relay", "--json").stdout)["placement"]]
        ops = f"\n{len(kinds)} ops by native, 0 by null\n"
        self.assertIn(ops, self.call(*compiled, "--backends", "null", check=True).stdout)
        self.assertNotIn(" by native", self.call(*compiled, check=True).stdout)
        report = json.loads(self.call(*compiled, "--backends", "null", "--json", check=True).stdout)
        self.assertEqual(report["ops"], {"native": len(kinds), "null": 0})
        self.assertIsNone(report["cost_source"])
        self.write_costs(0.1e-3)
        table = json.loads(self.text("costs.json"))
        table["costs"] = [row for row in table["costs"] if "nn.softmax" not in row["call"]]
        (self.folder / "some.json").write_text(json.dumps(table))
        by_cost = ("--backends", "ccompiler", "--placement", "cost", "--costs")
        told = self.call(*compiled, *by_cost, "some.json", check=True).stdout
        self.assertRegex(told, r"\ncosts are measured for \d of \d \(some.json\), the others estimated by the backends")
        told = json.loads(self.call(*compiled, *by_cost, "costs.json", "--json", check=True).stdout)
        self.assertEqual(told["cost_source"], "measured (costs.json)")
        self.assertEqual(told["ops"]["ccompiler"], kinds.count("nn.relu"))

    def test_options_of_other_backends_are_refused(self) -> None:
        for verb, *more in (("explain",), ("compile", "-o", "other.so")):
            self.fails(USER, "the options of the backend 'ccompiler' have no effect, because this compile does not use",
                       verb, "parts.relay", *more, "--backends", "examplejson", "--backend-option",
                       "ccompiler.cc=clang")  # fmt: skip
            self.fails(USER, "the backend 'examplejson' has no option 'speed', and no other", verb, "parts.relay",
                       *more, "--backends", "examplejson", "--backend-option", "examplejson.speed=3")  # fmt: skip

    def test_placement_by_cost_needs_backends(self) -> None:
        (self.folder / "paths.relay").write_text(PATHS)
        for words in (("compile", "paths.relay", "-o", "paths.so"), ("explain", "paths.relay")):
            for costs in ((), ("--costs", "nofile.json")):
                self.fails(USER, "no backend is named; name backends .on the command line by --backends", *words,
                           "--placement", "cost", *costs)  # fmt: skip
        split = ("pipeline", "split", "paths.relay", "-o", "split.so", "--estimate", "--placement", "cost")
        self.fails(USER, "no backend is named", *split)
        self.call(*split, "--stages", "2", "--on", "ccompiler/native", check=True)

    def test_plans_that_do_not_fit(self) -> None:
        explain = ("explain", "parts.relay", "--plan")
        softmax = '"kind": "nn.softmax", "backend": "native"'
        wrong = self.edit("wrong.json", (softmax, softmax.replace("native", "ccompiler")))
        self.fails(USER, r"wrong.json:14:67: ccompiler does not take the op 'parts.relay:4:12' of kind nn.softmax: the "
                   r"backend has no C text for this op\n", *explain, wrong)  # fmt: skip
        wrong = self.edit("wrong.json", ("parts.relay:4:12", "parts.relay:4:2"))
        self.fails(USER, "wrong.json:14:5: the model has no op 'parts.relay:4:2'", *explain, wrong)
        wrong = self.edit("wrong.json", ('"kind": "nn.relu"', '"kind": "nn.rlu"'))
        pattern = "the model has no op '(.*)' of kind nn.rlu; there is '\\1' of kind nn.relu\n"
        self.fails(USER, pattern, *explain, wrong)
        wrong = self.edit("wrong.json", (softmax, softmax.replace("native", "onednn")))
        pattern = "no backend 'onednn' in this plan, which has ccompiler, native; to use another, list it under"
        self.fails(USER, pattern, *explain, wrong)
        version = '"version": "1"'
        wrong = self.edit("wrong.json", (version, '"version": "0"'))
        self.fails(USER, "wrong.json:9:5: the plan is for version '0' of ccompiler, and here is version '1'", *explain,
                   wrong)  # fmt: skip
        wrong = self.edit("wrong.json", ("ccompiler", "nobody"), ('"backend": "ccompiler"', '"backend": "nobody"'))
        text = self.text("wrong.json").replace('"backend": "ccompiler"', '"backend": "nobody"')
        (self.folder / wrong).write_text(text)
        self.fails(USER, "wrong.json:9:5: there is no backend 'nobody'; there are ccompiler", *explain, wrong)
        self.fails(USER, "the plan 'plan.json' is for the backends ccompiler, and the options name examplejson",
                   *explain, "plan.json", "--backends", "examplejson")  # fmt: skip
        self.fails(USER, "none.json", *explain, "none.json")
        (self.folder / "other.relay").write_text(PARTS.replace("nn.relu", "tanh"))
        self.fails(USER, "plan.json:5:13: the plan is for another model, or for other options of its compile: the op "
                   "'parts.relay:3:21' of kind add is not in it any more", "explain", "other.relay", "--plan",
                   "plan.json")  # fmt: skip
        self.fails(USER, "the model is read from it", "explain", "parts.relay", "--save-plan", "parts.relay")

    def test_diff(self) -> None:
        relu = '"kind": "nn.relu", "backend": "ccompiler"'
        edited = self.edit("edited.json", (relu, relu.replace("ccompiler", "native")))
        same = self.call("plan", "diff", "plan.json", "plan.json", check=True)
        self.assertEqual(same.stdout, "the plans put every op on the same backend\n")
        done = self.call("plan", "diff", "plan.json", edited)
        self.assertEqual((done.returncode, done.stderr), (MISMATCH, ""))
        lines = [line.split() for line in done.stdout.splitlines()]
        self.assertEqual(lines[1], ["parts.relay:5:12", "nn.relu", "ccompiler", "native"])
        self.assertEqual(done.stdout.splitlines()[-1], "1 of 5 ops differ")
        report = json.loads(self.call("plan", "diff", "plan.json", edited, "--json").stdout)
        change = {"name": "parts.relay:5:12", "kind": "nn.relu", "before": "ccompiler", "after": "native"}
        self.assertEqual(report, {"equal": False, "plans": [], "ops": [change]})
        self.call("explain", DIGITS, *ONE, "--save-plan", "digits.json", check=True)
        report = json.loads(self.call("plan", "diff", "plan.json", "digits.json", "--json").stdout)
        self.assertEqual([row["what"] for row in report["plans"]], ["model", "backends"])
        self.assertEqual(report["plans"][1], {"what": "backends", "before": "ccompiler 1", "after": "none"})
        self.assertIsNone(report["ops"][0]["after"])
        self.assertIsNone(report["ops"][-1]["before"])
        (self.folder / "cut.json").write_text(self.text()[:100])
        self.fails(USER, "cut.json:", "plan", "diff", "plan.json", "cut.json")
        self.fails(USAGE, "there is no action 'merge'; there is diff", "plan", "merge", "a", "b")


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__], "plans"))
