#!/usr/bin/env python3
"""Pipelines as a user of the program meets them: split, run, timed, inspected. Standard library only.

tests/cli/test_pipelines.py --program headrace [--junit FILE] [TEST ...]
"""

from __future__ import annotations

import json
import struct
import sys

from test_cli import DIGITS, OK, USAGE, USER, JsonPageTest, main, npy

SHAPE = ("--shape", "x=16,1,8,8")
PARTS = """#[version = "0.0.5"]
def @main(%x: Tensor[(4, 32), float32], %w: Tensor[(32, 32), float32]) {
  let %a = tanh(nn.dense(%x, %w, units=32));
  (nn.dense(%a, %w, units=32), %a)
}
"""


class PipelineTest(JsonPageTest):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        (cls.folder / "parts.relay").write_text(PARTS)
        cls.call("pipeline", "split", DIGITS, *SHAPE, "-o", "pipe.so", "--estimate", check=True)
        data = bytearray((cls.folder / "pipe.so").read_bytes())
        data[len(data) // 2] ^= 1
        (cls.folder / "flipped_pipe.so").write_bytes(data)

    def test_split(self) -> None:
        report = self.report("pipeline split", DIGITS, *SHAPE, "-o", "two.so", "--replans", "1")
        self.assertEqual(report["bytes"], (self.folder / "two.so").stat().st_size)
        self.assertEqual([stage["name"] for stage in report["stages"]], ["stage0", "stage1"])
        self.assertTrue(report["measured"])
        self.assertGreaterEqual(report["period_seconds"], report["lower_bound_seconds"])
        slowest = max(stage["seconds"] + stage["transfer_seconds"] for stage in report["stages"])
        self.assertAlmostEqual(report["period_seconds"], slowest, delta=1e-8)
        self.assertAlmostEqual(report["predicted_per_second"] * report["period_seconds"], 1, delta=0.02)

    def test_split_says_what_it_found(self) -> None:
        done = self.call("pipeline", "split", DIGITS, *SHAPE, "-o", "said.so", "--estimate", "--simulate", check=True)
        self.assertRegex(done.stdout, r"\Asaid.so: .*, one plan tried, times estimated by the sizes of tensors\n")
        self.assertRegex(done.stdout, r"\nperiod +.* \(stage [01]\)\nlower bound +")
        self.assertRegex(done.stdout, r"\nbottleneck +stage 'stage[01]'\n")

    def test_the_results_are_those_of_the_whole_model(self) -> None:
        for options in (["--estimate"], ["--replans", "0", "--cpus", "0/0", "--threads", "1"]):
            self.call("pipeline", "split", "parts.relay", "-o", "parts.so", *options, check=True)
            report = self.report("pipeline run", "parts.so", "--requests", "3", "--output-dir", "out")
            self.assertEqual([output["shape"] for output in report["outputs"]], [[4, 32], [4, 32]])
            self.assertEqual(report["metrics"]["succeeded"], 3)
            self.assertEqual(report["fallbacks"], [])
        self.call("compile", DIGITS, *SHAPE, "-o", "whole.so", check=True)
        (self.folder / "x16.npy").write_bytes(npy("<f4", (16, 1, 8, 8), struct.pack("<1024f", *range(1024))))
        one = self.call("run", "whole.so", "--input", "x=x16.npy", "--json", check=True)
        (expected,) = json.loads(one.stdout)["outputs"]
        (output,) = self.report("pipeline run", "pipe.so", "--input", "x=x16.npy", "--output-dir", "o")["outputs"]
        for key in ("name", "dtype", "shape", "non_finite"):
            self.assertEqual(output[key], expected[key])
        for key in ("min", "max", "mean"):
            self.assertAlmostEqual(output[key], expected[key], delta=1e-5)

    def test_run(self) -> None:
        done = self.call("pipeline", "run", "pipe.so", "--requests", "50", "--max-inflight", "2", check=True)
        self.assertRegex(done.stdout, r"\nstage0 +50 +0 +\d+ %")
        self.assertRegex(done.stdout, r"\n50 requests, [\d.]+ a second; latency .*; bottleneck: stage[01]\n")

    def test_a_warm_up_is_no_request(self) -> None:
        report = self.report("pipeline run", "pipe.so", "--requests", "3", "--warm-up", "--output-dir", "w")
        self.assertEqual(report["metrics"]["succeeded"], 3)
        self.assertEqual([stage["items"] for stage in report["metrics"]["stages"]], [3, 3])

    def test_bench(self) -> None:
        report = self.report("pipeline bench", "pipe.so", "--requests", "5", "--rounds", "2", "--unpinned")
        self.assertEqual(report["metrics"]["succeeded"], 5 * 3)  # a round warms up
        self.assertGreaterEqual(report["stream"]["best_per_second"], report["stream"]["median_per_second"])
        self.assertRegex(
            self.call("pipeline", "bench", "pipe.so", "--requests", "2", "--rounds", "1", check=True).stdout,
            r"\Arequests a second +best +median\nstream .*\none at a time .*\nratio of medians [\d.]+\n\Z",
        )

    def test_bench_simulates(self) -> None:
        words = ("bench", "pipe.so", "--requests", "10", "--rounds", "2", "--simulate")
        report = json.loads(self.call("pipeline", *words, "--json", check=True).stdout)
        simulation = report["simulation"]
        self.assertEqual([stage["name"] for stage in simulation["stages"]], ["stage0", "stage1"])
        slowest = max(stage["seconds"] for stage in simulation["stages"])
        shortest = min(stage["seconds"] for stage in simulation["stages"])
        # The first request passes both stages, and each further one takes the time of the slowest.
        expected = 10 / (10 * slowest + shortest)
        self.assertAlmostEqual(simulation["requests_per_second"] / expected, 1, delta=0.01)
        self.assertAlmostEqual(
            simulation["achieved_by_predicted"],
            report["stream"]["median_per_second"] / simulation["requests_per_second"],
        )
        self.assertIsNone(self.report("pipeline bench", "pipe.so", "--requests", "2", "--rounds", "1")["simulation"])
        text = self.call("pipeline", *words, check=True).stdout
        self.assertRegex(text, r"\npredicted +[\d.]+\n(.*\n)*achieved by predicted [\d.]+\n\n10 requests in .*\n")
        self.assertRegex(text, r"\nstage +group +replicas +busy .*\nstage0 ")

    def test_trace(self) -> None:
        """The file has each call of each stage, in the Trace Event Format."""
        for action, calls in (("run", 40), ("bench", 40 * 2)):  # a round of the bench warms up
            rounds = ["--rounds", "1"] if action == "bench" else []
            given = ("pipeline", action, "pipe.so", "--requests", "40", *rounds, "--trace", "trace.json")
            report = json.loads(self.call(*given, "--json", check=True).stdout)
            trace = json.loads((self.folder / "trace.json").read_text())
            events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
            self.assertEqual(report["trace"], {"file": "trace.json", "events": len(events), "overwritten": 0})
            for stage in ("stage0", "stage1"):
                self.assertEqual(sum(event["name"] == stage for event in events), calls)
            self.assertIn(" times of stages in trace.json\n", self.call(*given, check=True).stdout)
        # Told before a stream that would take longer than the test may.
        long = ("--requests", "100000000")
        self.fails(USER, "nowhere", "pipeline", "run", "pipe.so", *long, "--trace", "nowhere/trace.json")
        self.assertEqual(self.call("pipeline", "run", "pipe.so", "--trace", "/dev/null").returncode, 0)

    def test_simulated_devices(self) -> None:
        device = "sim(speed=0.5, latency=2ms)"
        given = (
            "pipeline",
            "split",
            DIGITS,
            *SHAPE,
            "-o",
            "sim.so",
            "--estimate",
            "--stages",
            "1",
            "--devices",
            device,
        )
        text = self.call(*given, "--simulate", check=True).stdout
        self.assertRegex(text, r"\nsim:0 +native at speed 0\.5 ")
        self.assertRegex(text, r"\nx to sim:0 ")
        self.assertIn("bottleneck", text)
        stages = self.report("pipeline inspect", "sim.so")["stages"]
        self.assertIn("sim:0(speed=0.5, latency=2ms)", [stage["device"] for stage in stages])
        self.assertIn("sim:0(speed=0.5, latency=2ms)", self.call("pipeline", "inspect", "sim.so", check=True).stdout)
        report = json.loads(self.call("pipeline", "run", "sim.so", "--requests", "20", "--json", check=True).stdout)
        transfers = [stage for stage in report["metrics"]["stages"] if "sim:0" in stage["name"]]
        self.assertEqual({stage["items"] for stage in transfers}, {20})
        self.assertTrue(all(stage["median_seconds"] >= 1.5e-3 for stage in transfers))
        spaced = ("--stages", "2", "--devices", "cpu / sim(speed=2) ")
        self.call("pipeline", "split", DIGITS, *SHAPE, "-o", "spaced.so", "--estimate", *spaced, check=True)
        self.assertEqual(self.call("pipeline", "bench", "sim.so", "--requests", "3", "--rounds", "1").returncode, OK)

    def test_inspect(self) -> None:
        report = self.report("pipeline inspect", "pipe.so")
        self.assertEqual(report["connections"][0], {"from": "input x", "to": "stage0.x"})
        self.assertEqual(report["connections"][-1]["to"], "output probabilities")
        self.assertEqual([model["name"] for model in report["models"]], ["stage0", "stage1"])
        split = self.report("pipeline split", DIGITS, *SHAPE, "-o", "told.so", "--estimate")
        told = [stage["memory_bytes"] for stage in split["stages"]]
        self.assertEqual(
            [stage["memory_bytes"] for stage in self.report("pipeline inspect", "told.so")["stages"]], told
        )
        self.assertTrue(all(nbytes > 0 for nbytes in told))
        self.assertEqual(report["devices"], [])
        on_one = ("--stages", "1", "--devices", "sim(memory=64MiB)", "--estimate")
        self.call("pipeline", "split", DIGITS, *SHAPE, "-o", "device.so", *on_one, check=True)
        report = self.report("pipeline inspect", "device.so")
        (device,), (stage,) = report["devices"], report["stages"]
        self.assertEqual(device["memory_bytes"], stage["memory_bytes"])
        self.assertEqual((device["device"], device["limit_bytes"]), (stage["device"], 64 << 20))
        text = self.call("pipeline", "inspect", "device.so", check=True).stdout
        self.assertRegex(text, r"\ndevice +memory +of\nsim:0 +[\d.]+ [kM]B +64\.0 MB\n")
        text = self.call("pipeline", "inspect", "pipe.so", check=True).stdout
        self.assertRegex(text, r"\Apipe\.so: .*\n\nstage .* batch +memory\nstage0 .* [\d.]+ [kM]?B\n")
        self.assertIn("\ninput x: float32 (16, 1, 8, 8)\ninput x -> stage0.x\n", text)
        self.assertIn("a pipeline of 2 stages, which", self.call("inspect", "pipe.so", check=True).stdout)
        self.assertEqual(json.loads(self.call("inspect", "pipe.so", "--json").stdout)["pipeline_stages"], 2)

    def test_wrong_files(self) -> None:
        for action in ("run", "bench", "inspect"):
            self.fails(USER, "there is no file 'nothing'", "pipeline", action, "nothing")
            self.fails(USER, "is a model, which headrace pipeline split makes a", "pipeline", action, DIGITS)
            self.fails(USER, "'one.so' has no pipeline: it is a model", "pipeline", action, "one.so")
            self.fails(USER, "is damaged: its checksum does not match", "pipeline", action, "flipped_pipe.so")
        self.fails(USER, "is a pipeline of 2 stages, not a model; run it with", "run", "pipe.so")
        self.fails(USER, "nowhere", "pipeline", "split", DIGITS, *SHAPE, "-o", "nowhere/pipe.so", "--estimate")
        self.fails(USER, "bad.relay:2", "pipeline", "split", "bad.relay", "-o", "bad.so")

    def test_wrong_inputs(self) -> None:
        self.fails(USER, "no input 'y'; it has x", "pipeline", "run", "pipe.so", "--input", "y=x.npy")
        self.fails(USER, "x.*must be float32 16x1x8x8", "pipeline", "run", "pipe.so", "--input", "x=x.npy")
        self.fails(USER, "x.*must be float32 16x1x8x8", "pipeline", "run", "pipe.so", "--input", "x=wide.npy")
        many = ("pipeline", "run", "pipe.so", "--requests", "1000000", "--output-dir", "/proc/nowhere")
        self.fails(USER, "--output-dir: cannot make '/proc/nowhere'", *many)  # at once

    def test_wrong_options(self) -> None:
        self.fails(USAGE, "name an action: split, run, bench, inspect\n.*headrace pipeline --help", "pipeline")
        self.fails(USAGE, "there is no action 'frob'; there is split, run, bench, inspect", "pipeline", "frob")
        self.fails(USAGE, "--output is required", "pipeline", "split", DIGITS)
        self.fails(USAGE, "name an action: list, check", "backend")
        self.fails(USAGE, "--stages", "pipeline", "split", DIGITS, *SHAPE, "-o", "no.so", "--stages", "0")
        wrong = ("pipeline", "run", "pipe.so", "--requests", "0")
        self.fails(USAGE, "--requests.*\n.*see: headrace pipeline run --help", *wrong)
        for action in ("run", "bench"):
            wrong = ("pipeline", action, "pipe.so", "--fallback", "maybe")
            self.fails(USAGE, "there is no fallback 'maybe'; there is native, none", *wrong)
        for option, text, message in (
            ("--on", "null/", "lacks a name"),
            ("--memory", "12X", "'12X' gives no bytes"),
            ("--memory", "0", "'0' gives no bytes"),
            ("--memory", "9999999T", "'9999999T' gives no bytes"),
            ("--devices", "cpu/gpu", "--devices: 'gpu' is not a device; a device is cpu or sim\\(...\\), as in"),
            ("--devices", "cpu / sim(memory=6XB)", "'6XB', which has the unknown unit 'XB'"),
            ("--devices", "sim(link=2)", "its link is '2', which has no unit"),
            ("--isolation", "jail", "there is no isolation 'jail'; there is thread, process"),
            ("--replicas", "0", "--replicas: '0' is not a whole number from 1 to 64"),
        ):
            self.fails(USAGE, message, "pipeline", "split", DIGITS, "-o", "no.so", option, text)
        for text, message in (
            ("a", "--cpus: part 1 of 'a' gives no processors; write those of each stage, as in 0,1/2,3"),
            ("0/", "--cpus: part 2 of '0/' gives no processors"),
            ("0/0,0", "processor 0 is named twice; name it once\n  in: --cpus: part 2 of '0/0,0'"),
        ):
            self.fails(USAGE, message, "pipeline", "split", DIGITS, "-o", "no.so", f"--cpus={text}")
        lacking = r"processor 4000 was asked for; this process may use [\d, ]+\n  in: --cpus: part 2 of '0/4000'"
        self.fails(USER, lacking, "pipeline", "split", DIGITS, "-o", "no.so", "--cpus", "0/4000")
        wrong = ("pipeline", "split", DIGITS, *SHAPE, "-o", "no.so", "--cpus", "0/0/0")
        self.fails(USAGE, "--cpus: has parts for 3 stages, and --stages is 2", *wrong)
        for option, text, message in (
            ("--on", "native", "--on: has parts for 1 stages, and --stages is 2"),
            ("--memory", "1G/1G/1G", "--memory: has parts for 3 stages, and --stages is 2"),
            ("--devices", "cpu", "--devices: has parts for 1 stages, and --stages is 2"),
            ("--devices", "sim:1/sim", "--devices: two stages are on sim:1; give each device a number of its own"),
        ):
            self.fails(USAGE, message, "pipeline", "split", DIGITS, *SHAPE, "-o", "no.so", option, text)
        self.assertFalse((self.folder / "no.so").exists())

    def test_help(self) -> None:
        for action in ("split", "run", "bench", "inspect"):
            done = self.call("pipeline", action, "--help")
            self.assertEqual((done.returncode, done.stderr), (OK, ""))
            self.assertIn(f"Example: headrace pipeline {action} ", done.stdout)


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__], "pipelines"))
