"""Tests how examples/demo.py judges results, on steps made here. Standard library only."""

import contextlib
import io
import struct
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))
import demo


class DemoTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.program = self.folder / "headrace"
        self.program.write_text("#!/bin/sh\n")

    def run_demo(self, *arguments, **steps):
        with mock.patch.object(demo, "STEPS", steps), contextlib.redirect_stdout(io.StringIO()) as out:
            code = demo.main([*arguments, f"--program={self.program}", f"--folder={self.folder / 'out'}"])
        return code, out.getvalue()

    def test_all_is_well(self):
        row = demo.Row("a", "accuracy", "99 %", ">= 98 %", True)
        code, text = self.run_demo(a=lambda context: context.say("working") or [row])
        self.assertEqual(code, 0)
        self.assertIn("[1/1] a: working\n", text)
        self.assertRegex(text, r"a +accuracy +99 % +>= 98 % +ok\n")

    def test_a_result_that_is_off_is_exit_code_1(self):
        code, text = self.run_demo(a=lambda context: [demo.Row("a", "accuracy", "9 %", ">= 98 %", False)])
        self.assertEqual(code, 1)
        self.assertRegex(text, r">= 98 % +OFF\n")

    def test_a_step_that_is_left_out_is_said_and_no_failure(self):
        def without(context):
            raise demo.LeftOutError("no PyPI")

        code, text = self.run_demo(a=without, b=lambda context: [demo.Row("b", "x", "1", "1", True)])
        self.assertEqual(code, 0)
        self.assertIn("[1/2] a: left out: no PyPI", text)
        self.assertRegex(text, r"b +x +1 +1 +ok")

    def test_a_step_that_fails_does_not_stop_the_others(self):
        def fails(context):
            raise demo.DemoError("it broke")

        code, text = self.run_demo(a=fails, b=lambda context: [demo.Row("b", "x", "1", "1", True)])
        self.assertEqual(code, 1)
        self.assertIn("a: FAILED: it broke", text)
        self.assertRegex(text, r"b +x +1 +1 +ok")

    def test_the_program_s_message_arrives(self):
        self.program.write_text("#!/bin/sh\necho 'headrace: no such thing' >&2; exit 3\n")
        self.program.chmod(0o755)
        code, text = self.run_demo(a=lambda context: context.headrace("run", "x"))
        self.assertEqual(code, 1)
        self.assertIn("failed with 3: headrace: no such thing", text)

    def test_bad_command_lines(self):
        with contextlib.redirect_stderr(io.StringIO()) as errors:
            with self.assertRaises(SystemExit) as stop:
                self.run_demo("frob")
            self.assertEqual(stop.exception.code, 2)
            self.program.unlink()
            self.assertEqual(self.run_demo()[0], 4)
        self.assertIn("./dev demo builds it", errors.getvalue())

    def test_digits_are_drawn_with_what_was_read(self):
        text = demo.draw_digits((2, 1, 1, 2), [0, 1, 1, 0], found=[3, 4], labels=[3, 5])
        self.assertEqual(text.splitlines()[-1], "read: 3  read: 4, is 5")

    def test_npy_files_are_read(self):
        header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }".ljust(117) + b"\n"
        path = self.folder / "a.npy"
        path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + struct.pack("<2f", 1, 2))
        shape, elements = demo.read_npy(path)
        self.assertEqual((shape, list(elements)), ((1, 2), [1, 2]))

    def test_small_things(self):
        self.assertEqual(demo.classes_of((2, 3), [0.1, 0.7, 0.2, 0.5, 0.3, 0.2]), [1, 0])
        self.assertEqual(demo.kernel_name("nn_softmax_ca65d8241b0f26e9"), "nn_softmax")
        self.assertEqual(demo.kernel_name("nn_conv2d_add"), "nn_conv2d_add")
        self.assertEqual([demo.show_seconds(x) for x in (2, 0.0125, 14e-6)], ["2 s", "12.5 ms", "14 us"])


if __name__ == "__main__":
    unittest.main()
