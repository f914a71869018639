#!/usr/bin/env python3
"""The pages of `explain --html`, `inspect --html`, `bench --html` and of traces: what is in their files, and what a
browser makes of them. Standard library only; the browser is Debian's chromium, and without it its tests are skipped.

tests/cli/test_pages.py --program headrace [--junit FILE] [TEST ...]

HEADRACE_WRITE_ZOO names the program write_zoo; HEADRACE_PAGES, if set, a folder for screenshots.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any, ClassVar

from test_cli import DIGITS, ONE, ROOT, USAGE, USER, CliTest, main, npy, onnx_model
from test_cli_peer import AGAINST, STAND_IN

sys.path.insert(0, str(ROOT / "tests/kit"))
import browser

# The text of a program whose parts are on two backends.
PARTS = """#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(2, 3), float32]) {
  let %a = multiply(add(%x, %y), %x);
  let %b = nn.softmax(%a);
  subtract(nn.relu(%b), %y)
}
"""
# Two convolutions, which oneDNN computes in blocks of channels, around an op that it does not compute.
CONVS = """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 32, 28, 28), float32]) {
  %0 = nn.conv2d(%x, ones(shape=[32, 32, 3, 3], dtype="float32"), padding=[1, 1, 1, 1]);
  %1 = nn.conv2d(round(%0), ones(shape=[32, 32, 3, 3], dtype="float32"), padding=[1, 1, 1, 1]);
  round(%1)
}
"""
HOSTILE = b"</script><img src=x onerror=alert(1)><!--&amp;'\"\x01"
WITHOUT_BROWSER = browser.missing("chromium", "chromedriver")


def chain(length: int) -> str:
    """A program of that many ops in which each third value skips three ops."""
    lines = ['#[version = "0.0.5"]', "def @main(%x: Tensor[(8, 64), float32], %y: Tensor[(8, 64), float32]) {"]
    last, kept = "%x", "%y"
    for i in range(length):
        op = (f"add({last}, {kept})", f"nn.relu({last})", f"nn.softmax({last})", f"tanh({last})")[i % 4]
        lines.append(f"  let %v{i} = {op};")
        last = f"%v{i}"
        kept = last if i % 12 == 0 else kept
    return "\n".join([*lines, f"  {last}", "}", ""])


class PageTest(CliTest):
    """A folder with models; every test makes pages of them."""

    pages: ClassVar[Path]

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        (cls.folder / "parts.relay").write_text(PARTS)
        cls.pages = Path(os.environ.get("HEADRACE_PAGES", cls.folder)).resolve()

    def page(self, name: str, *arguments: object) -> Path:
        """Runs the program with --html; returns the page."""
        path = self.folder / name
        self.call(*arguments, "--html", path, check=True)
        return path

    @staticmethod
    def data_of(page: Path) -> Any:
        """The JSON that the page's scripts read."""
        return json.loads(
            re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.S)[1]
        )

    def timeline(self) -> Path:
        """The page of a stream through two stages."""
        self.call("pipeline", "split", DIGITS, "--shape", "x=64,1,8,8", "-o", "pipe.so", "--estimate", check=True)
        page = self.folder / "timeline.html"
        self.call("pipeline", "run", "pipe.so", "--requests", "30", "--trace", page, check=True)
        return page

    def plan(self) -> Path:
        """The page of a pipeline of two stages in two groups."""
        self.call("pipeline", "split", DIGITS, "--shape", "x=64,1,8,8", "-o", "pipe.so", "--estimate", check=True)
        self.call("pipeline", "inspect", "pipe.so", "--html", "plan.html", check=True)
        return self.folder / "plan.html"


class FileTest(PageTest):
    def test_the_data_is_the_json(self) -> None:
        self.needs_backends("ccompiler")
        self.call("compile", "parts.relay", "-o", "parts.so", "--backends", "ccompiler", check=True)
        for verb, *arguments in (
            ("explain", "parts.relay", "--backends", "ccompiler"),
            ("explain", DIGITS, *ONE),
            ("inspect", "parts.so"),
        ):
            page = self.page("data.html", verb, *arguments)
            self.assertEqual(self.data_of(page), json.loads(self.call(verb, *arguments, "--json").stdout))

    def test_the_graph_of_a_placement(self) -> None:
        self.needs_backends("ccompiler")
        graph = self.data_of(self.page("graph.html", "explain", "parts.relay", "--backends", "ccompiler"))["graph"]
        self.assertEqual(
            [(node["kind"], node["op"], node["backend"], node["block"]) for node in graph["nodes"]],
            [
                ("input", None, None, None),
                ("input", None, None, None),
                ("op", "add", "ccompiler", 0),
                ("op", "multiply", "ccompiler", 0),
                ("op", "nn.softmax", "native", None),
                ("op", "nn.relu", "ccompiler", 1),
                ("op", "subtract", "ccompiler", 1),
                ("output", None, None, None),
            ],
        )
        edges = [(edge["from"], edge["to"], edge["input"]) for edge in graph["edges"]]
        self.assertEqual(
            edges, [(0, 2, 0), (1, 2, 1), (2, 3, 0), (0, 3, 1), (3, 4, 0), (4, 5, 0), (5, 6, 0), (1, 6, 1), (6, 7, 0)]
        )
        self.assertEqual(graph["nodes"][4]["outputs"], [{"dtype": "float32", "shape": [2, 3], "bytes": 24}])
        (other,) = graph["nodes"][4]["alternatives"]
        self.assertEqual((other["backend"], other["reason"]), ("ccompiler", 20))

    def test_the_graph_of_steps(self) -> None:
        self.needs_backends("ccompiler")
        self.call("compile", "parts.relay", "-o", "steps.so", "--backends", "ccompiler", check=True)
        program = self.data_of(self.page("steps.html", "inspect", "steps.so"))["programs"][0]
        nodes, edges = program["graph"]["nodes"], program["graph"]["edges"]
        self.assertEqual([node["kind"] for node in nodes], ["input", "input", "region", "kernel", "region", "output"])
        self.assertEqual([node["backend"] for node in nodes[2:5]], ["ccompiler", "native", "ccompiler"])
        self.assertEqual(
            sorted((edge["from"], edge["to"]) for edge in edges), [(0, 2), (1, 2), (1, 4), (2, 3), (3, 4), (4, 5)]
        )
        self.assertEqual(nodes[3]["op"], "nn_softmax")
        self.assertEqual([node["seconds"] for node in nodes], [None] * 6)

    def test_times_of_steps(self) -> None:
        measured = self.call("bench", "one.so", "--steps", "--rounds", "2", "--json", check=True).stdout
        (self.folder / "times.json").write_text(measured)
        program = self.data_of(self.page("times.html", "inspect", "one.so", "--times", "times.json"))["programs"][0]
        times = [node["seconds"] for node in program["graph"]["nodes"] if node["kind"] in ("kernel", "copy")]
        self.assertEqual(times, [step["best_seconds"] for step in json.loads(measured)["results"][0]["steps"]])

    def test_times_of_a_region_that_fell_back(self) -> None:
        self.needs_backends("ccompiler")
        self.call("compile", "parts.relay", "-o", "fallen.so", "--backends", "ccompiler", check=True)
        measured = json.loads(self.call("bench", "fallen.so", "--steps", "--rounds", "2", "--json", check=True).stdout)
        (result,) = measured["results"]
        region = result["steps"][2]["callee"]
        result["fallbacks"] = [{"region": region, "backend": "ccompiler", "message": "its library is gone"}]
        (self.folder / "fallen.json").write_text(json.dumps(measured))
        data = self.data_of(self.page("fallen.html", "inspect", "fallen.so", "--times", "fallen.json"))
        nodes = data["programs"][0]["graph"]["nodes"]
        self.assertEqual([node["fallback"] for node in nodes], [None] * 4 + ["its library is gone", None])

    def test_times_of_something_else(self) -> None:
        self.call("compile", "parts.relay", "-o", "parts.so", check=True)
        measured = json.loads(self.call("bench", "parts.so", "--steps", "--rounds", "2", "--json", check=True).stdout)
        (self.folder / "others.json").write_text(json.dumps(measured))
        inspect = ("inspect", "one.so", "--json", "--times")
        self.fails(USER, r"it has the times of \d+ steps?, and the program has \d+", *inspect, "others.json")
        parts = ("inspect", "parts.so", "--json", "--times", "changed.json")
        self.write_changed(measured, "callee", "other")
        self.fails(USER, "its step 0 calls 'other', and that of the program", *parts)
        self.write_changed(measured, "best_seconds", "soon")
        self.fails(USER, "'best_seconds' where one should be.*headrace bench MODEL --steps --json", *parts)
        for text, pattern in (
            ("{", "bad.json:1:2: the text ends where a key should be"),
            ("[" * 100 + "]" * 100, "its JSON is nested deeper than 64 levels"),
            ("{}", "it has no 'results' where one should be"),
            ('{"results": []}', "it has no results"),
            ('{"results": [{"threads": 1}]}', "it has no 'steps'"),
        ):
            (self.folder / "bad.json").write_text(text)
            self.fails(USER, pattern, *inspect, "bad.json")
        self.fails(USER, "none.json", *inspect, "none.json")
        self.fails(USAGE, "--times: only --html and --json show times", "inspect", "one.so", "--times", "others.json")

    def write_changed(self, measured: Any, key: str, value: object) -> None:
        """Writes a file of times whose first step has another value."""
        copy = json.loads(json.dumps(measured))
        copy["results"][0]["steps"][0][key] = value
        (self.folder / "changed.json").write_text(json.dumps(copy))

    def test_times_of_a_bench(self) -> None:
        words = ("bench", "one.so", "--beside", DIGITS, *ONE, "--threads", "1,2", "--rounds", "60")
        report = json.loads(self.call(*words, "--json", "--html", "bench.html", check=True).stdout)
        data = self.data_of(self.folder / "bench.html")
        self.assertEqual(data["machine"]["processors"], os.cpu_count())
        system = os.uname()
        self.assertEqual(data["machine"]["system"], f"{system.sysname} {system.release} {system.machine}")
        self.assertEqual((data["rounds"], data["clients"], data["peer"], data["interrupted"]), (60, 1, None, False))
        lanes = data["lanes"]
        self.assertEqual(
            [(lane["name"], lane["threads"]) for lane in lanes],
            [("one.so", 1), (str(DIGITS), 1), ("one.so", 2), (str(DIGITS), 2)],
        )
        for lane, result in zip(lanes, report["results"], strict=True):
            seconds = sorted(lane["seconds"])
            self.assertEqual(len(seconds), 60)
            self.assertNotEqual(lane["seconds"], seconds)  # they are in the order of the rounds
            self.assertEqual((lane["best_seconds"], lane["longest_seconds"]), (seconds[0], seconds[-1]))
            self.assertAlmostEqual(lane["median_seconds"], statistics.median(seconds), delta=1e-12)
            self.assertEqual((lane["p90_seconds"], lane["p99_seconds"]), (seconds[53], seconds[59]))
            for key in ("processors", "best_seconds", "median_seconds", "p90_seconds", "runs_per_second"):
                self.assertEqual(lane[key], result[key])

    def test_times_of_a_peer(self) -> None:
        stand_in = self.folder / "stand_in"
        stand_in.write_text(STAND_IN)
        stand_in.chmod(0o755)
        (self.folder / "negative.onnx").write_bytes(onnx_model(b"y"))
        (self.folder / "peer.npy").write_bytes(npy("<f4", (2,), bytes(8)))
        environment = {"HEADRACE_PYTHON": str(stand_in), "STAND_IN_OUTPUT": str(self.folder / "peer.npy")}
        words = ("bench", "negative.onnx", "--rounds", "3", *AGAINST, "--html", "peer.html")
        self.call(*words, check=True, **environment)
        data = self.data_of(self.folder / "peer.html")
        ours, peer = data["lanes"]
        self.assertEqual(
            (ours["name"], peer["name"], data["peer"]), ("negative.onnx", "onnxruntime 1", "onnxruntime 1")
        )
        self.assertEqual((peer["seconds"], peer["median_seconds"], peer["runs_per_second"]), ([0.5] * 3, 0.5, 2))

    def test_only_the_scripts_of_the_policy_are_in_it(self) -> None:
        self.call("compile", "parts.relay", "-o", "policy.so", check=True)
        graphs = self.page("p.html", "explain", "parts.relay"), self.page("q.html", "inspect", "policy.so")
        for page in (*graphs, self.page("r.html", "bench", "one.so", "--rounds", "1")):
            text = page.read_text()
            policy = html.unescape(re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)[1])
            rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
            self.assertEqual(sorted(rules), ["base-uri", "default-src", "form-action", "script-src", "style-src"])
            for rule in ("default-src", "base-uri", "form-action"):
                self.assertEqual(rules[rule], "'none'")
            for tag, rule in (("script", "script-src"), ("style", "style-src")):
                found = [body.encode() for body in re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.S)]
                digests = [base64.b64encode(hashlib.sha256(body).digest()).decode() for body in found]
                self.assertEqual(rules[rule].split(), [f"'sha256-{digest}'" for digest in digests])
            markup = re.sub(r"<(script|style)\b.*?</\1>", "", text, flags=re.S)
            self.assertNotRegex(markup, r"(?i)<[^>]*\s(on\w+|src|href|style)\s*=")
            self.assertEqual("Copyright (c) 2012-2014 Chris Pettitt" in markup, page in graphs)

    def test_the_vendored_library_is_the_one_that_is_noted(self) -> None:
        notices = (ROOT / "THIRD_PARTY_NOTICES.md").read_text()
        library = (ROOT / "tools/html/vendor/dagre.min.js").read_bytes()
        self.assertIn(hashlib.sha256(library).hexdigest(), notices)

    def test_names_of_a_model_are_no_markup(self) -> None:
        (self.folder / "hostile.onnx").write_bytes(onnx_model(HOSTILE, source=b"<b>x</b>"))
        page = self.page("hostile.html", "explain", "hostile.onnx")
        text = page.read_text()
        for part in ("<img", "<b>", "alert(1)>"):
            self.assertNotIn(part, text)
        self.assertEqual(text.count("<script"), text.count("</script>"))
        names = [node["name"] for node in self.data_of(page)["graph"]["nodes"]]
        self.assertIn("<b>x</b>", names)
        self.assertIn(HOSTILE.decode(), names)

    def test_a_trace_as_a_page(self) -> None:
        page = self.timeline()
        data = self.data_of(page)
        names = [event["args"]["name"] for event in data["traceEvents"] if event["name"] == "thread_name"]
        self.assertEqual(names, ["stage0", "stage1"])
        calls = [event for event in data["traceEvents"] if event.get("cat") == "call"]
        self.assertEqual(len(calls), 60)
        self.assertIn("<title>pipe.so</title>", page.read_text())

    def test_a_pipeline_as_a_page(self) -> None:
        page = self.plan()
        told = json.loads(self.call("pipeline", "inspect", "pipe.so", "--json", check=True).stdout)
        self.assertEqual(self.data_of(page), told)
        self.assertIn("<title>pipe.so</title>", page.read_text())
        self.fails(USER, "the pipeline is read from it", "pipeline", "inspect", "pipe.so", "--html", "pipe.so")
        self.fails(USER, "none/page.html", "pipeline", "inspect", "pipe.so", "--html", "none/page.html")
        self.fails(USER, "headrace pipeline inspect pipe.so --html", "inspect", "pipe.so", "--html", "no.html")
        self.assertFalse((self.folder / "no.html").exists())

    def test_graphs_in_dot(self) -> None:
        self.needs_backends("ccompiler")
        (self.folder / "hostile.onnx").write_bytes(onnx_model(b'a"; b -> c; "', source=b"x\\n"))
        self.call("explain", "hostile.onnx", "--dot", "hostile.dot", check=True)
        text = (self.folder / "hostile.dot").read_text()
        self.assertIn('label="a\\"; b -> c; \\"\\nfloat32 2"', text)
        self.assertIn('label="x\\\\n\\nfloat32 2"', text)
        self.call("explain", "parts.relay", "--backends", "ccompiler", "--dot", "parts.dot", check=True)
        text = (self.folder / "parts.dot").read_text()
        self.assertEqual(len(re.findall(r"(?m)^ +n\d+ \[label=", text)), 8)
        self.assertEqual(len(re.findall(r"(?m)^  n\d+ -> n\d+;$", text)), 9)
        self.assertEqual(len(re.findall(r'label="tvmgen_default_ccompiler_main_\d \(ccompiler\)"', text)), 2)
        self.call("compile", "parts.relay", "-o", "dotted.so", "--backends", "ccompiler", check=True)
        self.call("inspect", "dotted.so", "--dot", "steps.dot", check=True)
        steps = (self.folder / "steps.dot").read_text()
        self.assertTrue(steps.startswith('digraph "dotted.so" {\n'))
        if shutil.which("dot"):
            for file in ("hostile.dot", "parts.dot", "steps.dot"):
                subprocess.run(["dot", "-Tsvg", file], cwd=self.folder, check=True, stdout=subprocess.DEVNULL)
        self.fails(USER, "the artifact is read from it", "inspect", "dotted.so", "--dot", "dotted.so")

    def test_files_that_cannot_be_written(self) -> None:
        self.fails(USER, "none/page.html", "explain", "parts.relay", "--html", "none/page.html")
        self.fails(USER, "the model is read from it", "explain", "parts.relay", "--html", "parts.relay")
        self.fails(USER, "the artifact is read from it", "inspect", "one.so", "--html", "one.so")
        # These end before the rounds, which would take longer than the test may.
        bench = ("bench", DIGITS, *ONE, "--seconds", "3000", "--html")
        self.fails(USER, "none/page.html", *bench, "none/page.html")
        self.fails(USER, "a folder", *bench, ".")
        self.fails(USER, "a model is read from it", *bench, "one.so", "--beside", "one.so")
        self.assertFalse((self.folder / "none").exists())
        self.assertEqual((self.folder / "parts.relay").read_text(), PARTS)


@unittest.skipIf(WITHOUT_BROWSER, WITHOUT_BROWSER)
class BrowserTest(PageTest):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        subprocess.run([os.environ["HEADRACE_WRITE_ZOO"], cls.folder, "resnet50"], check=True, stdout=subprocess.PIPE)

    def test_every_op_of_resnet_is_drawn_and_nothing_is_fetched(self) -> None:
        self.needs_backends("ccompiler")
        page = self.page("resnet50.html", "explain", "resnet50.onnx", "--backends", "ccompiler")
        dom = browser.chromium(page, "--dump-dom")
        nodes = self.data_of(page)["graph"]["nodes"]
        self.assertGreater(sum(node["kind"] == "op" for node in nodes), 150)
        drawn = re.findall(r'data-node="(\d+)"', dom)
        self.assertEqual(sorted(map(int, drawn)), list(range(len(nodes))))
        self.assertIn("data-drawn=", dom)
        self.assertEqual(self.requested(page), set())

    def requested(self, page: Path) -> set[str]:
        """The URLs that the page requested, but for files."""
        log = self.folder / "net.json"
        browser.chromium(page, "--dump-dom", f"--log-net-log={log}")
        return {url for url in browser.requested_urls(log) if not url.startswith("file:")}

    def test_the_stages_of_a_pipeline_are_drawn(self) -> None:
        page = self.plan()
        stages = self.data_of(page)["stages"]
        with browser.Browser() as chromium:
            chromium.open(page)
            chromium.screenshot(self.pages / "plan.png")
            self.assertIn("2 stages in 2 groups, at most 16 requests at once", chromium.text("#about"))
            drawn = chromium.text("#plan")
            for stage in stages:
                self.assertIn(stage["name"], drawn)
                self.assertIn(stage["name"], chromium.text("#stages"))
            self.assertIn("input x", drawn)
            self.assertIn("output probabilities", drawn)
        self.assertEqual(self.requested(page), set())

    def test_the_policy_stops_an_image(self) -> None:
        """An image that the page of a model would fetch is not requested; the same image elsewhere is."""
        image = '<img src="http://pixel.example/x.png">'
        (self.folder / "image.html").write_text(image)
        self.assertEqual(self.requested(self.folder / "image.html"), {"http://pixel.example/x.png"})
        for verb, model in (("explain", "parts.relay"), ("inspect", "one.so")):
            page = self.page("image.html", verb, model)
            page.write_text(page.read_text().replace("<body>", "<body>" + image))
            self.assertEqual(self.requested(page), set())

    def test_clicks(self) -> None:
        self.needs_backends("ccompiler")
        page = self.page("resnet50.html", "explain", "resnet50.onnx", "--backends", "ccompiler")
        data = self.data_of(page)
        convolution = next(i for i, node in enumerate(data["graph"]["nodes"]) if node["op"] == "nn.conv2d")
        with browser.Browser() as chromium:
            chromium.open(page)
            chromium.screenshot(self.pages / "explain.png")
            self.assertIn("native", chromium.text("#legend"))
            chromium.click(f'[data-node="{convolution}"]')
            said = chromium.text("#details")
            self.assertIn("the backend has no C text for this op", said)
            self.assertNotIn("(reason", said)
            self.assertIn("f32[1,3,224,224]", said)
            chromium.click(".region")
            self.assertIn("Region " + data["regions"][0]["name"], chromium.text("#details"))
            chromium.click("#details button.fold")
            self.assertEqual(chromium.run("return document.querySelectorAll('.block.fold').length"), 1)
            chromium.double_click(".block.fold")
            self.assertEqual(chromium.run("return document.querySelectorAll('.block.fold').length"), 0)
            last = [node["name"] for node in data["graph"]["nodes"] if node["op"] == "nn.conv2d"][-1]
            chromium.type("#search", last + "\ue007")  # and Enter
            self.assertIn(last, chromium.text("#details"))
            chromium.click("#fit")
            chromium.screenshot(self.pages / "explain_whole.png")
            self.assertEqual(chromium.errors(), [])

    def test_costs(self) -> None:
        self.needs_backends("ccompiler")
        by_cost = ("explain", "parts.relay", "--backends", "ccompiler", "--placement", "cost")
        page = self.page("costs.html", *by_cost)
        add = next(i for i, node in enumerate(self.data_of(page)["graph"]["nodes"]) if node["op"] == "add")
        with browser.Browser() as chromium:
            chromium.open(page)
            said = chromium.text("#details")
            self.assertRegex(said, r"The plan costs [\d.]+ \S+, no plan less than [\d.]+ \S+; costs are estimated by")
            chromium.click(f'[data-node="{add}"]')
            said = " ".join(chromium.text("#details").split())
            self.assertRegex(said, r"Costs backend cost native [\d.]+ [un]?s ccompiler [\d.]+ [un]?s")
            chromium.open(self.page("ordered.html", *by_cost[:4]))
            chromium.click(f'[data-node="{add}"]')
            self.assertNotIn("Costs", chromium.text("#details"))
            self.assertEqual(chromium.errors(), [])

    def test_changes_of_layout_are_on_the_edges(self) -> None:
        self.needs_backends("onednn")
        (self.folder / "convs.relay").write_text(CONVS)
        page = self.page("convs.html", "explain", "convs.relay", "--backends", "onednn")
        edges = {(edge["from"], edge["to"]): edge["border_seconds"] for edge in self.data_of(page)["graph"]["edges"]}
        self.assertEqual([seconds > 0 for _, seconds in sorted(edges.items())], [True, True, True, True, False])
        with browser.Browser() as chromium:
            chromium.open(page)
            labels = chromium.run("return [...document.querySelectorAll('text')].map((text) => text.textContent)")
            self.assertEqual(sum(", layout " in label for label in labels), 4)
            self.assertEqual(chromium.errors(), [])

    def test_thousands_of_ops_are_folded(self) -> None:
        self.needs_backends("ccompiler")
        (self.folder / "long.relay").write_text(chain(5000))
        page = self.page("long.html", "explain", "long.relay", "--backends", "ccompiler")
        nodes = self.data_of(page)["graph"]["nodes"]
        self.assertGreater(len(nodes), 4500)
        blocks = "return document.querySelectorAll('.block').length"
        with browser.Browser() as chromium:
            # Each load needs 0.3 seconds of a processor. The best of them also needs one soon: 0.5 seconds in all on an
            # idle machine.
            times = chromium.time_paints(page, rounds=5)
            self.assertLess(max(processor for _, processor in times), 2, times)
            self.assertLess(min(painted for painted, _ in times), 2, times)
            chromium.screenshot(self.pages / "folded.png")
            self.assertLessEqual(chromium.run(blocks), 300)
            for i in range(0, len(nodes), 450):
                chromium.run("headrace.page.reveal(arguments[0])", i)
                self.assertLessEqual(chromium.run(blocks), 300)
                self.assertEqual(chromium.run(f"return document.querySelectorAll('[data-node=\"{i}\"]').length"), 1)
            self.assertEqual(chromium.errors(), [])

    def test_steps_with_times(self) -> None:
        measured = self.call("bench", "one.so", "--steps", "--rounds", "2", "--json", check=True).stdout
        (self.folder / "times.json").write_text(measured)
        page = self.page("steps.html", "inspect", "one.so", "--times", "times.json")
        with browser.Browser() as chromium:
            chromium.open(page)
            chromium.screenshot(self.pages / "inspect.png")
            self.assertIn("Slowest, of", chromium.text("#details"))
            steps = len(json.loads(measured)["results"][0]["steps"])
            self.assertEqual(chromium.run("return document.querySelectorAll('.heat').length"), steps)
            self.assertEqual(chromium.errors(), [])

    def test_clicks_on_steps(self) -> None:
        self.needs_backends("ccompiler")
        compile_it = ("compile", "resnet50.onnx", "-o", "resnet50.so", "--backends", "ccompiler")
        self.call(*compile_it, check=True)
        page = self.page("resnet50_steps.html", "inspect", "resnet50.so")
        nodes = self.data_of(page)["programs"][0]["graph"]["nodes"]
        drawn = re.findall(r'data-node="(\d+)"', browser.chromium(page, "--dump-dom"))
        self.assertEqual(sorted(map(int, drawn)), list(range(len(nodes))))
        kernel = next(i for i, node in enumerate(nodes) if node["kind"] == "kernel" and node["op"] == "nn_conv2d")
        region = next(i for i, node in enumerate(nodes) if node["kind"] == "region")
        with browser.Browser() as chromium:
            chromium.open(page)
            about = chromium.text("#details")
            self.assertRegex(about, r"The program default: \d+ steps, compiled for \S+, memory of a run [\d.,]+ \S+")
            chromium.click(f'[data-node="{kernel}"]')
            said = chromium.text("#details")
            for part in (nodes[kernel]["name"], nodes[kernel]["callee"], "native", "f32[1,3,224,224]", "constant"):
                self.assertIn(part, said)
            chromium.click(f'[data-node="{region}"]')
            said = chromium.text("#details")
            self.assertIn("ccompiler", said)
            writer = chromium.text("#details button.link")  # the writer of its first input
            self.assertIn(writer, [node["name"] for node in nodes])
            chromium.click("#details button.link")
            self.assertIn(writer, chromium.text("#details"))
            self.assertNotEqual(chromium.text("#details"), said)
            last = nodes[-2]["name"]
            chromium.type("#search", last + "\ue007")  # and Enter
            self.assertIn(last, chromium.text("#details"))
            chromium.click("#fit")
            chromium.screenshot(self.pages / "inspect_steps.png")
            self.assertEqual(chromium.errors(), [])
        self.assertEqual(self.requested(page), set())

    def test_a_timeline(self) -> None:
        page = self.timeline()
        first = next(event for event in self.data_of(page)["traceEvents"] if event.get("cat") == "call")
        with browser.Browser() as chromium:
            chromium.open(page)
            chromium.screenshot(self.pages / "timeline.png")
            self.assertEqual(chromium.run("return document.querySelectorAll('#sums tr').length"), 3)
            self.assertRegex(chromium.text("#sums"), r"stage0 .* 30 30 0 .* %")
            # The next call may begin where this one ends.
            inner = (first["ts"] + 0.1 * first["dur"], first["ts"] + 0.9 * first["dur"])
            chromium.run("headrace.page.show(arguments[0], arguments[1])", *inner)
            chromium.run("headrace.page.point(600, 30)")
            self.assertRegex(chromium.text("#event"), r"stage0 works on request 0 for [\d.]+ [um]?s, at ")
            self.assertRegex(chromium.text("#sums"), r"stage0 .* 1 1 0 100.0 %")
            chromium.screenshot(self.pages / "timeline_call.png")
            chromium.click("#whole")
            self.assertRegex(chromium.text("#sums"), r"stage0 .* 30 30 0 ")
            self.assertEqual(chromium.errors(), [])
        self.assertEqual(self.requested(page), set())

    def test_a_plot_of_times(self) -> None:
        page = self.page("plot.html", "bench", "one.so", "--beside", "one.so", "--threads", "1,2", "--rounds", "30")
        with browser.Browser() as chromium:
            chromium.open(page)
            chromium.screenshot(self.pages / "bench.png")
            self.assertEqual(chromium.run("return document.querySelectorAll('.plot').length"), 2)
            paths = "[...document.querySelectorAll('.rounds')]"
            dots = f"return {paths}.map((path) => path.getAttribute('d').split('M').length)"
            self.assertEqual(chromium.run(dots), [31] * 4)
            self.assertIn(f"{os.cpu_count()} processor", chromium.text("#machine"))
            self.assertIn("30 rounds; each ran all that is compared once, in turns.", chromium.text("#rounds"))
            self.assertRegex(chromium.text("#percentiles"), r"one\.so 1 [\d,]+ 30 [\d.]+ [um]?s .* - ")
            # The best time of a plot lies at its left end, until the axis begins at zero.
            dots = f"{paths}.slice(0, 2).flatMap((path) => path.getAttribute('d').match(/M[\\d.]+/g))"
            leftmost = f"return Math.min(...{dots}.map((dot) => dot.slice(1)))"
            self.assertEqual(chromium.run(leftmost), 208)
            chromium.click("#zero")
            self.assertGreater(chromium.run(leftmost), 208)
            self.assertEqual(chromium.text("#zero"), "From the best time")
            self.assertEqual(chromium.errors(), [])
        self.assertEqual(self.requested(page), set())

    def test_names_are_shown_and_not_run(self) -> None:
        (self.folder / "hostile.onnx").write_bytes(onnx_model(HOSTILE, source=b"<b>x</b>"))
        with browser.Browser() as chromium:
            chromium.open(self.page("hostile.html", "explain", "hostile.onnx"))
            chromium.click('[data-node="0"]')
            self.assertIn("<b>x</b>", chromium.text("#details"))
            self.assertEqual(chromium.run("return document.querySelectorAll('img, b').length"), 0)
            self.assertEqual(chromium.errors(), [])

    def test_the_policy_stops_a_script(self) -> None:
        """So that an empty list of errors above means something."""
        page = self.page("stopped.html", "explain", "parts.relay")
        page.write_text(page.read_text().replace("</body>", "<script>document.title = 'run'</script></body>"))
        with browser.Browser() as chromium:
            chromium.open(page)
            self.assertRegex(" ".join(chromium.errors()), "Content Security Policy")
            self.assertNotEqual(chromium.run("return document.title"), "run")


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__], "pages"))
