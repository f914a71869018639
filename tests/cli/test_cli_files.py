#!/usr/bin/env python3
"""Tests the files that the program reads beside the model, and those that it must not overwrite. Standard library only.

tests/cli/test_cli_files.py --program headrace [--junit FILE] [TEST ...]
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import struct
import subprocess
import sys
import unittest
from collections.abc import Callable, Iterable
from pathlib import Path

from test_cli import DIGITS, MISMATCH, OK, ONE, USAGE, USER, CliTest, field, main, npy, onnx_model


class FilesTest(CliTest):
    def test_no_input_is_overwritten(self) -> None:
        before = (self.folder / "x.npy").read_bytes()
        os.link(self.folder / "x.npy", self.folder / "hard.npy")
        for output in ("x.npy", "hard.npy", "./x.npy"):
            pattern = f"cannot write '{output}': the model is read from it; name another file"
            self.fails(USER, pattern, "compile", DIGITS, "-o", output, "--bind", "x=x.npy")
        self.call("run", "one.so", "--input", "x=x.npy", "--output-dir", "same", check=True)
        (self.folder / "same/probabilities.npy").unlink()
        os.link(self.folder / "x.npy", self.folder / "same/probabilities.npy")
        self.fails(USER, "an input is read from it", "run", "one.so", "--input", "x=x.npy", "--output-dir", "same")
        self.assertEqual((self.folder / "x.npy").read_bytes(), before)
        program = self.folder / "dump/00_program.relay"
        program.parent.mkdir()
        program.write_text('#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), float32]) { nn.relu(%x) }\n')
        again = ("compile", "dump/00_program.relay", "-o", "again.so", "--dump-ir")
        self.fails(USER, "cannot write 'dump/00_program.relay': the model is read from it", *again, "dump")
        self.call(*again, "dump2", check=True)
        self.fails(USAGE, "an artifact is not text for the standard output", "compile", DIGITS, "-o", "-", *ONE)

    def test_no_verb_overwrites_what_it_reads(self) -> None:
        (self.folder / "one.npy").write_bytes((self.folder / "x.npy").read_bytes())
        self.call("explain", DIGITS, *ONE, "--save-plan", "plan.json", check=True)
        self.call("profile", DIGITS, *ONE, "-o", "costs.json", "--rounds", "1", check=True)
        (self.folder / "labels.txt").write_text("\n".join("0123456789"))
        self.call("pipeline", "split", DIGITS, *ONE, "-o", "pipe.so", "--estimate", check=True)
        self.call("run", "one.so", "--input", "x=x.npy", "--output-dir", "expected", check=True)
        (self.folder / "labelled").mkdir()
        os.link(self.folder / "labels.txt", self.folder / "labelled/probabilities.npy")
        model, costs, plan = "the model", "the table of costs", "the plan"
        by_cost = ("--placement", "cost", "--backends", "ccompiler", "--costs")
        given = ("--input", "x=one.npy")
        pipelines = (("pipeline", verb, "pipe.so", *given, "--trace") for verb in ("run", "bench"))
        for what, output, *words in (
            (costs, "costs.json", "compile", DIGITS, *ONE, *by_cost, "costs.json", "-o"),
            (plan, "plan.json", "compile", DIGITS, *ONE, "--plan", "plan.json", "-o"),
            (model, "x.npy", "explain", DIGITS, "--bind", "x=x.npy", "--html"),
            (costs, "costs.json", "explain", DIGITS, *ONE, *by_cost, "costs.json", "--save-plan"),
            (plan, "plan.json", "explain", DIGITS, *ONE, "--plan", "plan.json", "--html"),
            (plan, "plan.json", "explain", DIGITS, *ONE, "--plan", "plan.json", "--dot"),
            (costs, "costs.json", "profile", DIGITS, *ONE, *by_cost, "costs.json", "-o"),
            (model, "x.npy", "profile", DIGITS, "--bind", "x=x.npy", "-o"),
            ("an input", "one.npy", "profile", "one.so", *given, "--trace"),
            ("the model", "one.so", "profile", "one.so", "--trace"),
            ("an input", "one.npy", "bench", "one.so", *given, "--html"),
            ("the artifact", "one.so", "inspect", "one.so", "--html"),
            ("an expected output", "expected/probabilities.npy", "run", "one.so", *given, "--expected",
             "probabilities=expected/probabilities.npy", "--output-dir"),
            ("the list of labels", "labelled/probabilities.npy", "run", "one.so", *given, "--top", "1", "--labels",
             "labels.txt", "--output-dir"),
            (costs, "costs.json", "pipeline", "split", DIGITS, *ONE, *by_cost, "costs.json", "-o"),
            *(("the pipeline", "pipe.so", *words) for words in pipelines),
        ):  # fmt: skip
            before = (self.folder / output).read_bytes()
            last = str(Path(output).parent) if words[-1] == "--output-dir" else output
            self.fails(USER, f"cannot write '{output}': {what} is read from it; name another file", *words, last)
            self.assertEqual((self.folder / output).read_bytes(), before)
        for verb in ("run", "bench"):
            trace = ("pipeline", verb, "pipe.so", *given, "--trace", "one.npy")
            self.fails(USER, "cannot write 'one.npy': an input is read from it", *trace)
        trace = ("pipeline", "run", "pipe.so", *given, "--trace", "t.json", "--output-dir", "expected")
        self.call(*trace, check=True)

    def test_no_output_overwrites_another(self) -> None:
        def fail(pattern: str, *words: object) -> None:
            self.fails(USAGE, pattern, *words)
            self.assertFalse((self.folder / "both").exists())

        (self.folder / "alias").symlink_to("both")
        explain = ("explain", DIGITS, *ONE)
        fail("--html and --dot name one file, './both'", *explain, "--html", "both", "--dot", "./both")
        fail("--html and --save-plan name one file, 'alias'", *explain, "--html", "both", "--save-plan", "alias")
        fail("--dot and --save-plan name one file, 'both'", *explain, "--dot", "both", "--save-plan", "both")
        fail("--html and --dot name one file, 'both'", "inspect", "one.so", "--html", "both", "--dot", "both")
        self.call(*explain, "--html", "/dev/null", "--dot", "/dev/null", check=True)
        (self.folder / "linked").mkdir()
        (self.folder / "linked/a.npy").symlink_to("b.npy")
        (self.folder / "two.onnx").write_bytes(onnx_model(b"a", b"b"))
        self.call("compile", "two.onnx", "-o", "two.so", check=True)
        run = ("run", "two.so", "--input", "x=pair.npy", "--output-dir", "linked")
        self.fails(USAGE, "--output-dir: 'linked/b.npy' would be written twice", *run)
        self.call("pipeline", "split", "two.onnx", "-o", "two_pipe.so", "--estimate", check=True)
        trace = ("pipeline", "run", "two_pipe.so", "--output-dir", "traced", "--trace", "traced/a.npy")
        self.fails(USAGE, "--trace and --output-dir name one file, 'traced/a.npy'", *trace)

    def test_the_files_beside_a_model_are_not_overwritten(self) -> None:
        entry = field(1, b"location") + field(2, b"beside.bin")
        operand = field(1, 2) + field(2, 1) + field(8, b"w") + field(14, 1) + field(13, entry)
        (self.folder / "beside.onnx").write_bytes(onnx_model(b"y", operand=operand))
        (self.folder / "beside.bin").write_bytes(struct.pack("<2f", 3, 5))
        for words in (("bench", "--html"), ("profile", "--trace"), ("explain", "--html"), ("profile", "-o")):
            verb, option = words
            self.fails(USER, "the model is read from it", verb, "beside.onnx", option, "beside.bin")
        self.assertEqual((self.folder / "beside.bin").read_bytes(), struct.pack("<2f", 3, 5))

    def test_the_client_in_c_says_what_the_model_takes(self) -> None:
        client = os.environ.get("HEADRACE_C_CLIENT")
        if not client:
            raise unittest.SkipTest("HEADRACE_C_CLIENT names no program")
        run = [client, "./one.so", "--in", "1,1,8,8", "--out"]
        right = subprocess.run([*run, "1,10"], cwd=self.folder, capture_output=True, text=True, timeout=60)
        self.assertEqual((right.returncode, right.stderr), (0, ""))
        wrong = subprocess.run([*run, "1,9"], cwd=self.folder, capture_output=True, text=True, timeout=60)
        self.assertNotEqual(wrong.returncode, 0)
        self.assertIn("is not the model's; headrace inspect ./one.so shows them", wrong.stderr)

    def test_names_that_are_no_text(self) -> None:
        # Messages have escapes for the bytes; JSON, which is text, has a sign in their place.
        name = b"caf\xe9.so"
        for arguments in (("inspect", name), ("compile", name.replace(b".so", b".relay"), "-o", "x.so")):
            done = subprocess.run([self.program, *arguments], cwd=self.folder, capture_output=True, timeout=120)
            self.assertEqual((done.returncode, done.stdout), (USER, b""))
            self.assertIn(b"caf\\xe9", done.stderr)
            self.assertNotIn(b"defect", done.stderr)
        (self.folder / os.fsdecode(name)).write_bytes((self.folder / "one.so").read_bytes())
        done = subprocess.run(
            [self.program, "inspect", name, "--json"], cwd=self.folder, capture_output=True, timeout=120
        )
        self.assertEqual(json.loads(done.stdout)["file"], "caf\ufffd.so")

    def test_external_data(self) -> None:
        def model(location: bytes, *more: bytes) -> bytes:
            entries = (field(1, b"location") + field(2, location), *more)
            tensor = field(1, 2) + field(2, 1) + field(8, b"w") + field(14, 1)
            return onnx_model(b"y", operand=tensor + b"".join(field(13, entry) for entry in entries))

        def fails(pattern: str, location: bytes, *more: bytes) -> None:
            (self.folder / "outside.onnx").write_bytes(model(location, *more))
            self.fails(USER, "tensor 'w': " + pattern, "compile", "outside.onnx", "-o", "outside.so")

        fails("its data lies outside of the model file: .*'./w.bin': No such file .*; put the file there", b"w.bin")
        fails("its external data is at '/etc/passwd'; only a path below the model's folder", b"/etc/passwd")
        fails("its external data is at 'a/../../w.bin'; only", b"a/../../w.bin")
        (self.folder / "w.bin").write_bytes(bytes(12))
        fails(
            "its external data is bytes 8 to 16 of 'w.bin', which has 12",
            b"w.bin",
            field(1, b"offset") + field(2, b"8"),
        )
        fails("its external data has 4 bytes of 'w.bin'", b"w.bin", field(1, b"length") + field(2, b"4"))
        (self.folder / "w.bin").write_bytes(bytes(8))
        os.link(self.folder / "w.bin", self.folder / "same.so")
        (self.folder / "outside.onnx").write_bytes(model(b"w.bin"))
        for output in ("w.bin", "same.so"):
            self.fails(USER, "the model is read from it", "compile", "outside.onnx", "-o", output)

    def test_a_model_that_is_cut_while_it_is_compiled(self) -> None:
        entry = field(1, b"location") + field(2, b"cut.bin")
        operand = field(1, 2) + field(2, 1) + field(8, b"w") + field(14, 1) + field(13, entry)
        (self.folder / "cut.onnx").write_bytes(onnx_model(b"y", operand=operand))
        (self.folder / "cut.bin").write_bytes(struct.pack("<2f", 3, 5))
        self.call("compile", "cut.onnx", "-o", "whole.so", check=True)
        pipe = self.folder / "stages/00_program.relay"
        pipe.parent.mkdir()
        os.mkfifo(pipe)
        command = [str(self.program), "compile", "cut.onnx", "-o", "cut.so", "--dump-ir", "stages"]
        with subprocess.Popen(command, cwd=self.folder, stderr=subprocess.PIPE, text=True) as running:
            # The model has been read when the program opens the pipe.
            with pipe.open() as text:
                for file in ("cut.onnx", "cut.bin"):
                    (self.folder / file).write_bytes(b"")
                self.assertIn("add", text.read())
            self.assertEqual(running.wait(timeout=60), OK, running.stderr.read())
        self.assertEqual((self.folder / "cut.so").read_bytes(), (self.folder / "whole.so").read_bytes())

    def test_what_is_not_written_has_its_reason(self) -> None:
        (self.folder / "taken/probabilities.npy").mkdir(parents=True)
        pattern = "cannot write 'taken/probabilities.npy': it is a folder"
        self.fails(USER, pattern, "run", "one.so", "--input", "x=x.npy", "--output-dir", "taken")
        with Path("/dev/full").open("w") as full:
            for option in ("--help", "--version"):
                done = subprocess.run([str(self.program), option], stdout=full, stderr=subprocess.PIPE, timeout=60)
                self.assertEqual(done.returncode, USER, option)
                self.assertIn(b"the standard output cannot be written to", done.stderr)

        done = self.compile_with_files_up_to(65536)
        self.assertEqual(done.returncode, USER, done.stderr)
        self.assertRegex(done.stderr, "'limited.so'.*: File too large")
        self.assertEqual(list(self.folder.glob("limited.so*")), [])
        stage = self.folder / "limited/00_program.relay"
        stage.parent.mkdir()
        stage.write_text("of another run")
        done = self.compile_with_files_up_to(16, "--dump-ir", "limited")
        self.assertEqual(done.returncode, USER, done.stderr)
        self.assertRegex(done.stderr, "cannot write 'limited/00_program.relay': File too large")
        self.assertEqual(stage.read_text(), "of another run")
        self.assertEqual(list(stage.parent.iterdir()), [stage])

    def compile_with_files_up_to(self, limit: int, *more: str) -> subprocess.CompletedProcess:
        """A compile whose files cannot be larger, as on a disk that is nearly full."""

        def little_room() -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        command = [str(self.program), "compile", str(DIGITS), "-o", "limited.so", *ONE, *more]
        return subprocess.run(
            command, cwd=self.folder, stderr=subprocess.PIPE, text=True, timeout=60, preexec_fn=little_room
        )

    def test_a_declared_output_is_held_to_its_word(self) -> None:
        (self.folder / "liar.onnx").write_bytes(onnx_model(b"y", declared_dtype=7))
        pattern = r"output 'y' is declared int64 \(2\), but the model computes float32 \(2\)"
        self.fails(USER, pattern, "compile", "liar.onnx", "-o", "never.so")


class NamesTest(CliTest):
    """Names of tensors that would change a terminal are escaped wherever they are shown."""

    def escaped(self, *arguments: object, code: int = OK) -> str:
        """The output of a call: one of both streams, without control characters but newlines."""
        command = [str(self.program), *map(str, arguments)]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, timeout=60)
        self.assertEqual(done.returncode, code, done.stderr)
        said = (done.stdout if code in (OK, MISMATCH) else done.stderr).decode()
        self.assertEqual([c for c in said if (ord(c) < 32 and c != "\n") or 126 < ord(c) < 160], [], said)
        return said

    def test_they_are_escaped(self) -> None:
        source, output = b"in\x1b[31m\ninput  y", b"out\x1b]0;title\x07\n\xc2\x9b1m"
        (self.folder / "odd.onnx").write_bytes(onnx_model(output, source=source))
        self.call("compile", "odd.onnx", "-o", "odd.so", check=True)
        source, output = r"in\x1b[31m\x0ainput  y", r"out\x1b]0;title\x07\x0a\u009b1m"
        inspected = self.escaped("inspect", "odd.so", "--steps").splitlines()
        self.assertIn(f"  input  {source}: float32 2", inspected)
        self.assertIn(f"  output {output}: float32 2", inspected)
        self.assertIn(f"input '{source}' (float32 2) is missing", self.escaped("run", "odd.so", code=USER))
        wrong = self.escaped("run", "odd.so", "--input", "y=pair.npy", code=USER)
        self.assertIn(f"no input 'y'; it has {source} (float32 2)", wrong)
        given = ("--input", "in\x1b[31m\ninput  y=pair.npy")
        self.assertIn(f"\n{output}  float32 2", self.escaped("run", "odd.so", *given))
        self.assertIn(f"\n{output}  float32  0", self.escaped("verify", "odd.onnx", *given))
        self.escaped("bench", "odd.so", "--rounds", "1", "--steps")
        self.escaped("compile", "odd.onnx", "-o", "odd.so", "--shape", "in\x1b=2", code=USER)
        named = ("run", "odd.so", "--output-dir", "odd", *given, "--json")
        (report,) = json.loads(self.call(*named, check=True).stdout)["outputs"]
        self.assertTrue((self.folder / report["file"]).is_file())

    def test_files_and_options(self) -> None:
        for arguments in (
            ("inspect", "no\x1b.so"),
            ("run", "one.so", "--input", "x=no\x1b.npy"),
            ("inspect", b"\xff.so"),
        ):
            said = self.escaped(*(os.fsdecode(word) for word in arguments), code=USER)
            self.assertRegex(said, r"no\\x1b|\\xff")
        self.assertIn(r"'fr\x1bob'", self.escaped("fr\x1bob", code=USAGE))

    def test_names_that_files_cannot_have(self) -> None:
        (self.folder / "long.onnx").write_bytes(onnx_model(b"y", b"z" * 300))
        self.call("compile", "long.onnx", "-o", "long.so", check=True)
        run = ("run", "long.so", "--input", "x=pair.npy")
        pattern = (
            "output '(z{40})...' would have a name of 304 bytes, more than the 255 .*; rename the output in the model"
        )
        self.fails(USER, pattern, *run, "--output-dir", "long")
        self.assertEqual(list((self.folder / "long").iterdir()), [])
        self.call(*run, check=True)

    def test_the_longest_name_that_a_file_can_have(self) -> None:
        (self.folder / "long.onnx").write_bytes(onnx_model(b"y" * 251))
        self.call("compile", "long.onnx", "-o", "long.so", check=True)
        self.call("run", "long.so", "--input", "x=pair.npy", "--output-dir", "longest", check=True)
        self.assertEqual([file.name for file in (self.folder / "longest").iterdir()], ["y" * 251 + ".npy"])


class WholeFilesTest(CliTest):
    """`run --output-dir` writes all outputs or none."""

    def setUp(self) -> None:
        self.length = 100  # encodes in one byte
        (self.folder / "two.onnx").write_bytes(onnx_model(b"a", b"b", length=self.length))
        (self.folder / "in.npy").write_bytes(self.array(range(1, self.length + 1)))
        self.call("compile", "two.onnx", "-o", "two.so", check=True)

    def array(self, values: Iterable[float]) -> bytes:
        """A .npy file of such a length."""
        return npy("<f4", (self.length,), struct.pack(f"<{self.length}f", *values))

    def files(self, folder: Path) -> dict[str, bytes]:
        """The files in the folder, by name."""
        return {file.name: file.read_bytes() for file in folder.iterdir()}

    def run_within(self, folder: Path, limits: Callable[[], None], *arguments: str) -> subprocess.CompletedProcess:
        """A run that writes to the folder, in a process with such limits."""
        what = arguments or ("two.so", "--input", "x=in.npy")
        command = [str(self.program), "run", *what, "--output-dir", str(folder)]
        return subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, timeout=60, preexec_fn=limits, check=False
        )

    def stays(self, folder: Path, limits: Callable[[], None], pattern: str, *arguments: str) -> None:
        """The run fails and changes nothing in the folder."""
        before = self.files(folder)
        self.is_failure(self.run_within(folder, limits, *arguments), USER, pattern)
        self.assertEqual(self.files(folder), before)

    def test_they_are_right(self) -> None:
        folder = self.folder / "right"
        self.assertEqual(self.run_within(folder, lambda: None).returncode, OK)
        expected = self.array(-value for value in range(1, self.length + 1))
        data = {name: file[-4 * self.length :] for name, file in self.files(folder).items()}
        self.assertEqual(data, dict.fromkeys(("a.npy", "b.npy"), expected[-4 * self.length :]))

    def test_a_file_that_grows_too_large(self) -> None:
        # The program itself is read whole, so the limit is above its size and below the output's.
        limit, length = 200_000, 100_000

        def little_room() -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        text = f'def @main() {{ zeros(shape=[{length}], dtype="float32") }}\n'
        (self.folder / "large.relay").write_text('#[version = "0.0.5"]\n' + text)
        self.call("compile", "large.relay", "-o", "large.so", check=True)
        self.assertLess((self.folder / "large.so").stat().st_size, limit)
        folder = self.folder / "little"
        folder.mkdir()
        (folder / "output0.npy").write_bytes(b"from before")
        pattern = r"cannot write '.*/output0.npy': File too large; make room there or name another folder"
        self.stays(folder, little_room, pattern, "large.so")

    def test_a_full_disk(self) -> None:
        folder = self.folder / "disk"
        folder.mkdir()
        # Three pages: those of both old files, and one more, which the first new file takes.
        mount = ["mount", "-t", "tmpfs", "-o", f"size={3 * os.sysconf('SC_PAGE_SIZE')}", "tmpfs", str(folder)]
        if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
            self.skipTest("only root may mount a small disk")
        try:
            for name in ("a.npy", "b.npy"):
                (folder / name).write_bytes(b"from before")
            self.stays(folder, lambda: None, r"cannot write '.*/b.npy': No space left on device; make room")
            (folder / "b.npy").unlink()
            (folder / "a.npy").unlink()
            self.assertEqual(self.run_within(folder, lambda: None).returncode, OK)
        finally:
            subprocess.run(["umount", str(folder)], check=True)

    def test_a_folder_that_is_read_only(self) -> None:
        # Root may write anywhere, until it gives that up.
        def drop_rights() -> None:
            libc = ctypes.CDLL(None)
            for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
                libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP

        folder = self.folder / "read_only"
        folder.mkdir()
        (folder / "a.npy").write_bytes(b"from before")
        folder.chmod(0o555)
        try:
            probe = subprocess.run(["touch", str(folder / "probe")], capture_output=True, preexec_fn=drop_rights)
            if probe.returncode == 0:
                (folder / "probe").unlink()
                self.skipTest("this user may write to every folder")
            self.stays(
                folder, drop_rights, r"cannot write '.*/a.npy': Permission denied; name a file in a folder .* may"
            )
            inner = self.run_within(folder / "inner", drop_rights)
            self.is_failure(inner, USER, r"--output-dir: cannot make '.*/inner': Permission denied")
        finally:
            folder.chmod(0o755)


class SideFileTest(CliTest):
    """Weights beside the artifact."""

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        writer = os.environ.get("HEADRACE_WRITE_SPLIT_ARTIFACT")
        if not writer:
            raise unittest.SkipTest("HEADRACE_WRITE_SPLIT_ARTIFACT names no program")
        subprocess.run([writer, str(DIGITS), "split.so"], cwd=cls.folder, check=True, timeout=60)

    def test_inspect_shows_it(self) -> None:
        data = (self.folder / "split.so.safetensors").read_bytes()
        side_file = json.loads(self.call("inspect", "split.so", "--json", check=True).stdout)["side_file"]
        self.assertEqual(side_file["name"], "split.so.safetensors")
        self.assertEqual(side_file["bytes"], len(data))
        self.assertRegex(side_file["xxh3_128"], r"\A[0-9a-f]{32}\Z")
        text = self.call("inspect", "split.so", check=True).stdout
        self.assertIn("weights in split.so.safetensors, ", text)
        self.assertNotIn("external module of", text)

    def test_it_is_safetensors(self) -> None:
        data = (self.folder / "split.so.safetensors").read_bytes()
        (length,) = struct.unpack_from("<Q", data)
        header = json.loads(data[8 : 8 + length])
        self.assertEqual(header.pop("__metadata__"), {"format": "headrace.weights", "version": "1"})
        places = sorted(row["data_offsets"] for row in header.values())
        self.assertEqual([begin for begin, _ in places], [0, *(end for _, end in places[:-1])])
        self.assertEqual(places[-1][1], len(data) - 8 - length)

    def test_it_runs_as_one_file_does(self) -> None:
        for name in ("split", "one"):
            self.call("run", f"{name}.so", "--input", "x=x.npy", "--output-dir", name, check=True)
        one, split = ((self.folder / name / "probabilities.npy").read_bytes() for name in ("one", "split"))
        self.assertEqual(one, split)

    def test_it_is_not_overwritten(self) -> None:
        side = self.folder / "split.so.safetensors"
        before = side.read_bytes()
        for words in (
            ("inspect", "split.so", "--dot"),
            ("bench", "split.so", "--html"),
            ("profile", "split.so", "--trace"),
        ):
            self.fails(USER, "the artifact is read from it; name another file", *words, side.name)
        self.assertEqual(side.read_bytes(), before)

    def test_it_must_be_there_and_whole(self) -> None:
        side = self.folder / "split.so.safetensors"
        data = side.read_bytes()
        run = ("run", "split.so", "--input", "x=x.npy")
        side.unlink()
        self.fails(USER, "no file 'split.so.safetensors'; it holds the artifact's weights and must lie beside", *run)
        self.call("inspect", "split.so", check=True)
        side.write_bytes(data[:-1])
        self.fails(USER, f"has {len(data) - 1} bytes, the artifact that it belongs to says {len(data)}", *run)
        side.write_bytes(data[:-1] + bytes((data[-1] ^ 1,)))
        self.fails(USER, "'split.so.safetensors' is damaged or of another compilation", *run)
        side.write_bytes(data)
        self.call(*run, check=True)


class MemoryTest(CliTest):
    def compile_within(self, address_bytes: int) -> subprocess.CompletedProcess:
        """A compile in so much address space."""
        command = [str(self.program), "compile", str(DIGITS), "-o", "small.so", *ONE]
        limits = (address_bytes, resource.getrlimit(resource.RLIMIT_AS)[1])
        return subprocess.run(
            command,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=60,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limits),
        )

    def test_a_plugin_that_memory_does_not_hold_is_not_missing(self) -> None:
        if self.compile_within(8 << 30).returncode != OK:
            self.skipTest("sanitizers need more addresses than there are")
        # From what starts the program to what loads the code generator.
        for megabytes in range(30, 1000, 10):
            done = self.compile_within(megabytes << 20)
            self.assertNotIn("install the package", done.stderr)
            if "cannot be loaded" in done.stderr:
                break
        self.assertEqual(done.returncode, USER)
        self.assertRegex(
            done.stderr, "libheadrace_llvm.so' exists but cannot be loaded: .*; allow the process more memory"
        )


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__], "cli_files"))
