#!/usr/bin/env python3
"""Messages about mistakes name what the user wrote, and what to write instead. Standard library only.

tests/cli/test_messages.py --program headrace [--junit FILE] [TEST ...]
"""

from __future__ import annotations

import json
import struct
import sys

from test_cli import DIGITS, MISMATCH, MISSING, ONE, USAGE, USER, CliTest, main, npy

HEAD = '#[version = "0.0.5"]\n'


class MessagesTest(CliTest):
    def relay_fails(self, pattern: str, body: str, mark: bytes = b"") -> None:
        text = f"{HEAD}def @main(%x: Tensor[(2), float32]) {{ {body} }}\n"
        (self.folder / "wrong.relay").write_bytes(mark + text.encode())
        done = self.call("compile", "wrong.relay", "-o", "wrong.so")
        self.assertEqual(done.returncode, USER, body)
        self.assertRegex(done.stderr, pattern)

    def test_an_expected_output_of_another_shape(self) -> None:
        (self.folder / "two.npy").write_bytes(npy("<f4", (2, 10), struct.pack("<20f", *range(20))))
        done = self.call("run", "one.so", "--input", "x=x.npy", "--expected", "probabilities=two.npy")
        self.assertEqual(done.returncode, MISMATCH, done.stderr)
        line = "probabilities: MISMATCH, the output is float32 1x10 and its file has float32 2x10\n"
        self.assertIn(line, done.stdout)

    def test_options_of_backends(self) -> None:
        for text in ("cc", "onednn.x"):
            pattern = f"'{text}' must have the form NAME.KEY=VALUE; an example: --backend-option ccompiler.cc=clang"
            self.fails(USAGE, pattern, "compile", DIGITS, *ONE, "-o", "never.so", "--backend-option", text)
        for second in ("ccompiler.cc=clang", "ccompiler.cc=gcc"):
            words = ("--backend-option", "ccompiler.cc=gcc", "--backend-option", second)
            self.fails(USAGE, "--backend-option: 'ccompiler.cc' is given twice", "explain", DIGITS, *ONE, *words)

    def test_names_of_passes(self) -> None:
        compile_one = ("compile", DIGITS, *ONE, "-o", "never.so")
        near = "no pass 'FoldConstnt' to leave out; did you mean FoldConstant\\?\n"
        self.fails(USER, near, *compile_one, "--disable-pass", "FoldConstnt")
        near = "no configuration 'relay.FuseOps.max_dept'; did you mean relay.FuseOps.max_depth\\?\n"
        self.fails(USER, near, *compile_one, "--config", "relay.FuseOps.max_dept=1")

    def test_files_that_are_no_backend(self) -> None:
        pattern = "there is no file './none.so'; give the path of a backend's shared library"
        self.fails(MISSING, pattern, "backend", "check", "./none.so")
        self.fails(MISSING, pattern, "targets", "--plugin", "./none.so")
        self.fails(USER, "digits.onnx' is not a shared library; give", "targets", "--plugin", DIGITS)
        self.fails(USER, "empty.so' is not a shared library; give", "targets", "--plugin", "empty.so")
        (self.folder / "empty.py").write_text("")
        pattern = (
            "empty.py' is not a shared library, but a file of Python; give it by `python -m headrace ... --plugin "
        )
        self.fails(USER, pattern, "backend", "list", "--plugin", "empty.py")
        pattern = "'empty.py' is not the name of a backend; give a file of Python by `python -m headrace ... --plugin "
        self.fails(USER, pattern, "backend", "check", "empty.py")
        self.fails(USER, pattern, "explain", DIGITS, *ONE, "--backends", "empty.py")
        self.fails(
            USER, "'native' is not a backend: .*; leave the name out", "explain", DIGITS, *ONE, "--backends", "native"
        )

    def test_relay_text(self) -> None:
        self.relay_fails("there is no op 'x'; the variable is written %x", "nn.relu(x)")
        self.relay_fails("there is no op 'true'; write True", "if (true) { %x } else { %x }")
        self.relay_fails('a dtype is written as a text, "int32"', "cast(%x, dtype=int32)")
        self.relay_fails("'nn.softmax' has no attribute 'axs'; did you mean axis\\?", "nn.softmax(%x, axs=0)")
        self.relay_fails("nn.relu takes 1 argument", "nn.relu(%x, %x)")
        self.relay_fails("a byte order mark; save the text as UTF-8 without it", "%x", b"\xef\xbb\xbf")

    def test_files_that_are_not_json(self) -> None:
        (self.folder / "times.txt").write_text("1 2\n")
        place = r"times.txt:1:3: "
        self.fails(USER, place, "inspect", "one.so", "--json", "--times", "times.txt")
        by_cost = ("--backends", "ccompiler", "--placement", "cost", "--costs", "times.txt")
        self.fails(USER, place, "explain", DIGITS, *ONE, *by_cost)
        (self.folder / "table.json").write_text(json.dumps({"headrace_costs": 1}))
        self.fails(USER, "not a plan; headrace explain --save-plan writes one", "explain", DIGITS, *ONE, "--plan",
                   "table.json")  # fmt: skip

    def test_files_that_are_not_what_is_needed(self) -> None:
        self.fails(
            USER, "'none.onnx'", "verify", DIGITS, *ONE, "--against", "onnxruntime", "--against-model", "none.onnx"
        )
        (self.folder / "a.gif").write_bytes(b"GIF89a")
        self.fails(USER, "only PNG and JPEG are read", "run", "one.so", "--input", "x=a.gif")
        self.fails(USER, "'empty.so' is empty; copy the whole file", "run", "empty.so")
        (self.folder / "page").mkdir()
        self.fails(
            USER, "cannot write 'page': it is a folder; name a file in it\n", "inspect", "one.so", "--html", "page"
        )

    def test_processors_without_what_64_bits_need(self) -> None:
        words = ("compile", DIGITS, *ONE, "-o", "never.so", "--target-cpu", "generic")
        self.fails(USER, "'generic' without feature 'cmov'; x86-64 is the least", *words)

    def test_words_that_are_missing(self) -> None:
        self.fails(USAGE, "name a shell: bash, zsh or fish\n", "completion")
        self.fails(USAGE, "name an action: diff\n", "plan")

    def test_helps_end_with_examples_of_their_own(self) -> None:
        for words in (("pipeline",), ("backend",), ("backend", "list")):
            shown = self.call(*words, "--help", check=True).stdout
            self.assertIn(f"Example: headrace {words[0]} ", shown)
            self.assertNotIn("Start with:", shown)

    def test_counts_are_words(self) -> None:
        (self.folder / "one.relay").write_text(f"{HEAD}def @main(%x: Tensor[(2), float32]) {{ nn.relu(%x) }}\n")
        told = self.call("compile", "one.relay", "-o", "step.so", check=True).stdout
        self.assertIn(", 1 step for ", told)
        self.assertIn("program default: 1 step, ", self.call("inspect", "step.so", check=True).stdout)
        split = ("pipeline", "split", "one.relay", "-o", "stages.so", "--stages", "64", "--estimate")
        told = self.call(*split, check=True).stdout
        self.assertLess(len(told.splitlines()), 20, told)


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__], "messages"))
