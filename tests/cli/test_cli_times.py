#!/usr/bin/env python3
"""The times that bench and profile report: of runs, of steps, as traces. Standard library only.

tests/cli/test_cli_times.py --program headrace [--junit FILE] [TEST ...]

HEADRACE_WRITE_ZOO names the program write_zoo.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from test_cli import DIGITS, ONE, USAGE, USER, JsonPageTest, main

SUM_LIMIT = 0.03  # the most by which the sum of the steps and a run may differ, as a share of the run


class TimesTest(JsonPageTest):
    """`bench` and `profile`."""

    def test_bench(self) -> None:
        report = self.report("bench", DIGITS, *ONE, "--threads", "1,2", "--rounds", "3")
        self.assertEqual([result["threads"] for result in report["results"]], [1, 2])
        self.assertEqual(report["rounds"], 3)
        for result in report["results"]:
            self.assertGreater(result["best_seconds"], 0)
            self.assertLessEqual(result["best_seconds"], result["median_seconds"])
            processors = min(result["threads"], len(os.sched_getaffinity(0)))
            self.assertEqual(len(result["processors"]), processors)
            self.assertLessEqual(set(result["processors"]), os.sched_getaffinity(0))

    def test_profile_of_the_machine(self) -> None:
        report = json.loads(self.call("profile", "--machine", "--threads", "2", "--json", check=True).stdout)
        self.assertEqual(report["threads"], 2)
        self.assertRegex(self.call("--version").stdout, rf"this machine: {report['cpu']}\b")
        numbers = {row["what"]: row for row in report["numbers"]}
        for what in ("multiply-adds of float32, 1 thread", "reads from L2, 1 thread", "reads from DRAM, 2 threads"):
            self.assertGreater(numbers[what]["probed"], 0, what)
            self.assertGreater(numbers[what]["table"], 0, what)
        shown = self.call("profile", "--machine", check=True).stdout
        self.assertIn("estimates count with the row", shown)
        self.assertRegex(shown, r"(?m)^reads from DRAM, 1 thread +[\d.]+ +[\d.]+ +GB/s$")
        alone = "--machine: it probes this machine alone; leave a model, --shape out"
        self.fails(USAGE, alone, "profile", DIGITS, *ONE, "--machine")
        self.fails(USAGE, "give --top or --machine, not both", "profile", "--machine", "--top", "2")
        self.fails(USAGE, "model is required: A model", "profile", "--top", "2")

    def test_profile_of_steps(self) -> None:
        """Where the time of a run goes: the steps add up to the run, and a trace holds them one after another."""
        words = ("profile", "one.so", "--rounds", "50")
        report = json.loads(self.call(*words, "--trace", "run.json", "--json", check=True).stdout)
        steps = report["steps"]
        total = sum(step["median_seconds"] for step in steps)
        self.assertAlmostEqual(report["steps_median_seconds"], total)
        # A run of these few microseconds is half calls and clocks; longer steps add up (below).
        self.assertLess(total, 3 * report["run_median_seconds"])
        self.assertLess(report["run_median_seconds"], 3 * total)
        # The first: a 3x3 convolution from one channel to 16 over 8 x 8, a bias and a ReLU, which count what they read.
        self.assertEqual(steps[0]["operations"], 1024 * 2 * 9 + (1024 + 16) + 1024)
        self.assertEqual(steps[0]["bytes"], 4 * (64 + 16 * 9 + 16 + 1024))
        self.assertEqual(len(report["hop_nanoseconds"]), 2 if len(os.sched_getaffinity(0)) > 1 else 0)
        for step in steps:
            self.assertIn(step["bound"], ("FMA", "L2", "L3", "DRAM"))
            self.assertGreater(step["share_of_limit"], 0)
        written = json.loads((self.folder / "run.json").read_text(encoding="utf-8"))
        self.assertEqual(len(written["otherData"]["hop_nanoseconds"]), len(report["hop_nanoseconds"]))
        process, lane, *trace = written["traceEvents"]
        self.assertEqual((process["name"], process["args"]), ("process_name", {"name": "1 thread"}))
        self.assertEqual((lane["name"], lane["args"]), ("thread_name", {"name": "thread 0"}))
        self.assertEqual([event["name"] for event in trace], [step["op"] for step in steps])
        self.assertEqual([event["args"] for event in trace], steps)
        self.check_steps_of_trace(trace)
        text = self.call(*words, "--top", "2", check=True).stdout
        self.assertRegex(text, r"^step +median +share +bytes +GFLOP/s +GB/s +of limit +op +writes <- reads\n")
        self.assertEqual(len(text.splitlines()), 1 + 2 + 2)
        self.assertRegex(
            text, r"\d+ steps: \S+ \S+, a run \S+ \S+ on 1 thread; round by round the steps are [\d.]+ % of a run\n"
        )
        self.assertRegex(text, r"limits: \S+ GFLOP/s, L2 \S+ GB/s, L3 \S+ GB/s, DRAM \S+ GB/s")
        if report["hop_nanoseconds"]:
            self.assertRegex(text, r"core-to-core hop \d+ ns before, \d+ ns after\n")
        self.fails(USAGE, "give --output or --top, not both", "profile", DIGITS, *ONE, "-o", "c.json", "--top", "2")
        self.fails(USER, "is a compiled artifact; give the model", "profile", "one.so", "-o", "c.json")
        self.fails(USER, "missing/run.json", "profile", "one.so", "--rounds", "1", "--trace", "missing/run.json")

    def test_profile_keeps_costs(self) -> None:
        self.needs_backends("ccompiler")
        text = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(2, 3), float32]) { nn.softmax(add(%x, 1f)) }\n'
        (self.folder / "two.relay").write_text(text, encoding="utf-8")
        words = ("profile", "two.relay", "--backends", "ccompiler", "--rounds", "1")
        cache = {"HEADRACE_CACHE": str(self.folder / "cache")}
        report = json.loads(self.call(*words, "--json", check=True, **cache).stdout)
        path = Path(report["costs"].pop("file"))
        self.assertEqual(path.parent, self.folder / "cache" / "costs")
        self.assertEqual(report["costs"], {"measured": 3, "kept": 3})
        self.assertEqual(["ccompiler" in step["callee"] for step in report["steps"]], [True, False])
        again = json.loads(self.call(*words, "--again", "--json", check=True, **cache).stdout)
        self.assertEqual(again["costs"]["measured"], 3)
        text = self.call(*words, check=True, **cache).stdout
        self.assertIn(f"0 costs measured, 3 kept for --placement cost --costs cache: {path}\n", text)
        placed = ("explain", "two.relay", "--backends", "ccompiler", "--placement", "cost", "--costs", "cache")
        self.assertIn(f"costs are measured ({path})", self.call(*placed, check=True, **cache).stdout)
        self.fails(USER, "no costs are kept for", *placed, HEADRACE_CACHE="empty")
        self.fails(USAGE, "--again: without --backends or --plan no costs", "profile", "two.relay", "--again")
        self.fails(USAGE, "give --output or --again, not both", *words, "--again", "-o", "c.json")

    def test_steps_add_up_to_the_run(self) -> None:
        """A round has a run and one whose steps are timed: their median ratio is 1 within 3 %, at one thread.

        Each of the six convolutions takes far more than 3 % of a run, so a sum without any of them would be off.
        """
        body = "%x"
        for _ in range(6):
            body = f'nn.relu(nn.conv2d({body}, ones(shape=[32, 32, 3, 3], dtype="float32"), padding=[1, 1]))'
        text = f'#[version = "0.0.5"]\ndef @main(%x: Tensor[(1, 32, 56, 56), float32]) {{ {body} }}\n'
        (self.folder / "layers.relay").write_text(text, encoding="utf-8")
        self.call("compile", "layers.relay", "-o", "layers.so", check=True)
        steps = self.steps_of("layers.so")
        self.assertGreaterEqual(len(steps), 6)
        for report in self.check_sum("layers.so", 300):
            convolutions = [step for step in report["steps"] if "nn_conv2d" in step["callee"]]
            self.assertEqual(len(convolutions), 6)
            for step in convolutions:
                self.assertGreater(step["median_seconds"], 2 * SUM_LIMIT * report["steps_median_seconds"], step)

    def test_steps_of_a_network_add_up_to_the_run(self) -> None:
        """Short steps beside long ones add up, too."""
        subprocess.run(
            [os.environ["HEADRACE_WRITE_ZOO"], self.folder, "squeezenet1_1"], check=True, capture_output=True
        )
        self.call("compile", "squeezenet1_1.onnx", "-o", "squeezenet.so", check=True)
        self.check_sum("squeezenet.so", 100)

    def steps_of(self, artifact: str) -> list[tuple[str, str]]:
        """The op and the kernel of each step, as `inspect` lists them."""
        report = json.loads(self.call("inspect", artifact, "--json", check=True).stdout)
        return [(step["op"], step["callee"]) for step in report["programs"][0]["steps"]]

    def check_sum(self, artifact: str, rounds: int) -> list[dict]:
        """Profile an artifact; the median of three tries counts, and of up to nine on a machine that is busy."""
        steps, reports = self.steps_of(artifact), []
        for tries in range(9):
            words = ("profile", artifact, "--rounds", str(rounds), "--threads", "1", "--json")
            reports.append(json.loads(self.call(*words, check=True).stdout))
            self.assertEqual([(step["op"], step["callee"]) for step in reports[-1]["steps"]], steps)
            shares = [report["steps_share_of_run"] for report in reports]
            if tries % 2 == 0 and tries >= 2 and abs(statistics.median(shares) - 1) <= SUM_LIMIT:
                return reports
        self.fail(f"the steps are these shares of a run: {shares}")

    def test_bench_of_steps(self) -> None:
        done = self.call("bench", "one.so", "--rounds", "3", "--threads", "1", "--steps", "--json", check=True)
        (result,) = json.loads(done.stdout)["results"]
        self.assertEqual(list(result["steps"][0]), ["op", "callee", "shapes", "best_seconds", "operations", "bytes",
                                                    "bound", "share_of_limit"])  # fmt: skip
        # A 3x3 convolution from one channel to 16 over 8 x 8, a bias and a ReLU, as in the test of profile.
        self.assertEqual(result["steps"][0]["operations"], 1024 * 2 * 9 + (1024 + 16) + 1024)
        for step in result["steps"]:
            self.assertIn(step["bound"], ("FMA", "L2", "L3", "DRAM"))
            self.assertGreater(step["share_of_limit"], 0)
        self.assertEqual(result["steps"][-1]["op"], "softmax")
        self.assertRegex(result["steps"][0]["shapes"], r"^1x\d+x\d+x\d+ <- 1x1x8x8, ")
        self.assertTrue(all(step["best_seconds"] > 0 for step in result["steps"]))
        text = self.call("bench", "one.so", "--rounds", "2", "--threads", "1,2", "--steps").stdout
        self.assertRegex(
            text, r"(?m)^step +1 thread +share +of limit +2 threads +share +of limit +op +writes <- reads$"
        )
        self.assertRegex(text, r"(?m)^0 +(\S+ us +\d+\.\d % +\d+ % of (FMA|L2|L3|DRAM) +){2}conv_0 ")

    def check_steps_of_trace(self, steps: list[dict]) -> None:
        """One begins where the one before it ends."""
        self.assertEqual(steps[0]["ts"], 0)
        for before, after in itertools.pairwise(steps):
            self.assertAlmostEqual(before["ts"] + before["dur"], after["ts"])

    def check_parts_of_trace(self, steps: list[dict], parts: list[dict]) -> None:
        """Parts lie within their step, and those of one thread follow one another."""
        for part in parts:
            step = steps[part["args"]["step"]]
            self.assertEqual(part["name"], step["name"])
            self.assertGreaterEqual(part["ts"], step["ts"] - 1e-3)
            self.assertLessEqual(part["ts"] + part["dur"], step["ts"] + step["dur"] + 1e-3)
        for thread in (0, 1):
            for before, after in itertools.pairwise(part for part in parts if part["tid"] == thread):
                self.assertLessEqual(before["ts"] + before["dur"], after["ts"] + 1e-3)

    def test_bench_writes_a_trace(self) -> None:
        words = ("bench", "one.so", "--rounds", "2", "--threads", "1,2", "--trace", "bench.json")
        text = self.call(*words, check=True).stdout
        self.assertNotIn("of limit", text)  # --steps is not given
        trace = json.loads((self.folder / "bench.json").read_text(encoding="utf-8"))
        self.assertEqual(trace["otherData"], {"lost_parts": 0})
        events = trace["traceEvents"]
        names = [(event["pid"], event["tid"], event["args"]["name"]) for event in events if event["ph"] == "M"]
        self.assertEqual(names, [(1, 0, "1 thread"), (1, 0, "thread 0"),
                                 (2, 0, "2 threads"), (2, 0, "thread 0"), (2, 1, "thread 1")])  # fmt: skip
        for process in (1, 2):
            timed = [event for event in events if event["ph"] == "X" and event["pid"] == process]
            steps = [event for event in timed if event["cat"] != "part"]
            self.assertEqual({step["tid"] for step in steps}, {0})
            self.assertEqual((steps[0]["name"], steps[-1]["name"]), ("conv_0", "softmax"))
            self.check_steps_of_trace(steps)
            parts = [event for event in timed if event["cat"] == "part"]
            self.assertEqual(bool(parts), process == 2)  # one thread has only its steps
            self.check_parts_of_trace(steps, parts)
        self.fails(USAGE, "--clients: steps are timed one run at a time; leave --trace out", *words, "--clients", "2")
        self.fails(USER, "missing/b.json", "bench", "one.so", "--rounds", "1", "--trace", "missing/b.json")
        self.fails(USER, "one.so", "bench", "one.so", "--trace", "one.so")


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__], "cli_times"))
