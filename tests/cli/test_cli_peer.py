#!/usr/bin/env python3
"""`bench` and `verify` beside another runtime: what they compare, what the peer gets, and what is left when it fails or
the program is interrupted. Standard library only; where .venv or HEADRACE_PYTHON has onnxruntime, also with it.

tests/cli/test_cli_peer.py --program headrace [--junit FILE] [TEST ...]
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from test_cli import DIGITS, MISMATCH, MISSING, OK, ONE, ROOT, USAGE, USER, CliTest, JsonPageTest, main, npy, onnx_model

AGAINST = ("--against", "onnxruntime")
# Speaks the protocol of headrace.peer; `save` copies the file that STAND_IN_OUTPUT names.
STAND_IN = """#!/usr/bin/python3
import os, shutil, sys
print("ready 1", flush=True)
if "--check" not in sys.argv:
    folder = sys.argv[sys.argv.index("--folder") + 1]
    for line in sys.stdin:
        if line == "save\\n":
            shutil.copy(os.environ["STAND_IN_OUTPUT"], folder + "/output_0.npy")
        print("saved 1" if line == "save\\n" else "0.5", flush=True)
"""


def vector(*values: float, dtype: str = "<f4") -> bytes:
    """A .npy file with a vector."""
    return npy(
        dtype, (len(values),), struct.pack(f"<{len(values)}{ {'<f4': 'f', '<f8': 'd', '<i8': 'q'}[dtype] }", *values)
    )


def python_with(peer: str) -> str | None:
    """A Python with headrace.peer and that peer."""
    python = os.environ.get("HEADRACE_PYTHON", str(ROOT / ".venv/bin/python"))
    with contextlib.suppress(OSError):
        command = [python, "-m", "headrace.peer", peer, "--check"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if done.stdout.startswith("ready"):
            return python
    return None


class PeerTest(CliTest):
    """Stand-ins for the peer's Python: what they are given, and what is left when they fail."""

    def python(self, script: str) -> dict[str, str]:
        """The environment that makes a shell script the peer's Python."""
        python = self.folder / "python"
        python.write_text(f'#!/bin/sh\nif [ "$#" = 4 ]; then echo ready 1; exit; fi\n{script}\n')
        python.chmod(0o755)
        return {"HEADRACE_PYTHON": str(python)}

    def against(self, script: str, pattern: str, verb: str, *arguments: object) -> None:
        """The call ends with exit code 3 and leaves nothing in the temporary folder."""
        with tempfile.TemporaryDirectory() as temporary:
            environment = self.python(script) | {"TMPDIR": temporary}
            self.fails(USER, pattern, verb, DIGITS, *arguments, *AGAINST, **environment)
            self.assertEqual(list(Path(temporary).iterdir()), [])

    def test_a_peer_that_fails_leaves_nothing(self) -> None:
        for verb in ("bench", "verify"):
            self.against("echo error it is not a model", "onnxruntime: it is not a model", verb, *ONE)
            self.against("echo ready 1", "the peer 'onnxruntime' failed: it ended", verb, *ONE)

    def test_its_level_of_optimisation_is_sent(self) -> None:
        script = "shift 8; echo error got $#: $*"
        for verb in ("bench", "verify"):
            self.against(script, "onnxruntime: got 2: --level none", verb, *ONE, "--against-level", "none")
            self.against(script, "onnxruntime: got 0:", verb, *ONE)
            self.fails(USAGE, "--against-level is the peer's level: name the peer with --against", verb, DIGITS, *ONE,
                       "--against-level", "none")  # fmt: skip
            self.fails(USAGE, "--against-level: openvino has no levels of optimisation", verb, DIGITS, *ONE,
                       "--against", "openvino", "--against-level", "none")  # fmt: skip
        self.fails(USAGE, "there is no level of optimisation 'best'; there is none, basic, extended, all", "verify",
                   DIGITS, *AGAINST, "--against-level", "best")  # fmt: skip

    def test_bound_inputs_are_sent(self) -> None:
        script = "echo error $(cat $6/inputs.json) $(od -An -tf4 -j132 -N4 $6/input_0.npy)"
        for verb in ("bench", "verify"):
            self.against(script, r'onnxruntime: \{ "names": \[ "x" \] \} 1\b', verb, "--bind", "x=x.npy")

    def test_random_inputs_are_the_same_everywhere(self) -> None:
        # SplitMix64 (Steele, Lea, Flood 2014), whose state the seed and the name begin; sums of twelve 32-bit numbers.
        state, mask = 5, 2**64 - 1
        state = (state * 131 + ord("x")) & mask

        def number() -> int:
            nonlocal state
            state = (state + 0x9E3779B97F4A7C15) & mask
            z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
            z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
            return z ^ (z >> 31)

        values = []
        for _ in range(64):
            halves = [half for _ in range(6) for half in divmod(number(), 2**32)]
            values.append((sum(halves) - 6 * 2**32) / 2**32)
        self.assertLess(abs(sum(values)) / 64, 0.5)  # the values have mean 0
        copy = self.folder / "sent.npy"
        for verb in ("bench", "verify"):
            self.against(f"cp $6/input_0.npy {copy}\necho error done", "done", verb, *ONE, "--seed", "5")
            self.assertEqual(copy.read_bytes()[-256:], struct.pack("<64f", *values))

    def test_no_place_for_temporary_files(self) -> None:
        environment = self.python("echo ready 1") | {"TMPDIR": "/no/folder"}
        self.fails(
            USER, "temporary files.*name another place in TMPDIR", "bench", DIGITS, *ONE, *AGAINST, **environment
        )

    def test_the_peers_model_is_named(self) -> None:
        environment = self.python("echo error model $4")
        (self.folder / "other.onnx").write_bytes(DIGITS.read_bytes())
        other = ("--against-model", "other.onnx")
        for verb in ("bench", "verify"):
            self.fails(USER, "model other.onnx$", verb, DIGITS, *ONE, *AGAINST, *other, **environment)
            self.fails(USAGE, "--against-model is the peer's model", verb, DIGITS, *ONE, *other)
            wrong = ("--against-model", "bad.relay")
            self.fails(USER, "'bad.relay' is not an ONNX model", verb, DIGITS, *ONE, *AGAINST, *wrong, **environment)
        self.fails(USER, "model other.onnx$", "bench", "one.so", *AGAINST, *other, **environment)


class ComparisonTest(CliTest):
    """Three errors of y = -x, where x is (1, -4), and of a stand-in for the peer that gives what the test says."""

    def setUp(self) -> None:
        (self.folder / "negative.onnx").write_bytes(onnx_model(b"y"))
        (self.folder / "v.npy").write_bytes(vector(1, -4))
        (self.folder / "stand_in").write_text(STAND_IN)
        (self.folder / "stand_in").chmod(0o755)

    def verify(self, peer: bytes, *arguments: object, model: str = "negative.onnx") -> subprocess.CompletedProcess:
        """Verifies the model; `peer`: the file that the stand-in gives."""
        output = self.folder / "peer.npy"
        output.write_bytes(peer)
        environment = {"HEADRACE_PYTHON": str(self.folder / "stand_in"), "STAND_IN_OUTPUT": str(output)}
        return self.call("verify", model, "--input", "x=v.npy", *AGAINST, *arguments, **environment)

    def report(self, peer: bytes, *arguments: object, code: int, **more: Any) -> dict[str, Any]:
        """Its JSON."""
        done = self.verify(peer, *arguments, "--json", **more)
        self.assertEqual((done.returncode, done.stderr), (code, ""), done.stdout)
        report = json.loads(done.stdout)
        self.assertEqual(report["ok"], code == OK)
        return report

    def test_three_errors(self) -> None:
        report = self.report(vector(-1, 4), code=OK)
        self.assertEqual([report[key] for key in ("error", "peer_error", "difference")], [0, 0, 0])
        self.assertEqual([report[key] for key in ("limit", "difference_limit")], [1e-5, 1e-5])
        self.assertEqual(report["peer"], "onnxruntime 1")
        (output,) = report["outputs"]
        self.assertEqual(list(output)[:2], ["name", "dtype"])
        for key in ("error", "limit", "peer_error", "difference", "difference_limit", "ok"):
            self.assertEqual(output[key], report[key])

    def test_a_peer_that_rounds_otherwise(self) -> None:
        near = 4 * (1 - 2**-17)  # 7.6e-6 of it
        report = self.report(vector(-1, near), code=OK)
        self.assertEqual([report[key] for key in ("error", "peer_error", "difference")], [0, 2**-17, 2**-17])
        self.assertAlmostEqual(report["limit"], 2**-16)  # twice the peer's

    def test_a_peer_that_is_far_makes_the_import_suspect(self) -> None:
        for off, limit in ((2**-16, 2**-15), (2**-11, 2**-10 if 2**-10 < 1e-3 else 1e-3), (2**-2, 1e-3)):
            report = self.report(vector(-1, 4 * (1 - off)), code=MISMATCH)
            self.assertEqual([report[key] for key in ("error", "peer_error", "difference")], [0, off, off])
            self.assertAlmostEqual(report["limit"], limit, places=12)
            self.assertEqual(report["difference_limit"], 1e-5)
        done = self.verify(vector(-1, 3))
        self.assertEqual(done.returncode, MISMATCH)
        self.assertRegex(done.stdout, r"(?m)^y +float32 +0 +0.001 +0.25 +0.25 +1e-05$")
        self.assertIn(
            "MISMATCH: the error is within the limit 0.001, the difference from onnxruntime is above the", done.stdout
        )
        self.assertIn(
            "The import is suspect: our code agrees with the float64 interpreter on the imported program", done.stdout
        )
        hint = "onnxruntime may also have rounded in other places, because it fuses operators; --against-level none"
        self.assertIn(hint, done.stdout)
        for more in (("--against-level", "none"), ("--rtol", "1")):  # the level is chosen; nothing is wrong
            self.assertNotIn("--against-level", self.verify(vector(-1, 5), *more).stdout)

    def test_what_cannot_be_near(self) -> None:
        not_a_number = self.report(vector(-1, math.nan), code=MISMATCH)
        self.assertEqual([not_a_number[key] for key in ("peer_error", "difference", "limit")], [None, None, 1e-5])
        self.assertIsNone(self.report(vector(-1, 4, 0), code=MISMATCH)["difference"])
        self.assertIsNone(self.report(vector(-1, 4, dtype="<f8"), code=MISMATCH)["difference"])

    def test_a_limit_is_used_as_it_is_given(self) -> None:
        for limit, code in (("0.25", OK), ("0.24", MISMATCH), ("0", MISMATCH)):
            report = self.report(vector(-1, 3), "--limit", limit, code=code)
            self.assertEqual([report[key] for key in ("limit", "difference_limit")], [float(limit)] * 2)

    def test_integers_are_exact(self) -> None:
        text = "def @main(%x: Tensor[(2), int64]) { negative(%x) }\n"
        (self.folder / "negative.relay").write_text('#[version = "0.0.5"]\n' + text)
        large = 2**60  # as float64, it is its neighbour too
        (self.folder / "v.npy").write_bytes(vector(1, -large, dtype="<i8"))
        more = {"model": "negative.relay"}
        named = ("--against-model", "negative.onnx")
        report = self.report(vector(-1, large, dtype="<i8"), *named, code=OK, **more)
        self.assertEqual([report[key] for key in ("limit", "difference_limit")], [0, 0])
        report = self.report(vector(-1, large + 1, dtype="<i8"), *named, code=MISMATCH, **more)
        self.assertGreater(report["difference"], 0)
        self.assertEqual((report["error"], report["difference_limit"]), (0, 0))
        far = self.report(vector(-1, 5, dtype="<i8"), *named, "--limit", "10", code=MISMATCH, **more)
        self.assertEqual([far[key] for key in ("limit", "difference_limit")], [0, 0])

    def test_bench_shows_the_difference(self) -> None:
        output = self.folder / "peer.npy"
        output.write_bytes(vector(0, 0))
        environment = {"HEADRACE_PYTHON": str(self.folder / "stand_in"), "STAND_IN_OUTPUT": str(output)}
        bench = ("bench", "negative.onnx", "--rounds", "2", *AGAINST)
        (result,) = json.loads(self.call(*bench, "--json", check=True, **environment).stdout)["results"]
        self.assertEqual((result["peer_best_seconds"], result["peer_median_seconds"]), (0.5, 0.5))
        self.assertGreater(result["difference"], 0.1)
        self.assertRegex(self.call(*bench, check=True, **environment).stdout, "ratio of medians +difference\n")


class InterruptionTest(CliTest):
    """A signal ends the program and its peer; one line is said, and nothing is left."""

    @contextlib.contextmanager
    def running(self, python: str, *arguments: object, ignored: int = 0) -> Iterator[subprocess.Popen]:
        """The program, in a process group of its own as a shell starts it, once its peer has begun to wait."""
        with tempfile.TemporaryDirectory() as temporary:
            self.temporary = Path(temporary)
            environment = os.environ | {"HEADRACE_PYTHON": python, "TMPDIR": temporary}

            def default_signals() -> None:
                # Some callers of the tests ignore signals, and a program would inherit that.
                for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                    signal.signal(number, signal.SIG_IGN if number == ignored else signal.SIG_DFL)

            process = subprocess.Popen(
                [str(self.program), *map(str, arguments), *AGAINST],
                cwd=self.folder,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
                preexec_fn=default_signals,
            )
            try:
                yield process
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.communicate(timeout=60)

    def stand_in(self, script: str) -> str:
        """A shell script in the place of Python; it says its number in the file `number`."""
        (self.folder / "number").unlink(missing_ok=True)
        python = self.folder / "python"
        python.write_text(f"#!/bin/sh\n{script}\n")
        python.chmod(0o755)
        return str(python)

    def wait_for(self, path: Path) -> None:
        """Until the file is there."""
        for _ in range(600):
            if path.exists():
                return
            time.sleep(0.05)
        self.fail(f"{path} did not appear")

    def ended(self, process: subprocess.Popen, number: int) -> None:
        """The program ended by the signal, in good order."""
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out), (-number, ""), err)
        self.assertRegex(err, r"\Aheadrace: interrupted \([A-Z][A-Za-z-]+\)\n\Z")
        self.assertEqual(list(self.temporary.iterdir()), [])

    def gone(self, process_id: int) -> bool:
        """Whether there is no such process any more."""
        try:
            os.kill(process_id, 0)
        except ProcessLookupError:
            return True
        # An orphan stays as a zombie where nobody waits for it.
        with contextlib.suppress(OSError):
            return Path(f"/proc/{process_id}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
        return True

    def test_while_the_peer_works(self) -> None:
        # `sleep` is a process of its own below the shell.
        script = 'if [ "$#" = 4 ]; then echo ready 1; exit; fi\necho ready 1\necho $$ > number.new\n'
        script += "mv number.new number\nsleep 600\necho 1"
        for verb in ("bench", "verify"):
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                python = self.stand_in(script)
                with self.subTest(verb=verb, signal=number), self.running(python, verb, DIGITS, *ONE) as process:
                    self.wait_for(self.folder / "number")
                    time.sleep(0.1)
                    os.killpg(process.pid, number)
                    self.ended(process, number)
                    self.assertTrue(self.gone(int((self.folder / "number").read_text())))

    def test_while_the_peer_is_looked_for(self) -> None:
        python = self.stand_in("echo $$ > number.new\nmv number.new number\nsleep 600")
        with self.running(python, "verify", DIGITS, *ONE) as process:
            self.wait_for(self.folder / "number")
            process.send_signal(signal.SIGTERM)
            self.ended(process, signal.SIGTERM)
            self.assertTrue(self.gone(int((self.folder / "number").read_text())))

    def test_a_signal_that_is_ignored_stays_so(self) -> None:
        script = 'if [ "$#" = 4 ]; then echo ready 1; exit; fi\necho ready 1\n: > number\nread line\necho error done'
        python = self.stand_in(script.replace("read line", "sleep 1; read line"))
        with self.running(python, "verify", DIGITS, *ONE, ignored=signal.SIGHUP) as process:
            self.wait_for(self.folder / "number")
            process.send_signal(signal.SIGHUP)
            _, err = process.communicate(timeout=60)
            self.assertEqual((process.returncode, err), (USER, "headrace: the peer 'onnxruntime' failed: done\n"))

    def test_with_onnxruntime(self) -> None:
        python = python_with("onnxruntime")
        if python is None:
            self.skipTest("no Python here has onnxruntime and headrace.peer")
        for number in (signal.SIGINT, signal.SIGTERM):
            for group in (False, True):
                with self.running(python, "bench", DIGITS, "--shape", "x=256,1,8,8", "--rounds", "100000") as process:
                    for _ in range(600):
                        if any(self.temporary.iterdir()):
                            break
                        time.sleep(0.02)
                    time.sleep(0.1 if group else 1.5)  # while it starts, and while it runs
                    (os.killpg if group else os.kill)(process.pid, number)
                    self.ended(process, number)


class OtherPeersTest(CliTest):
    """The peers that ./dev setup --peers and --torch install, where they are there."""

    def python_of(self, peer: str, option: str) -> str:
        """A Python that has the peer; skips the test where none has."""
        python = python_with(peer)
        if python is None:
            self.skipTest(f"no Python here has headrace.peer and what {peer} needs (./dev setup {option})")
        return python

    def runs_the_same_model(self, peer: str, python: str, most: float) -> None:
        """Two images at once, in a model whose batch is open: what it computes is near to what Headrace computes."""
        words = ("bench", DIGITS, "--shape", "x=2,1,8,8", "--rounds", "2", "--against", peer, "--json")
        done = self.call(*words, check=True, HEADRACE_PYTHON=python)
        report = json.loads(done.stdout)
        self.assertEqual(done.stderr, "")
        self.assertRegex(report["peer"], rf"^{peer} \d+\.\d+")
        self.assertLess(report["results"][0]["difference"], most)
        self.assertGreater(report["results"][0]["peer_best_seconds"], 0)

    def test_openvino(self) -> None:
        python = self.python_of("openvino", "--peers")
        self.runs_the_same_model("openvino", python, 1e-5)
        self.runs_the_same_model("openvino-default", python, 5e-2)

    def test_ncnn(self) -> None:
        self.runs_the_same_model("ncnn", self.python_of("ncnn", "--peers"), 1e-5)

    def test_ncnn_says_what_it_cannot_take(self) -> None:
        python = self.python_of("ncnn", "--peers")
        (self.folder / "softsign.onnx").write_bytes(onnx_model(b"y", op=b"Softsign"))
        done = self.call("verify", "softsign.onnx", "--against", "ncnn", HEADRACE_PYTHON=python)
        self.is_failure(done, USER, r"\Aheadrace: ncnn: ncnn cannot load what pnnx made of the model: layer Softsign ")

    def test_torch_compile(self) -> None:
        self.runs_the_same_model("torch-compile", self.python_of("torch-compile", "--torch"), 1e-5)

    def test_torch_compile_says_what_it_cannot_take(self) -> None:
        python = self.python_of("torch-compile", "--torch")
        (self.folder / "sinh.onnx").write_bytes(onnx_model(b"y", op=b"Sinh"))
        done = self.call("verify", "sinh.onnx", "--against", "torch-compile", HEADRACE_PYTHON=python)
        self.is_failure(done, USER, r"\Aheadrace: torch-compile: onnx2torch cannot convert the model: .*Sinh")


class OnnxruntimeTest(CliTest):
    """The real peer, where it is installed."""

    python: str

    @classmethod
    def setUpClass(cls) -> None:
        python = python_with("onnxruntime")
        if python is None:
            raise unittest.SkipTest("no Python here has onnxruntime and headrace.peer")
        super().setUpClass()
        cls.python = python

    def json_of(self, *arguments: object) -> dict[str, Any]:
        """The report of a call that succeeds."""
        done = self.call(*arguments, *AGAINST, "--json", HEADRACE_PYTHON=self.python)
        self.assertEqual((done.returncode, done.stderr), (OK, ""), done.stdout)
        return json.loads(done.stdout)

    def test_verify(self) -> None:
        report = self.json_of("verify", DIGITS, "--input", "x=x.npy")
        for key in ("error", "peer_error", "difference"):
            self.assertLess(report[key], 1e-6)

    def test_its_levels_of_optimisation(self) -> None:
        for level in ("none", "basic", "extended", "all"):
            self.assertTrue(self.json_of("verify", DIGITS, *ONE, "--against-level", level)["ok"])

    def test_bench(self) -> None:
        report = self.json_of("bench", DIGITS, *ONE, "--rounds", "3", "--threads", "1,2")
        for result in report["results"]:
            self.assertLess(result["difference"], 1e-5)
            self.assertGreater(result["peer_best_seconds"], 0)
            self.assertAlmostEqual(result["ratio"], result["median_seconds"] / result["peer_median_seconds"])

    def test_an_artifact_beside_its_model(self) -> None:
        self.json_of("bench", "one.so", "--rounds", "1", "--against-model", DIGITS)

    def test_names_that_are_no_file_names(self) -> None:
        name = b"a\n/b \xc3\xa9"
        (self.folder / "odd.onnx").write_bytes(onnx_model(b"out\n", source=name))
        self.assertEqual(self.json_of("verify", "odd.onnx")["outputs"][0]["name"], "out\n")

    def test_outputs_of_another_size_on_other_inputs(self) -> None:
        for count in (1, 3):
            self.assertTrue(self.json_of("verify", DIGITS, "--shape", f"x={count},1,8,8")["ok"])

    def test_a_model_that_it_rejects(self) -> None:
        done = self.call("verify", "negative_of_z.onnx", *AGAINST, HEADRACE_PYTHON=self.python)
        self.is_failure(done, USER, "negative_of_z.onnx")
        (self.folder / "other.onnx").write_bytes(onnx_model(b"y", source=b"z"))
        (self.folder / "negative.onnx").write_bytes(onnx_model(b"y"))
        more = ("--against-model", "other.onnx")
        done = self.call("verify", "negative.onnx", *more, *AGAINST, HEADRACE_PYTHON=self.python)
        self.is_failure(done, USER, r"\Aheadrace: onnxruntime: .*")

    def test_a_python_without_it(self) -> None:
        self.fails(
            MISSING, "needs the Python package headrace", "verify", DIGITS, *ONE, *AGAINST, HEADRACE_PYTHON="false"
        )


class CacheTest(JsonPageTest):
    """The cache of compiled models, which the Python package keeps."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.python = python_with("onnxruntime")
        if cls.python is None:
            raise unittest.SkipTest("no Python here has onnxruntime and the package headrace")
        super().setUpClass()
        code = f"import headrace as hr; hr.compile({str(DIGITS)!r}, shapes={{'x': (1, 1, 8, 8)}}, cache='kept')"
        subprocess.run([cls.python, "-c", code], cwd=cls.folder, check=True, timeout=120)

    def cache(self, *arguments: str) -> subprocess.CompletedProcess:
        return self.call("cache", *arguments, HEADRACE_PYTHON=self.python)

    def test_it_is_listed_and_cleared(self) -> None:
        environment = mock.patch.dict(os.environ, HEADRACE_PYTHON=self.python)
        environment.start()
        self.addCleanup(environment.stop)
        (file,) = (self.folder / "kept").glob("*.so")
        report = self.report("cache list", "--folder", "kept")
        self.assertEqual(report["entries"][0]["file"], file.name)
        self.assertEqual((report["folder"], report["bytes"]), ("kept", file.stat().st_size))
        self.assertRegex(
            self.cache("list", "--folder", "kept").stdout, rf"{file.name}\n1 entry, {report['bytes']} bytes"
        )
        self.assertEqual(self.report("cache path", "--folder", "kept"), {"folder": "kept"})
        self.assertEqual(self.report("cache clear", "--folder", "kept"), {"folder": "kept", "removed": 1})
        self.assertEqual(self.cache("list", "--folder", "kept").stdout, "0 entries, 0 bytes\n")
        self.assertEqual(self.cache("path", "--folder", "elsewhere").stdout, "elsewhere\n")

    def test_what_is_refused(self) -> None:
        (self.folder / "open").mkdir()
        (self.folder / "open").chmod(0o777)
        self.is_failure(self.cache("list", "--folder", "open"), USER, "others may write to the folder")
        self.fails(MISSING, "install the Python package headrace", "cache", "list", HEADRACE_PYTHON="false")
        self.fails(MISSING, "cache is kept by 'no-python", "cache", "list", HEADRACE_PYTHON="no-python")
        self.fails(USAGE, "name an action: list, clear, path", "cache")
        self.fails(USAGE, "there is no action 'lst'; there is list, clear, path", "cache", "lst")


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__], "cli_peer"))
