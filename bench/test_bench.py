#!/usr/bin/env python3
"""Each suite of ./dev bench at its smallest: it runs and says what it promises. No times are judged.

bench/test_bench.py --bin build/release/bin
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import ClassVar

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests/kit"), str(ROOT / "tests/models")]
import build_backends  # noqa: E402
import expected  # noqa: E402
import hops  # noqa: E402
import placement  # noqa: E402
import run as bench_run  # noqa: E402

NOT_LINEAR = {"sums of symbols", "nested captures"}  # docs/benchmarks.md says why


class BenchTest(unittest.TestCase):
    """Runs the programs of one build."""

    bin: ClassVar[Path]

    def call(self, *command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        """Runs a command."""
        words = [str(word) for word in command]
        return subprocess.run(words, capture_output=True, text=True, check=False, env=os.environ | environment)

    def report(self, *command: str | Path) -> dict | list:
        """The JSON that a command prints."""
        done = self.call(*command)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def bench(self, *options: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        """bench/run.py over the build."""
        return self.call(sys.executable, ROOT / "bench/run.py", *options, "--bin", self.bin, **environment)

    def test_probes(self) -> None:
        report = self.report(self.bin / "headrace-bench", "probes", "--seconds", "0.001", "--threads", "2", "--json")
        self.assertEqual([probe["threads"] for probe in report["probes"]], [1, 2])
        for probe in report["probes"]:
            for key in ("fma_gflops", "l2_gigabytes", "l3_gigabytes", "dram_gigabytes"):
                self.assertGreater(probe[key], 0, key)
        self.assertTrue(report["hop_nanoseconds"] is None or report["hop_nanoseconds"] > 0)
        text = self.call(self.bin / "headrace-bench", "probes", "--seconds", "0.001", "--threads", "1").stdout
        self.assertRegex(text, r"(?m)^1 +\d+\.\d +\S+ +\d")

    def test_placement(self) -> None:
        left_out = build_backends.left_out(str(self.bin / "headrace"))
        if why := left_out.get("onednn") or left_out.get("ccompiler"):
            self.skipTest(why)
        with tempfile.TemporaryDirectory() as folder:
            done = self.bench("placement", "--models", "mlp", "--rounds", "2", "--json", "--folder", folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            (report,) = json.loads(done.stdout)["models"]
            self.assertEqual(list(report["plans"]), ["native", "onednn", "order", "model", "profile"])
            for name, plan in report["plans"].items():
                self.assertGreater(plan["best_seconds"], 0, name)
                self.assertGreaterEqual(plan["median_seconds"], plan["best_seconds"], name)
                self.assertEqual(sum(plan["ops"].values()), 9, name)
                if plan["same_as"]:
                    self.assertEqual(plan["best_seconds"], report["plans"][plan["same_as"]]["best_seconds"])
            self.assertEqual(report["plans"]["order"]["same_as"], "onednn")
            single = [report["plans"][name]["best_seconds"] for name in ("native", "onednn", "order")]
            for name, source in (("model", "estimated"), ("profile", "measured")):
                plan = report["plans"][name]
                self.assertAlmostEqual(plan["best_ratio"], plan["best_seconds"] / min(single))
                self.assertIn(source, plan["cost"]["source"])
            text = self.bench("placement", "--models", "mlp", "--rounds", "2", "--folder", folder).stdout
            self.assertRegex(text, r"(?m)^ *mlp +native +\d+\.\d+ +\d+\.\d+ +- +- +- +0 +9 native +-$")

    def test_plans_of_one_program(self) -> None:
        """Plans with all ops in the same places are timed once."""
        plans = {name: {"places": places} for name, places in (("a", [1]), ("b", [2]), ("c", [1]), ("d", [2]))}
        self.assertEqual(placement.first_of(plans), {"a": "a", "b": "b", "c": "a", "d": "b"})

    def test_compile(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            options = ("compile", "--models", "mlp", "--folder", folder, "--beside", self.bin)
            done = self.bench(*options, "--rounds", "2", "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            (report,) = json.loads(done.stdout)["models"]
            for one in report["builds"]:
                self.assertGreater(one["run_peak_bytes"], 1e6)
                self.assertLess(one["load_seconds"], one["compile_seconds"])
                self.assertAlmostEqual(one["peak_by_model"], one["compile_peak_bytes"] / report["model_bytes"])
            ours, other = (one["compile_seconds"] for one in report["builds"])
            self.assertAlmostEqual(report["ratios"]["compile_seconds"], ours / other)
            text = self.bench(*options, "--rounds", "1").stdout
            self.assertRegex(text, r"(?m)^ *mlp +this( +\d+\.\d\d){2} +\d+ +\d+\.\d\d +\d+\.\d +\d+$")
            self.assertRegex(text, r"(?m)^ *mlp +ratio( +\d+\.\d\d){4}$")

    def test_cache(self) -> None:
        python = os.environ.get("HEADRACE_PYTHON", sys.executable)
        if self.call(python, "-c", "import headrace").returncode != 0:
            self.skipTest(f"{python} has no package headrace")
        with tempfile.TemporaryDirectory() as folder:
            done = self.bench("cache", "--models", "mlp", "--rounds", "2", "--json", "--folder", folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            (report,) = json.loads(done.stdout)["models"]
            self.assertEqual(report["model"], "mlp")
            self.assertGreaterEqual(report["kept_median_seconds"], report["kept_best_seconds"])
            self.assertAlmostEqual(report["ratio"], report["kept_median_seconds"] / report["compile_seconds"])
            text = self.bench("cache", "--models", "mlp", "--rounds", "1", "--folder", folder).stdout
            self.assertRegex(text, r"(?m)^ *mlp( +\d+\.\d{3}){4}$")

    def test_placement_of_texts(self) -> None:
        """The plans are timed on the ids and masks of the model; random ids are outside of its tables."""
        timed = []

        def run(program: Path, verb: str, *words: str | Path) -> str:
            if verb == "bench":
                timed.append(words)
                return json.dumps({"results": [{"best_seconds": 1, "median_seconds": 1}]})
            return json.dumps({"placement": [], "regions": [], "cost": None})

        with tempfile.TemporaryDirectory() as path:
            folder = Path(path)
            args = argparse.Namespace(bin=self.bin, folder=folder, rounds=1)
            placement.measure(folder / "bert_base.onnx", args, run, bench_run.input_options)
            placement.measure(folder / "mlp.onnx", args, run, bench_run.input_options)
        of_bert, of_mlp = timed
        for name in ("input_ids", "token_type_ids", "attention_mask"):
            option = of_bert.index(f"{name}={folder / f'bert_base-{name}.npy'}")
            self.assertEqual(of_bert[option - 1], "--input")
        self.assertNotIn("--input", of_mlp)

    def test_onednn(self) -> None:
        if why := build_backends.left_out(str(self.bin / "headrace")).get("onednn"):
            self.skipTest(why)
        if not (self.bin / "onednn-by-hand").is_file():
            self.skipTest("this build has no oneDNN")
        with tempfile.TemporaryDirectory() as folder:
            self.call(self.bin / "write_zoo", folder, "mobilenet_v2", "mlp", "--small")
            command = ("onednn", "--rounds", "5", "--against", "none", "--folder", folder, "--models")
            done = self.bench(*command, "mobilenet_v2", "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            (report,) = json.loads(done.stdout)["models"]
            self.assertEqual(sum(one["count"] for one in report["kinds"].values()), report["primitives"])
            self.assertEqual(report["kinds"]["depthwise"]["count"] + report["kinds"]["strided depthwise"]["count"], 17)
            for key in ("best", "median"):
                ratio = report[f"{key}_seconds"] / report[f"by_hand_{key}_seconds"]
                self.assertAlmostEqual(report[f"by_hand_{key}_ratio"], ratio)
            self.assertEqual(report["other_implementations"], 0)
            refused = self.bench(*command, "mlp")
            self.assertNotEqual(refused.returncode, 0)
            self.assertIn("onednn-by-hand", refused.stderr)

    def test_onednn_by_hand_says_what_is_wrong(self) -> None:
        if not (self.bin / "onednn-by-hand").is_file():
            self.skipTest("this build has no oneDNN")
        with tempfile.TemporaryDirectory() as folder:
            listed = Path(folder) / "list"
            for text, error in (
                ("softmax x 1", "a primitive of the kind softmax is not supported"),
                ("pool x 1 aBcd4b 1", "the layout 'aBcd4b' is not supported"),
                ("dense x 1 2", "a line of a dense ends early"),
                ("", "has no primitive"),
            ):
                listed.write_text(text)
                done = self.call(self.bin / "onednn-by-hand", listed, "1")
                self.assertEqual((done.returncode, done.stdout), (2, ""), text)
                self.assertIn(error, done.stderr)
            self.assertIn("usage", self.call(self.bin / "onednn-by-hand", listed, "0").stderr)

    def test_kernels(self) -> None:
        command = (self.bin / "headrace-bench", "kernels", "--seconds", "0.001", "--rounds", "1", "--only", "960")
        report = self.report(*command, "--json")
        self.assertEqual(report["weights"], "hot")
        # As written, and where vectors have 8 or 16 elements in blocks of as many channels.
        names = [re.sub(r" in NCHW(8|16)c", "", kernel["name"]) for kernel in report["kernels"]]
        self.assertEqual(sorted(set(names)), ["1x1 160-960 @7", "depthwise 3x3 960 @7"])
        self.assertIn(len(names), (2, 4))
        for kernel in report["kernels"]:
            self.assertGreater(kernel["share"], 0)
            self.assertIn(kernel["bound"], ("FMA", "L2", "L3", "DRAM"))
        self.assertRegex(self.call(*command).stdout, r"(?m)^depthwise 3x3 960 @7 +\S+ [um]s +\S+ +\S+ +\d+ %")

    def test_labels(self) -> None:
        command = (self.bin / "headrace-bench", "labels", "--rounds", "1", "--nodes", "200", "--labels", "3")
        problems = self.report(*command, "--json")["problems"]
        rows = {(row["name"], row["method"]): row for row in problems}
        self.assertEqual(
            set(rows), {(name, way) for name in ("residual", "attention") for way in ("elimination", "moves")}
        )
        for name in ("residual", "attention"):
            exact, moved = rows[name, "elimination"], rows[name, "moves"]
            self.assertEqual(exact["gap"], 0)
            self.assertGreaterEqual(moved["cost"], exact["cost"])
            self.assertLessEqual(moved["cost"] * (1 - moved["gap"]), exact["cost"] * 1.000001)
        self.assertRegex(self.call(*command).stdout, r"(?m)^attention +\d+ +3 +moves +\S+ [um]?s +\d+ +\d+\.\d\d %")

    def test_regions(self) -> None:
        command = (self.bin / "headrace-bench", "regions", "--rounds", "1", "--ops", "1400")
        rows = self.report(*command, "--json")["programs"]
        self.assertEqual(
            [(row["name"], row["ops"]) for row in rows],
            [(name, ops) for name in ("residual", "attention") for ops in (140, 1400)],
        )
        # Each fourth of 140 and of 1400 ops in a row stays; the three ops behind it are one region.
        self.assertEqual([row["regions"] for row in rows[:2]], [35, 350])
        for row in rows:
            self.assertGreater(row["infer_seconds"], 0, row)
            self.assertGreaterEqual(row["median_seconds"], row["best_seconds"], row)
            self.assertLess(row["bytes"], 10_000 * row["ops"], row)
        # Allocated bytes are equal in each run: ten times the program takes some twelve times the bytes at most.
        self.assertLess(rows[1]["bytes"], 12 * rows[0]["bytes"])
        self.assertLess(rows[3]["bytes"], 12 * rows[2]["bytes"])
        self.assertRegex(self.call(*command).stdout, r"(?m)^residual +1400 +350( +\S+ [um]?s){6} +\d+\.\d +\S+ [KM]")

    def test_split(self) -> None:
        command = (self.bin / "headrace-bench", "split", "--rounds", "1", "--nodes", "200", "--devices", "2")
        graphs = {row["name"]: row for row in self.report(*command, "--json")["graphs"]}
        self.assertEqual(len(graphs), 14)
        for name in ("bert24", "inception, fused", "residual blocks, overlapped"):
            self.assertEqual((graphs[name]["method"], graphs[name]["gap"]), ("downsets", 0), name)
        self.assertEqual(graphs["gnmt"]["method"], "orders")
        self.assertRegex(
            self.call(*command).stdout, r"(?m)^bert24 +603 +2116 +downsets +2 +\S+ ms +0\.00 % +\S+ [um]?s"
        )

    def test_pipeline(self) -> None:
        command = (self.bin / "headrace-bench", "pipeline", "--rounds", "1", "--items", "200", "--sleep", "0.0005")
        report = self.report(*command, "--json")
        stages = [row["stages"] for row in report["bounds"]]
        self.assertEqual(stages[:6], [2, 4, 8, 16, 8, 16])
        self.assertIn(stages[6:], ([2, 4], []))  # none compute on one processor
        for row in report["bounds"]:
            self.assertGreater(row["share"], 0.05, row)
            self.assertLess(row["share"], 3, row)  # one short round is noisy
            self.assertLessEqual(row["share_low"], row["share_high"])
            self.assertEqual(row["holds"], row["share_high"] >= row["limit"])
            self.assertEqual(row["limit"], 0.95 if "computing" in row["name"] else 0.98)
        for peer in report["peers"]:  # those that are installed
            self.assertGreater(peer["share_of_four"], 0.05, peer)
            ours = report["hop_across_groups_ns" if peer["has_threads"] else "hop_in_group_ns"]
            if peer["hop_ratio"] is not None:
                self.assertAlmostEqual(peer["hop_ratio"], ours / peer["hop_ns"])
        self.assertEqual(len(report["hop_nanoseconds"]), 2)
        for nanoseconds in report["hop_nanoseconds"]:
            self.assertTrue(nanoseconds is None or 5 < nanoseconds < 1e6, nanoseconds)
        for key in ("hop_in_group_instructions", "hop_across_groups_instructions"):
            self.assertTrue(report[key] is None or 50 < report[key] < 2000, report)
        self.assertGreater(report["idle_round_trip_ns"], 0)
        self.assertGreater(report["large_by_small"], 0)
        self.assertRegex(
            self.call(*command).stdout, r"(?m)^16 sleeping stages +\d+\.\d % +\d+\.\d % to \d+\.\d % +>= 98 %"
        )

    def test_predict(self) -> None:
        command = (self.bin / "headrace-bench", "predict", "--rounds", "2", "--items", "2000", "--sleep", "0.002")
        rows = self.report(*command, "--json")["pipelines"]
        self.assertEqual(len(rows), 12)
        for row in rows:
            self.assertLess(row["achieved_per_second"], row["predicted_per_second"] * 1.5, row)
            self.assertGreater(row["achieved_per_second"], row["predicted_per_second"] * 0.1, row)
        # A sleep of 2 ms takes a little longer: a stage makes at most 500 requests a second, two replicas 1,000.
        named = {row["name"]: row["predicted_per_second"] for row in rows}
        self.assertLess(named["8 equal stages"], 500)
        self.assertGreater(named["a slow stage with 2 replicas"], named["one stage"] * 1.2)
        self.assertLess(named["4 stages in 2 threads"], named["4 stages, the first one is slow"] * 0.9)
        self.assertRegex(self.call(*command).stdout, r"(?m)^two equal branches that join +\d+\.\d +\d+\.\d +\d\.\d{3} ")

    def test_predict_models(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            options = ("predict", "--models", "mlp", "--rounds", "1", "--folder", folder)
            done = self.bench(*options, "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            report = json.loads(done.stdout)
            self.assertEqual(len(report["pipelines"]), 12)
            (model,) = report["models"]
            self.assertTrue(model["name"].startswith("mlp in "))
            self.assertAlmostEqual(model["ratio"], model["achieved_per_second"] / model["predicted_per_second"])
            self.assertEqual(model["holds"], abs(model["ratio"] - 1) <= 0.15)

    def test_scaling(self) -> None:
        command = (self.bin / "headrace-bench", "scaling", "--rounds", "1", "--size", "0.05", "--shape", "lets")
        rows = self.report(*command, "--json")["rows"]
        self.assertEqual({row["shape"] for row in rows}, {"lets", "called lets", "deep lets"})
        self.assertEqual({row["size"] for row in rows}, {400, 200})
        works = {row["work"] for row in rows}
        self.assertLessEqual({"parse", "print", "equal", "InferType", "interpret", "FuseOps", "LambdaLift"}, works)
        self.assertEqual(len(works) * 3, len(rows))
        for row in rows:
            self.assertGreater(row["seconds"], 0, row)
        text = self.call(*command, "--work", "parse").stdout
        self.assertRegex(text, r"(?m)^called lets +200 +parse +\S+ [um]?s +\S+ \S+ +\d\.\d +\d\.\d")
        late = self.call(*command, "--work", "parse", "--limit", "0")
        self.assertEqual(late.returncode, 2)

    def test_work_is_linear(self) -> None:
        """Allocated bytes, which are equal in each run, at most double when the program doubles in size."""
        command = (self.bin / "headrace-bench", "scaling", "--rounds", "1", "--size", "0.1", "--json")
        for work in ("parse", "InferType", "interpret", "Defunctionalization", "DynamicToStatic"):
            report = self.report(*command, "--work", work)
            self.assertGreater(len(report["rows"]), 30)
            for row in report["rows"]:
                if row["shape"] not in NOT_LINEAR and row["bytes_ratio"] is not None:
                    self.assertLess(row["bytes_ratio"], report["linear_ratio"], row)

    def test_models(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            options = ("models", "--models", "mlp", "--rounds", "1", "--against", "none", "--folder", folder)
            done = self.bench(*options, "--json", "--threads", "1,2")
            self.assertEqual(done.returncode, 0, done.stderr)
            report = json.loads(done.stdout)
            self.assertEqual(len(report["models"][0]["hop_nanoseconds"]), 2)
            (model,) = report["models"]
            self.assertEqual([result["threads"] for result in model["results"]], [1, 2])
            (part,) = model["results"][1]["parts"]
            self.assertEqual(part["best_seconds"], model["results"][1]["best_seconds"])
            self.assertRegex(self.bench(*options).stdout, r"(?m)^ *mlp +- +1 +\d")

    def test_peers_that_refuse_a_model(self) -> None:
        """The reason is a line of the table; other failures of a peer end the program."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            python = folder / "python"
            python.write_text('#!/bin/sh\nif [ "$#" = 4 ]; then echo ready 1; else echo error $3 knows no Gemm; fi\n')
            python.chmod(0o755)
            options = ("models", "--models", "mlp", "--rounds", "1", "--against", "ncnn,openvino", "--folder", folder)
            done = self.bench(*options, HEADRACE_PYTHON=str(python))
            self.assertEqual((done.returncode, done.stderr), (0, "measuring mlp\n"))
            for peer in ("ncnn", "openvino"):
                self.assertRegex(done.stdout, rf"(?m)^ *mlp +{peer}( +-){{11}}  {peer} knows no Gemm$")
            models = json.loads(self.bench(*options, "--json", HEADRACE_PYTHON=str(python)).stdout)["models"]
            self.assertEqual([one["refusal"] for one in models], ["ncnn knows no Gemm", "openvino knows no Gemm"])
            self.assertEqual([(one["model"], one["results"]) for one in models], [("mlp", [])] * 2)
            python.write_text("#!/bin/sh\necho missing there is no package ncnn\n")
            done = self.bench(*options, HEADRACE_PYTHON=str(python))
            self.assertEqual((done.returncode, done.stdout), (4, ""))
            self.assertIn("headrace: ncnn: there is no package ncnn", done.stderr)

    def test_ratios_by_hop(self) -> None:
        """Parts whose hops before and after are of one class give its ratio; a mixed part counts for neither."""
        hop = iter([60, 70, 200, 210, 220, 130])
        times = iter([(2.0, 4.0), (9.0, 1.0), (3.0, 2.0), (4.0, 2.5), (8.0, 1.0)])

        def part(*words: str) -> dict:
            self.assertEqual(words, ("--threads", "2", "--rounds", "2"))
            ours, theirs = next(times)
            one = {"best_seconds": ours, "median_seconds": ours, "peer_best_seconds": theirs, "runs": 2}
            return {"peer": "other", "results": [one | {"peer_median_seconds": theirs, "runs_per_second": 1 / ours}]}

        report = hops.measure("2", 9, part, lambda: next(hop))
        (result,) = report["results"]
        self.assertEqual(result["best_ratio_by_hop"], {"short": 0.5, "long": 1.5})
        self.assertEqual([one["class"] for one in result["parts"]], ["short", "mixed", "long", "long", "mixed"])
        self.assertEqual((result["best_seconds"], result["median_seconds"], result["runs"]), (2.0, 4.0, 10))
        self.assertEqual(result["ratio"], 4.0 / 2.0)
        self.assertEqual(hops.cells_of(result), ["0.50", "1.50"])
        self.assertEqual(hops.cells_of({}), ["-", "-"])

    def test_lstm(self) -> None:
        """The layer has one kernel, of 4 gates of 128 units over 128 inputs and as many units, for 100 steps."""
        with tempfile.TemporaryDirectory() as folder:
            options = ("lstm", "--rounds", "2", "--against", "none", "--folder", folder)
            done = self.bench(*options, "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            (report,) = json.loads(done.stdout)["models"]
            self.assertEqual(report["model"], "lstm_128x100")
            (result,) = report["results"]
            self.assertGreaterEqual(result["median_seconds"], result["best_seconds"])
            inspected = self.report(self.bin / "headrace", "inspect", f"{folder}/lstm_128x100.onnx", "--json")
            self.assertEqual(inspected["inputs"][0]["shape"], [100, 1, 128])
            self.assertEqual(inspected["outputs"][0]["shape"], [100, 1, 1, 128])
            self.assertRegex(self.bench(*options).stdout, r"(?m)^ *lstm_128x100 +- +1 +\d")

    def test_lstm_beside_onnxruntime(self) -> None:
        python = os.environ.get("HEADRACE_PYTHON", sys.executable)
        if self.call(python, "-c", "import headrace, onnxruntime").returncode != 0:
            self.skipTest(f"{python} has no package headrace or no onnxruntime")
        with tempfile.TemporaryDirectory() as folder:
            done = self.bench("lstm", "--rounds", "2", "--json", "--folder", folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            (report,) = json.loads(done.stdout)["models"]
            self.assertIn("onnxruntime", report["peer"])
            (result,) = report["results"]
            self.assertAlmostEqual(result["ratio"], result["median_seconds"] / result["peer_median_seconds"])
            self.assertLess(result["difference"], 1e-5)

    def test_inputs_of_texts(self) -> None:
        """The files have the ids and masks that the models take; other models get random numbers."""
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(bench_run.input_options("resnet50", Path(folder)), [])
            options = bench_run.input_options("bert_base", Path(folder))
            self.assertEqual(options[::2], ["--input"] * 3)
            files = dict(option.split("=", 1) for option in options[1::2])
            arrays = {name: expected.read_npy(Path(file)) for name, file in files.items()}
            self.assertEqual(list(arrays), ["input_ids", "token_type_ids", "attention_mask"])
            for array in arrays.values():
                self.assertEqual((array.dtype, array.shape), ("<i8", (1, 128)))
            ids = arrays["input_ids"].values()
            self.assertGreaterEqual(min(ids), 0)
            self.assertLess(max(ids), 30522)
            self.assertGreater(len(set(ids)), 100)
            self.assertEqual(arrays["token_type_ids"].values(), [0] * 64 + [1] * 64)
            self.assertEqual(arrays["attention_mask"].values(), [1] * 96 + [0] * 32)

    def test_passes(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            options = ("passes", "--models", "mlp", "--rounds", "1", "--folder", folder)
            done = self.bench(*options, "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            programs = json.loads(done.stdout)["programs"]
            self.assertEqual([program["name"] for program in programs], ["chain of 10000", "mlp"])
            for program in programs:
                self.assertGreater(program["passes"]["best_seconds"], 0)
        command = (self.bin / "headrace-bench", "passes", "--ops", "10", "--rounds", "1")
        self.assertRegex(self.call(*command).stdout, r"(?m)^chain of 10 +\S+ [mu]s")

    def test_mistakes(self) -> None:
        for options, message in (
            (("models", "--models", "resnet51"), "no model resnet51; there are mlp, "),
            (("speed",), "invalid choice: 'speed'"),
        ):
            done = self.bench(*options)
            self.assertEqual(done.returncode, 2)
            self.assertIn(message, done.stderr)
        done = self.call(self.bin / "headrace-bench", "kernels", "--only", "9x9")
        self.assertEqual(done.returncode, 3)
        self.assertIn("no kernel is named like '9x9'; there are stem", done.stderr)
        self.assertEqual(self.call(self.bin / "headrace-bench").returncode, 2)

    def test_help(self) -> None:
        for word in ("probes", "kernels", "models", "passes", "Examples:"):
            self.assertIn(word, self.bench("--help").stdout)


def main() -> None:
    """Runs the tests on the build that is named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, required=True)
    args, rest = parser.parse_known_args()
    BenchTest.bin = args.bin
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
