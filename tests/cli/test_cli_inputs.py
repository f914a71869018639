#!/usr/bin/env python3
"""Tests inputs and outputs of runs: files, archives, random numbers, dimensions by name, times; and completion.

tests/cli/test_cli_inputs.py --program headrace [--junit FILE] [TEST ...]   (standard library only)
"""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
import warnings
import zipfile
from typing import Any

from test_cli import DIGITS, MISMATCH, OK, ONE, ROOT, USAGE, USER, VERBS, CliTest, field, main, npy

IMAGE = [float(i % 17) / 16 for i in range(64)]
INTEGERS = """#[version = "0.0.5"]
def @main(%i: Tensor[(4), int32], %u: Tensor[(3), uint8], %b: Tensor[(2), bool], %h: Tensor[(2), float16]) {
  (%i, %u, %b, %h)
}
"""


def archive(*members: tuple[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    """The bytes of a zip archive."""
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", compression) as file:
        warnings.simplefilter("ignore")  # two members of one name
        for name, data in members:
            file.writestr(name, data)
    return buffer.getvalue()


def open_sum() -> bytes:
    """An ONNX model: y = a + b, float32 vectors of a length `n` that is open."""
    kind = field(2, field(1, field(1, 1) + field(2, field(1, field(2, b"n")))))
    graph = field(1, field(1, b"a") + field(1, b"b") + field(2, b"y") + field(4, b"Add")) + field(2, b"g")
    graph += field(11, field(1, b"a") + kind) + field(11, field(1, b"b") + kind) + field(12, field(1, b"y") + kind)
    return field(1, 8) + field(7, graph) + field(8, field(2, 13))


class InputsTest(CliTest):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.image = struct.pack("<64f", *IMAGE)
        cls.array = npy("<f4", (1, 1, 8, 8), cls.image)
        (cls.folder / "image.npy").write_bytes(cls.array)
        (cls.folder / "integers.relay").write_text(INTEGERS, encoding="utf-8")
        cls.call("compile", "integers.relay", "-o", "integers.so", check=True)

    def outputs(self, *arguments: object) -> list[dict[str, Any]]:
        return json.loads(self.call("run", *arguments, "--json", check=True).stdout)["outputs"]

    def test_archives_and_raw_elements_are_as_arrays(self) -> None:
        expected = self.outputs("one.so", "--input", "x=image.npy")
        for name, data in (
            ("stored.npz", archive(("x.npy", self.array))),
            ("deflated.npz", archive(("x.npy", self.array), compression=zipfile.ZIP_DEFLATED)),
        ):
            (self.folder / name).write_bytes(data)
            self.assertEqual(self.outputs("one.so", "--input", name), expected)
        for name in ("image.raw", "image.bin"):
            (self.folder / name).write_bytes(self.image)
            self.assertEqual(self.outputs("one.so", "--input", f"x={name}"), expected)

    def test_wrong_archives(self) -> None:
        good = archive(("x.npy", self.array))
        flipped = bytearray(good)
        flipped[good.index(self.image) + 40] ^= 1
        # The sizes of the only member, in its two headers: four bytes after the compressed size.
        deflated = archive(("x.npy", npy("<f4", (4096,), bytes(16384))), compression=zipfile.ZIP_DEFLATED)
        length = struct.pack("<I", len(npy("<f4", (4096,), bytes(16384))))
        lying = deflated.replace(length, struct.pack("<I", 0x7FFFFFFF))
        cases = {
            "text.npz": (b"not an archive", "is not an archive that can be read: "),
            "empty.npz": (archive(), "is not an archive that can be read: it holds no arrays"),
            "cut.npz": (good[: len(good) // 2], "is not an archive that can be read: "),
            "flipped.npz": (bytes(flipped), "its member 'x.npy' is damaged: "),
            "lying.npz": (lying, "is not an archive that can be read: "),
            "words.npz": (archive(("readme.txt", b"hello")), "its member 'readme.txt' is not an array"),
            "twice.npz": (
                archive(("x.npy", self.array), ("x.npy", self.array)),
                "is not an archive that can be read: File already exists",
            ),
            "short.npz": (archive(("x.npy", self.array[:100])), r"short.npz:x.npy' is not an array that can be read"),
            "other.npz": (
                archive(("y.npy", self.array)),
                "'other.npz' holds 'y', which is not an input; the program has x",
            ),
        }
        for name, (data, pattern) in cases.items():
            (self.folder / name).write_bytes(data)
            self.fails(USER, pattern, "run", "one.so", "--input", name)
        self.fails(USER, "'no.npz': No such file", "run", "one.so", "--input", "no.npz")
        (self.folder / "good.npz").write_bytes(good)
        self.fails(USAGE, "--input: 'x' is given twice", "run", "one.so", "-i", "good.npz", "-i", "x=image.npy")

    def test_arrays_are_refused_before_their_elements_are_read(self) -> None:
        """The elements of these members are damaged: an error that names the shape comes from their head alone."""
        large = npy("<f4", (64, 64, 64), bytes(4 * 64**3))
        bomb = bytearray(archive(("x.npy", large)))
        bomb[bomb.index(large) + 5000] ^= 1
        (self.folder / "bomb.npz").write_bytes(bomb)
        for verb, model in (("run", "one.so"), ("bench", "one.so"), ("profile", "one.so")):
            for words in (("--input", "bomb.npz"), ("--input", "x=bomb.npz")):
                self.fails(
                    USER, r"input 'x' must be float32 1x1x8x8, the file has float32 64x64x64", verb, model, *words
                )
        doubles = bytearray(archive(("x.npy", npy("<f8", (1, 1, 8, 8), bytes(512)))))
        doubles[doubles.index(bytes(512)) + 40] ^= 1
        (self.folder / "doubles.npz").write_bytes(doubles)
        self.fails(USER, r"the file has float64 1x1x8x8: convert it", "run", "one.so", "-i", "doubles.npz")
        (self.folder / "large.npy").write_bytes(large)
        self.fails(USER, "the file has float32 64x64x64", "run", "one.so", "--input", "x=large.npy")
        # NAME=FILE.npz reads only that array.
        other = npy("<f4", (64,), bytes(256))
        two = bytearray(archive(("x.npy", self.array), ("other.npy", other)))
        two[two.index(other) + 200] ^= 1
        (self.folder / "two.npz").write_bytes(two)
        self.assertEqual(self.outputs("one.so", "-i", "x=two.npz"), self.outputs("one.so", "-i", "x=image.npy"))

    def test_members_of_another_size_than_their_arrays(self) -> None:
        for name, data, count in (("longer", self.array + bytes(4), 388), ("shorter", self.array[:-4], 380)):
            pattern = f"its member 'x.npy' has {count} bytes where the head of its array asks for 384"
            for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                (self.folder / f"{name}.npz").write_bytes(archive(("x.npy", data), compression=compression))
                self.fails(USER, pattern, "run", "one.so", "--input", f"{name}.npz")
        head = b"\x93NUMPY\x02\x00" + struct.pack("<I", 1 << 20) + b"{" + b" " * (1 << 20)
        (self.folder / "head.npz").write_bytes(archive(("x.npy", head)))
        self.fails(USER, "its header has 1048576 bytes; at most 65535 are read", "run", "one.so", "-i", "head.npz")

    def test_files_give_open_dimensions_their_sizes(self) -> None:
        """`n` is open in the model; the image has 1."""
        for verb in ("bench", "profile", "verify"):
            more = () if verb == "verify" else ("--rounds", "1")
            self.call(verb, DIGITS, "--input", "x=image.npy", *more, check=True)
            self.fails(USER, r"leaves these dimensions open: x\[0\]", verb, DIGITS, *more)
            self.fails(USER, "dimension 'n' is 2 by its own size and 1 by input 'x'", verb, DIGITS, "--dim", "n=2",
                       "--input", "x=image.npy", *more)  # fmt: skip
            self.fails(USER, r"input 'x' must be float32 2x1x8x8, the file has float32 1x1x8x8", verb, DIGITS,
                       "--shape", "x=2,1,8,8", "--input", "x=image.npy", *more)  # fmt: skip
        (self.folder / "open.npz").write_bytes(archive(("x.npy", self.array)))
        self.call("bench", DIGITS, "--input", "open.npz", "--rounds", "1", "--beside", DIGITS, check=True)
        self.call("profile", DIGITS, "--input", "open.npz", "--backends", "null", "--rounds", "1", check=True,
                  HEADRACE_CACHE=str(self.folder / "costs"))  # fmt: skip

    def test_files_that_disagree_about_a_dimension(self) -> None:
        (self.folder / "sum.onnx").write_bytes(open_sum())
        for name, count in (("two", 2), ("three", 3)):
            (self.folder / f"{name}.npy").write_bytes(npy("<f4", (count,), bytes(4 * count)))
        for verb in ("bench", "profile", "verify"):
            self.fails(USER, "dimension 'n' is 2 by input 'a' and 3 by input 'b'", verb, "sum.onnx", "-i", "a=two.npy",
                       "-i", "b=three.npy")  # fmt: skip
            self.call(verb, "sum.onnx", "-i", "a=two.npy", check=True)  # b is random, of the same size

    def test_wrong_raw_elements(self) -> None:
        (self.folder / "short.raw").write_bytes(self.image[:-4])
        self.fails(USER, r"'short.raw' has 252 bytes, but input 'x' \(float32 1x1x8x8\) has 256", "run", "one.so",
                   "--input", "x=short.raw")  # fmt: skip
        self.fails(USER, "'no.raw': No such file", "run", "one.so", "--input", "x=no.raw")
        self.fails(USER, "no input 'y'; it has x", "run", "one.so", "--input", "y=short.raw")
        (self.folder / "two.bin").write_bytes(b"\x00\x02")
        self.fails(USER, "'two.bin' has a bool that is neither 0 nor 1, for input 'b'", "run", "integers.so",
                   "--input", "b=two.bin", "--random")  # fmt: skip
        (self.folder / "two.npy").write_bytes(npy("|b1", (2,), b"\x01\x02"))
        self.fails(USER, "'two.npy' is not an array that can be read: it has a bool of 2, neither 0 nor 1", "run",
                   "integers.so", "--input", "b=two.npy", "--random")  # fmt: skip
        self.fails(USER, "'short.raw' has 252 bytes", "verify", DIGITS, *ONE, "--input", "x=short.raw")
        (self.folder / "whole.raw").write_bytes(bytes(256))
        self.call("verify", DIGITS, *ONE, "--input", "x=whole.raw", check=True)

    def test_random_inputs(self) -> None:
        first = self.outputs("one.so", "--random")
        self.assertEqual(self.outputs("one.so", "--random=1"), first)
        second = self.outputs("one.so", "--seed", "2")
        self.assertNotEqual(second, first)
        self.assertEqual(self.outputs("one.so", "--seed", "1"), first)
        for words in (("--random=2",), ("--random", "--seed=2")):
            self.assertEqual(self.outputs("one.so", *words), second)
        self.assertEqual(self.outputs("one.so", "--input", "x=image.npy", "--random"),
                         self.outputs("one.so", "--input", "x=image.npy"))  # fmt: skip
        self.fails(USER, r"input 'x' \(float32 1x1x8x8\) is missing", "run", "one.so")
        for seed in ("x", "-1", "1.5"):
            self.fails(USAGE, "--random: ", "run", "one.so", f"--random={seed}")
            self.fails(USAGE, "--seed: ", "run", "one.so", f"--seed={seed}")
        self.fails(USAGE, "--random: it has a seed and --seed has another; leave one out", "run", "one.so",
                   "--random=2", "--seed=3")  # fmt: skip

    def test_one_spelling_of_the_seed_for_all_verbs(self) -> None:
        """Errors of two seeds differ, and those of one seed do not, whichever option has it."""

        def errors(*words: str) -> list[float]:
            report = json.loads(self.call("verify", DIGITS, *ONE, *words, "--json", check=True).stdout)
            return [one["error"] for one in report["outputs"]]

        self.assertEqual(errors("--random"), errors())
        self.assertEqual(errors("--random=2"), errors("--seed", "2"))
        self.assertNotEqual(errors("--random=2"), errors())
        for verb in ("bench", "profile"):
            self.call(verb, "one.so", "--rounds", "1", "--random=2", check=True)
        for verb, shown in (("run", True), ("bench", False), ("verify", False), ("profile", False)):
            text = self.call("help", verb, check=True).stdout
            self.assertIn("--seed", text)
            self.assertEqual("--random" in text, shown)

    def test_ranges_of_random_inputs(self) -> None:
        i, u, b, h = (one["values"] for one in self.outputs("integers.so", "--random", "--range=3,5"))
        self.assertLessEqual({*i, *u}, {3, 4, 5})
        self.assertLessEqual(set(b), {0, 1})
        self.assertTrue(all(3 <= x <= 5 for x in h))
        self.assertEqual({*self.outputs("integers.so", "--random", "--range=2,2")[0]["values"]}, {2})
        for text in ("1", "2,1", "a,b", "1,2,3", "nan,1", "0,inf", "-1e308,1e308"):
            self.fails(USAGE, "--range: .*an example: --range=-1,1", "run", "one.so", "--random", f"--range={text}")
        self.fails(USER, "-1,300 is not a range of uint8, the dtype of input 'u'", "run", "integers.so", "--random",
                   "--range=-1,300")  # fmt: skip
        self.fails(USER, "0,200000 is not a range of (uint8|float16)", "run", "integers.so", "--random",
                   "--range=0,200000")  # fmt: skip
        self.fails(USER, "0.2,0.8 is not a range of int32", "run", "integers.so", "--random", "--range=0.2,0.8")
        self.fails(USAGE, "--range: is for random inputs; add --random", "run", "one.so", "-i", "x=image.npy",
                   "--range=0,1")  # fmt: skip

    def test_values_and_the_largest(self) -> None:
        (output,) = self.outputs("one.so", "--input", "x=image.npy", "--values", "10", "--top", "3")
        values = output["values"]
        self.assertEqual(len(values), 10)
        self.assertAlmostEqual(sum(values), 1, places=5)  # probabilities
        order = sorted(range(10), key=lambda place: -values[place])[:3]
        self.assertEqual([one["index"] for one in output["top"][0]], order)
        self.assertEqual([one["value"] for one in output["top"][0]], [values[place] for place in order])
        text = self.call("run", "one.so", "--input", "x=image.npy", "--top", "2", check=True).stdout
        self.assertRegex(text, r"(?m)^probabilities: (\S+, ){8}\.\.\. \(10 elements\)$")
        self.assertRegex(text, rf"(?m)^probabilities, largest of row 0: {order[0]}: \S+, {order[1]}: \S+$")
        none = self.call("run", "one.so", "--input", "x=image.npy", "--values", "0", check=True).stdout
        self.assertEqual(len(none.splitlines()), 2)

    def test_labels_of_the_largest(self) -> None:
        (self.folder / "names.txt").write_text("".join(f"digit {i}\r\n" for i in range(9)) + "n\u00fcne", "utf-8")
        words = ("one.so", "--input", "x=image.npy", "--top", "10", "--labels", "names.txt")
        (output,) = self.outputs(*words)
        labels = {one["index"]: one["label"] for one in output["top"][0]}
        self.assertEqual(labels, {i: f"digit {i}" for i in range(9)} | {9: "n\u00fcne"})
        text = self.call("run", *words, check=True).stdout
        self.assertRegex(text, r"(?m)^probabilities, largest of row 0: \d \((digit \d|n\u00fcne)\): \S+, \d \(")
        (self.folder / "short.txt").write_text("a\nb\n")
        (self.folder / "latin.txt").write_bytes(b"\xe9\n")
        (self.folder / "none.txt").write_bytes(b"\n")
        cases = {
            "short.txt": r"the file has 2 lines, .*no output has rows of so many: probabilities \(float32 1x10\)\n",
            "latin.txt": "--labels: 'latin.txt' is not UTF-8 text",
            "none.txt": "--labels: 'none.txt' holds no labels",
            "no.txt": "'no.txt': No such file",
        }
        for name, pattern in cases.items():
            self.fails(USER, pattern, "run", "one.so", "--random", "--top", "1", "--labels", name)
        self.fails(
            USAGE, "--labels: is for the elements that --top shows", "run", "one.so", "--random", "--labels", "n"
        )

    def test_repeated_runs(self) -> None:
        report = json.loads(self.call("run", "one.so", "--random", "--repeat", "5", "--json", check=True).stdout)
        self.assertEqual(report["runs"], 5)
        self.assertLess(0, report["best_seconds"])
        self.assertLessEqual(report["best_seconds"], report["median_seconds"])
        text = self.call("run", "one.so", "--random", "--repeat", "5", check=True).stdout
        self.assertRegex(text, r"(?m)^5 runs: best \S+ [um]s, median \S+ [um]s$")

    def test_dimensions_by_name(self) -> None:
        self.call("compile", DIGITS, "-o", "three.so", "--dim", "n=3", check=True)
        (given,) = json.loads(self.call("inspect", "three.so", "--json", check=True).stdout)["programs"]
        self.assertEqual(given["inputs"][0]["shape"], [3, 1, 8, 8])
        self.call("compile", DIGITS, "-o", "printed.so", "--shape", "x=3x1x8x8", check=True)
        self.assertEqual((self.folder / "printed.so").read_bytes(), (self.folder / "three.so").read_bytes())
        for verb, more in (("compile", ("-o", "never.so")), ("verify", ()), ("bench", ()), ("explain", ())):
            self.fails(USER, r"x\[0\] \(n\); give them sizes, as in --dim n=1\n", verb, DIGITS, *more)
            unknown = "a size is given for dimension 'm', but the named dimensions .* are: n"
            self.fails(USER, unknown, verb, DIGITS, *more, "--dim", "m=1")
            self.fails(USER, "dimension 'n' is given the negative size -1", verb, DIGITS, *more, "--dim", "n=-1")
            both = "dimension 'n' is 2 by its own size and 1 by input 'x'"
            self.fails(USER, both, verb, DIGITS, *more, *ONE, "--dim", "n=2")
            for text in ("n", "n=", "=1", "n=one", "n=1.5"):
                self.fails(USAGE, "--dim: ", verb, DIGITS, *more, "--dim", text)
            self.fails(
                USAGE, "--dim: dimension 'n' is given twice", verb, DIGITS, *more, "--dim", "n=1", "--dim", "n=1"
            )
        text = ("compile", "integers.relay", "-o", "never.so", "--dim", "n=1")
        self.fails(USER, "shapes, dimensions and bound inputs are for ONNX", *text)
        self.fails(USER, "is compiled already: --dim is for models", "bench", "one.so", "--dim", "n=1")
        self.assertFalse((self.folder / "never.so").exists())


class TimesTest(CliTest):
    def test_percentiles_and_throughput(self) -> None:
        report = json.loads(
            self.call("bench", "one.so", "--rounds", "40", "--warmup", "0", "--json", check=True).stdout
        )
        (result,) = report["results"]
        self.assertEqual((report["rounds"], report["clients"], result["runs"]), (40, 1, 40))
        times = [result[f"{what}_seconds"] for what in ("best", "median", "p90", "p99")]
        self.assertEqual(times, sorted(times))
        self.assertLessEqual(result["runs_per_second"], 1 / result["best_seconds"])
        self.assertRegex(self.call("bench", "one.so", "--rounds", "2", check=True).stdout,
                         r"\Athreads +best +median +p90 +p99 +runs/s +runs\n")  # fmt: skip

    def test_a_duration_in_place_of_rounds(self) -> None:
        report = json.loads(self.call("bench", "one.so", "--seconds", "0.2", "--json", check=True).stdout)
        self.assertIsNone(report["rounds"])
        (result,) = report["results"]
        self.assertGreaterEqual(result["runs"], 1)
        self.assertLess(result["runs"] * result["best_seconds"], 5)
        self.fails(USAGE, "give --rounds or --seconds, not both", "bench", "one.so", "--seconds", "1", "--rounds", "2")

    def test_clients_at_once(self) -> None:
        words = ("bench", "one.so", "--clients", "3", "--rounds", "20", "--threads", "1,2")
        report = json.loads(self.call(*words, "--json", check=True).stdout)
        self.assertEqual(report["clients"], 3)
        self.assertEqual([result["runs"] for result in report["results"]], [60, 60])
        self.fails(USAGE, "--clients: .* leave --steps out", *words, "--steps")
        self.fails(USAGE, "--clients: .* leave --against out", "bench", DIGITS, *ONE, "--clients", "2", "--against",
                   "onnxruntime")  # fmt: skip

    def test_models_in_turns(self) -> None:
        words = ("bench", "one.so", "--beside", "one.so", *ONE, "--rounds", "3")
        self.fails(USER, "is compiled already: --shape is for models", *words)
        words = ("bench", DIGITS, *ONE, "--beside", "one.so", "--rounds", "3", "--threads", "1")
        report = json.loads(self.call(*words, "--json", check=True).stdout)
        self.assertEqual([result["model"] for result in report["results"]], [str(DIGITS), "one.so"])
        self.assertRegex(self.call(*words, check=True).stdout, r"\Amodel +threads +best ")
        self.fails(USER, "there is no file 'no.so'", "bench", "one.so", "--beside", "no.so")

    def test_an_interrupted_bench_shows_its_times(self) -> None:
        # A model, whose compile starts threads before the rounds. A signal that comes before these ends the program.
        command = [str(self.program), "bench", str(DIGITS), *ONE, "--seconds", "600", "--threads", "1,2", "--json"]
        for wait in (1, 5, 30):
            with subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
                time.sleep(wait)
                running.send_signal(signal.SIGINT)
                out, err = running.communicate(timeout=60)
            if running.returncode != -signal.SIGINT:
                break
        self.assertEqual(err, b"headrace: interrupted (Ctrl-C); these are the times so far\n")
        self.assertEqual(running.returncode, 130)
        report = json.loads(out)
        self.assertTrue(report["interrupted"])
        (result,) = report["results"]
        self.assertGreater(result["runs"], 0)
        self.assertEqual(result["threads"], 1)

    def test_processors_of_the_user(self) -> None:
        one = min(os.sched_getaffinity(0))
        words = ("bench", "one.so", "--rounds", "2", "--threads", "2", "--json")
        (result,) = json.loads(self.call(*words, "--cpus", str(one), check=True).stdout)["results"]
        self.assertEqual(result["processors"], [one])
        self.fails(USER, r"--cpus: this process may not use processor 4000; it may use \d", *words, "--cpus", "4000")
        for text in ("x", "0,0", "-1", ""):
            self.fails(USAGE, "--cpus", *words, f"--cpus={text}")

    def test_inputs_of_the_user(self) -> None:
        words = ("--rounds", "2")
        for verb in ("bench", "profile"):
            self.call(verb, "one.so", *words, "--input", "x=x.npy", check=True)
            self.call(verb, "one.so", *words, "--range=0,1", "--seed", "3", check=True)
            self.fails(USER, "input 'x' must be float32 1x1x8x8", verb, "one.so", *words, "--input", "x=wide.npy")


class ConfigTest(CliTest):
    def test_options_of_passes(self) -> None:
        apart, joined = (
            json.loads(self.call("compile", DIGITS, *ONE, "-o", "c.so", *more, "--json", check=True).stdout)["steps"]
            for more in (("--config", "relay.FuseOps.max_depth=1"), ())
        )
        self.assertGreater(apart, joined)
        words = ("compile", DIGITS, *ONE, "-o", "c.so", "--config")
        self.fails(USER, "relay.Nothing.at_all", *words, "relay.Nothing.at_all=1")
        self.fails(USER, "relay.FuseOps.max_depth", *words, "relay.FuseOps.max_depth=deep")
        self.fails(USAGE, "--config: 'x' must have the form KEY=VALUE", *words, "x")
        twice = ("relay.FuseOps.max_depth=1", "--config", "relay.FuseOps.max_depth=2")
        self.fails(USAGE, "is given twice", *words, *twice)


class ExpectedTest(CliTest):
    def test_outputs_are_compared_with_files(self) -> None:
        words = ("run", "one.so", "--input", "x=x.npy")
        self.call(*words, "--output-dir", "right", check=True)
        right = self.folder / "right/probabilities.npy"
        report = json.loads(self.call(*words, "--expected", f"probabilities={right}", "--json", check=True).stdout)
        self.assertEqual(report["compared"], [{"name": "probabilities", "error": 0, "limit": 1e-5, "ok": True}])
        self.assertIn(
            "\nprobabilities: ok, 0 from its file", self.call(*words, "--expected", f"probabilities={right}").stdout
        )
        data = bytearray(right.read_bytes())
        data[-4:] = struct.pack("<f", struct.unpack("<f", data[-4:])[0] + 0.25)
        (self.folder / "wrong.npy").write_bytes(data)
        done = self.call(*words, "--expected", "probabilities=wrong.npy")
        self.assertEqual(done.returncode, MISMATCH)
        self.assertRegex(done.stdout, r"probabilities: MISMATCH, 0\.\d+ from its file relative to its largest element")
        self.call(*words, "--expected", "probabilities=wrong.npy", "--limit", "1", check=True)
        self.fails(USER, "the program has no output 'y'; it has probabilities", *words, "--expected", f"y={right}")
        self.fails(USAGE, "--limit: is for --expected", *words, "--limit", "1")
        self.fails(USAGE, "--expected: say whose values 'right.npy' holds", *words, "--expected", "right.npy")
        self.fails(USER, "there is no file|No such file", *words, "--expected", "probabilities=no.npy")

    def test_tolerances_of_elements(self) -> None:
        """1.01 for 1 is within 2 %, but not near the default, and rtol is of the element, not of the largest one."""
        for name, values in (("near", (100, 1.01)), ("right", (100, 1))):
            (self.folder / f"{name}.npy").write_bytes(npy("<f4", (2,), struct.pack("<2f", *values)))
        (self.folder / "same.relay").write_text(
            '#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), float32]) { nn.relu(%x) }\n', encoding="utf-8"
        )
        self.call("compile", "same.relay", "-o", "same.so", check=True)
        words = ("run", "same.so", "--input", "x=near.npy", "--expected", "output0=right.npy")
        self.assertEqual(self.call(*words, "--limit", "1e-3").returncode, OK)
        self.assertEqual(self.call(*words, "--rtol", "1e-3").returncode, MISMATCH)
        done = self.call(*words, "--rtol", "2e-2", check=True)
        self.assertIn("ok, 0.5 from its file relative to the tolerance of each element, the limit is 1", done.stdout)
        self.assertEqual(self.call(*words, "--atol", "0.02").returncode, OK)
        self.assertEqual(self.call(*words, "--rtol", "0", "--atol", "1e-3").returncode, MISMATCH)
        self.fails(USAGE, "--limit or --rtol, not both", *words, "--rtol", "1e-3", "--limit", "1")
        self.fails(USAGE, "--atol: is for --expected", "run", "same.so", "--input", "x=near.npy", "--atol", "1")
        self.fails(USAGE, "--rtol: '-1' is not a number of 0 or more; an example: --rtol 1e-3", *words, "--rtol=-1")
        report = json.loads(self.call("verify", "same.relay", "--rtol", "0", "--atol", "1", "--json").stdout)
        self.assertEqual((report["ok"], report["limit"]), (True, 1))
        self.assertIn("error against float64, in tolerances", self.call("verify", "same.relay", "--rtol", "1").stdout)

    def test_verify_takes_an_artifact(self) -> None:
        report = json.loads(self.call("verify", DIGITS, "--artifact", "one.so", "--json", check=True).stdout)
        self.assertEqual([one["name"] for one in report["outputs"]], ["probabilities"])
        model = '#[version = "0.0.5"]\ndef @main(%x: Tensor[({0}), float32]) {{ {1} }}\n'
        for name, values in (("a", ("4", "nn.relu(%x)")), ("b", ("4", "negative(%x)")), ("c", ("5", "nn.relu(%x)"))):
            (self.folder / f"{name}.relay").write_text(model.format(*values), encoding="utf-8")
        (self.folder / "two.relay").write_text(model.format("4", "(%x, nn.relu(%x))"), encoding="utf-8")
        self.call("compile", "b.relay", "-o", "b.so", check=True)
        self.call("verify", "b.relay", "--artifact", "b.so", check=True)
        done = self.call("verify", "a.relay", "--artifact", "b.so")
        self.assertEqual(done.returncode, MISMATCH, done.stdout)
        self.fails(USER, r"'b.so' is not made from this model: it has the inputs x \(float32 4\), and the model has x "
                   r"\(float32 5\)", "verify", "c.relay", "--artifact", "b.so")  # fmt: skip
        self.fails(USER, "it has the outputs output0, and the model has output0, output1", "verify", "two.relay",
                   "--artifact", "b.so")  # fmt: skip
        self.fails(USAGE, "--opt-level: is for a compile", "verify", "b.relay", "--artifact", "b.so", "-O", "0")
        self.fails(USAGE, "--layers: needs a compile", "verify", "b.relay", "--artifact", "b.so", "--layers")
        self.fails(USER, "there is no file 'none.so'", "verify", "b.relay", "--artifact", "none.so")
        self.fails(USER, "give the model that it was made from, and the artifact by --artifact", "verify", "b.so")

    def test_verify_takes_a_range(self) -> None:
        self.call("verify", DIGITS, *ONE, "--range=0,1", "--seed", "3", check=True)
        self.fails(USAGE, "--range: '1,0' must have the form LOW,HIGH", "verify", DIGITS, *ONE, "--range=1,0")

    def test_processors_of_a_run(self) -> None:
        one = min(os.sched_getaffinity(0))
        self.call("run", "one.so", "--random", "--cpus", str(one), check=True)
        self.fails(USER, "this process may not use processor 4000", "run", "one.so", "--random", "--cpus", "4000")


class TypingTest(CliTest):
    def test_help_of_a_verb(self) -> None:
        for verb in (*VERBS, "pipeline", "backend", "cache"):
            self.assertEqual(self.call("help", verb, check=True).stdout, self.call(verb, "--help").stdout)
        self.assertEqual(self.call("help", check=True).stdout, self.call("--help").stdout)
        self.assertEqual(self.call("help", "pipeline", "split", check=True).stdout,
                         self.call("pipeline", "split", "--help").stdout)  # fmt: skip
        self.fails(USAGE, "no help for 'bnch'; did you mean bench\\?\n", "help", "bnch")
        self.fails(USAGE, "'run' has no actions, so 'fast' has no help", "help", "run", "fast")

    def test_names_that_are_near(self) -> None:
        self.fails(USAGE, "there is no verb 'compil'; did you mean compile( or completion)?\\?\n", "compil")
        self.fails(USAGE, "no option '--thread' here; did you mean --threads\\?", "bench", "one.so", "--thread", "2")
        self.fails(USAGE, "no option '--shapes=x=1' here; did you mean --shape\\?", "compile", DIGITS, "--shapes=x=1")
        self.fails(USAGE, "no option '--frob' here\n", "bench", "one.so", "--frob")
        self.fails(USAGE, "no option '--dim' here; it is an option of headrace compile, ", "run", "one.so",
                   "--dim", "n=1")  # fmt: skip

    def test_version(self) -> None:
        lines = self.call("--version", check=True).stdout.splitlines()
        self.assertRegex(lines[0], r"\Aheadrace \d+\.\d+\.\d+\Z")
        self.assertRegex(lines[1], r"\Anative code: LLVM 19\.1\.\d+, this machine: \S+\Z")
        self.assertRegex(lines[2], r"\Atargets: .*\bllvm\b")
        self.assertRegex(lines[3], r"\Abackends: .*\bnull\b")
        self.assertRegex(lines[4], r"\Aartifacts: version \d+, reads 2 to \d+\Z")
        self.assertRegex(lines[5], r"\Acommit: ([0-9a-f]{12}|unknown)\Z")
        # Where Git says what this tree is, the program says a commit of it.
        head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
        if head.returncode == 0:
            commit = lines[5].removeprefix("commit: ")
            done = subprocess.run(
                ["git", "cat-file", "-t", commit], cwd=ROOT, capture_output=True, text=True, check=False
            )
            self.assertEqual((commit == "unknown", done.stdout), (False, "commit\n"))

    def complete(self, *words: str) -> list[str]:
        """The completions that bash offers for the last word."""
        script = self.call("completion", "bash", check=True).stdout
        quoted = " ".join(f"'{word}'" for word in ("headrace", *words))
        asks = f"COMP_WORDS=({quoted}); COMP_CWORD={len(words)}; _headrace; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        done = subprocess.run(
            ["bash", "-c", script + asks], cwd=self.folder, capture_output=True, text=True, check=True
        )
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_completion(self) -> None:
        self.assertEqual(self.complete("comp"), ["compile", "completion"])
        self.assertIn("--shape", self.complete("compile", "one.onnx", "--sh"))
        self.assertIn("--json", self.complete("run", "--js"))
        self.assertIn("one.so", self.complete("run", "one"))
        self.assertIn("one.so", self.complete("run", "--json", "one"))
        self.assertEqual(self.complete("pipeline", "sp"), ["split"])
        self.assertEqual(self.complete("pipeline", "split", "--stag"), ["--stages"])
        self.assertEqual(self.complete("run", "one.so", "--fallback", ""), ["native", "none"])
        self.assertEqual(self.complete("bench", "one.so", "--against", "openv"), ["openvino", "openvino-default"])
        peers = ["ncnn", "onnxruntime", "openvino", "openvino-default", "torch-compile"]
        self.assertEqual(sorted(self.complete("verify", "one.onnx", "--against", "")), peers)
        self.assertIn("fish", self.complete("completion", "f"))
        self.assertIn("verify", self.complete("help", "ver"))
        self.assertIn("diff", self.complete("plan", "d"))
        self.assertEqual(self.complete("bench", "one.so", "--placement", ""), ["cost", "order"])
        self.assertEqual(self.complete("compile", "m.onnx", "--backends", "ccom"), ["ccompiler"])
        self.assertEqual(self.complete("compile", "m.onnx", "--backends", "null,ccom"), ["null,ccompiler"])
        (self.folder / "folder_of_outputs").mkdir()
        (self.folder / "folder_of_costs.json").write_text("{}", encoding="utf-8")
        self.assertEqual(self.complete("run", "one.so", "--output-dir", "folder_of"), ["folder_of_outputs"])
        self.assertEqual(self.complete("compile", "m.onnx", "--costs", "folder_of_c"), ["folder_of_costs.json"])
        self.assertNotIn("--json", self.complete("compile", "m.onnx", "--costs", ""))
        for shell in ("zsh", "fish"):
            text = self.call("completion", shell, check=True).stdout
            self.assertIn("replans", text)
            if shutil.which(shell):
                done = subprocess.run([shell, "-n"], input=text, text=True, capture_output=True, timeout=60)
                self.assertEqual((done.returncode, done.stderr), (OK, ""))
        self.fails(USAGE, "there is no shell 'tcsh'; there is bash, zsh, fish", "completion", "tcsh")

    def test_fish_offers_options_of_the_verb_alone(self) -> None:
        script = self.call("completion", "fish", check=True).stdout
        self.assertEqual([line for line in script.splitlines() if " -n '" not in line], [])
        line = (
            r"(?m)^complete -c headrace -n '__fish_seen_subcommand_from %s' -l 'against' -x -a '[^']*openvino[^']*' -d"
        )
        self.assertRegex(script, line % "bench")
        self.assertNotRegex(script, line % "run")
        if not shutil.which("fish"):
            return  # the lines above are all that can be checked
        for words, offered in (
            ("headrace run --ag", []),
            ("headrace bench --against o", ["onnxruntime", "openvino", "openvino-default"]),
            ("headrace compile --backends null,ccom", ["null,ccompiler"]),
            ("headrace pipeline sp", ["split"]),
        ):
            done = subprocess.run(
                ["fish", "-c", f"{script}complete -C '{words}'"],
                cwd=self.folder,
                capture_output=True,
                text=True,
                timeout=60,
            )
            self.assertEqual(done.stderr, "")
            found = [line.split("\t")[0] for line in done.stdout.splitlines()]
            self.assertEqual(sorted(found), offered, words)


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__], "cli_inputs"))
