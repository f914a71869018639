#!/usr/bin/env python3
"""Images as inputs of `run`, `verify`, `bench`, `profile` and pipelines. Expected elements are computed here from the
pixels that each test draws into PNG files by zlib alone. Standard library only; without Pillow only its absence is
tested.

tests/cli/test_cli_images.py --program headrace [--junit FILE] [TEST ...]
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib
from pathlib import Path
from typing import Any, ClassVar

from test_cli import MISSING, OK, ROOT, USAGE, USER, CliTest, main, npy

# An identity for each type of an input that a test needs.
INPUTS = {
    "nchw": "(1, 3, 4, 6), float32",
    "nhwc": "(1, 4, 6, 3), float32",
    "chw": "(3, 4, 6), float32",
    "grey": "(1, 1, 4, 6), float32",
    "bytes": "(1, 3, 4, 6), uint8",
    "half": "(1, 3, 4, 6), float16",
    "either": "(1, 3, 4, 3), float32",
    "square": "(1, 3, 4, 4), float32",
    "two": "(1, 1, 1, 2), float32",
    "four": "(1, 4, 4, 6), float32",
    "batch": "(2, 3, 4, 6), float32",
    "flat": "(3, 24), float32",
    "integers": "(1, 3, 4, 6), int32",
    "nothing": "(1, 3, 0, 6), float32",
}
GREY, RGB, PALETTE, GREY_ALPHA, RGBA = 0, 2, 3, 4, 6  # colour types of PNG (ISO/IEC 15948, 11.2.2)
COLOURS = [[(40 * y + x, 100 + 20 * x - y, 255 - 9 * x - 50 * y) for x in range(6)] for y in range(4)]
# JPEG files of 8 x 8 pixels: of the grey 128, and of one colour in CMYK.
GREY_JPEG = (
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABALDA4MChAODQ4SERATGCgaGBYWGDEjJR0oOjM9PDkzODdASFxOQERXRTc4UG1RV19i"
    "Z2hnPk1xeXBkeFxlZ2P/wAALCAAIAAgBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAAAP/EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAI"
    "AQEAAD8AP//Z"
)
CMYK_JPEG = (
    "/9j/7gAOQWRvYmUAZAAAAAAA/9sAQwAQCwwODAoQDg0OEhEQExgoGhgWFhgxIyUdKDozPTw5Mzg3QEhcTkBEV0U3OFBtUVdfYmdo"
    "Zz5NcXlwZHhcZWdj/8AAFAgACAAIBEMRAE0RAFkRAEsRAP/EABQAAQAAAAAAAAAAAAAAAAAAAAH/xAAUEAEAAAAAAAAAAAAAAAAA"
    "AAAA/9oADgRDAE0AWQBLAAA/AAAP/9k="
)
Pixels = list[list[tuple[int, ...]]]


def chunk(name: bytes, data: bytes) -> bytes:
    """A chunk of a PNG file."""
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(pixels: Pixels, colour: int, *chunks: bytes, depth: int = 8, size: tuple[int, int] | None = None) -> bytes:
    """The bytes of a PNG file; `chunks` stand before the pixels, `size` is what it claims, else it is the true one."""
    rows = b"".join(b"\x00" + b"".join(v.to_bytes(depth // 8) for pixel in row for v in pixel) for row in pixels)
    width, height = size or (len(pixels[0]), len(pixels))
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    parts = (chunk(b"IHDR", header), *chunks, chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def single(value: float) -> float:
    """The float32 nearest to a number."""
    return struct.unpack("<f", struct.pack("<f", value))[0]


def planes(pixels: Pixels) -> list[int]:
    """The elements of the pixels with the channels first."""
    return [pixel[c] for c in range(len(pixels[0][0])) for row in pixels for pixel in row]


def a_python(what: str) -> str | None:
    """A Python that can import these modules."""
    python = os.environ.get("HEADRACE_PYTHON", str(ROOT / ".venv/bin/python"))
    with contextlib.suppress(OSError):
        if (
            subprocess.run([python, "-c", f"import {what}"], capture_output=True, timeout=120, check=False).returncode
            == 0
        ):
            return python
    return None


class ImagesTest(CliTest):
    """A program for each input, and files of images."""

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        for name, kind in INPUTS.items():
            text = f'#[version = "0.0.5"]\ndef @main(%x: Tensor[{kind}]) {{ reshape(%x, newshape=[-1]) }}\n'
            (cls.folder / f"{name}.relay").write_text(text)
            cls.call("compile", f"{name}.relay", "-o", f"{name}.so", check=True)
        cls.write("photo.png", png(COLOURS, RGB))

    @classmethod
    def write(cls, name: str, data: bytes) -> str:
        """Writes a file; returns the argument of --input."""
        (cls.folder / name).write_bytes(data)
        return f"x={name}"


class WithoutPillowTest(ImagesTest):
    def test_what_is_missing_is_said(self) -> None:
        (self.folder / "python").write_text("#!/bin/sh\necho \"missing No module named 'PIL'; install it: PYTHON\"\n")
        (self.folder / "python").chmod(0o755)
        cases = {
            str(self.folder / "python"): "images are decoded by Pillow: No module named 'PIL'; install it: PYTHON\n",
            "/bin/false": "'/bin/false -m headrace.image_input', which did not start: install the Python package "
            "headrace and Pillow, or name their Python in HEADRACE_PYTHON\n",
            "/no/python": "cannot start '/no/python', which decodes images; name a Python in HEADRACE_PYTHON\n",
        }
        words = ("--input", "x=photo.png")
        for python, text in cases.items():
            for verb, file in (
                ("run", "nchw.so"),
                ("verify", "nchw.relay"),
                ("bench", "nchw.so"),
                ("profile", "nchw.so"),
            ):
                with tempfile.TemporaryDirectory() as temporary:
                    self.fails(MISSING, text, verb, file, *words, HEADRACE_PYTHON=python, TMPDIR=temporary)
                    self.assertEqual(list(Path(temporary).iterdir()), [])

    def test_it_is_missed_before_the_work(self) -> None:
        self.fails(
            MISSING, "images are decoded", "verify", "no.onnx", "-i", "x=photo.png", HEADRACE_PYTHON="/bin/false"
        )

    def test_a_python_without_pillow(self) -> None:
        python = a_python("headrace.peer")
        if python is None:
            self.skipTest("no Python here has the package headrace")
        (self.folder / "without").mkdir()
        (self.folder / "without/PIL.py").write_text("raise ModuleNotFoundError(\"No module named 'PIL'\")\n")
        path = os.pathsep.join([str(self.folder / "without"), os.environ.get("PYTHONPATH", "")])
        pattern = rf"No module named 'PIL'; install it: {python} -m pip install pillow\n"
        words = ("run", "nchw.so", "--input", "x=photo.png")
        self.fails(MISSING, pattern, *words, HEADRACE_PYTHON=python, PYTHONPATH=path)


class PillowTest(ImagesTest):
    python: ClassVar[str]

    @classmethod
    def setUpClass(cls) -> None:
        python = a_python("headrace.image_input")
        if python is None:
            raise unittest.SkipTest("no Python here has the package headrace and Pillow")
        super().setUpClass()
        cls.python = python

    @classmethod
    def call(cls, *arguments: object, **more: Any) -> subprocess.CompletedProcess:
        return super().call(*arguments, **({"HEADRACE_PYTHON": getattr(cls, "python", "")} | more))

    def elements(self, program: str, image: str, *arguments: object) -> list[float]:
        """The input's elements in memory order."""
        words = ("run", f"{program}.so", "--input", image, "--values", "1000", "--json", *arguments)
        done = self.call(*words)
        self.assertEqual((done.returncode, done.stderr), (OK, ""))
        return json.loads(done.stdout)["outputs"][0]["values"]

    def refused(self, pattern: str, image: str, *arguments: object, program: str = "nchw", code: int = USER) -> None:
        """The run ends with this error."""
        self.fails(code, pattern, "run", f"{program}.so", "--input", image, *arguments)


class ElementsTest(PillowTest):
    def test_pixels_are_from_0_to_1(self) -> None:
        expected = [single(v / 255) for v in planes(COLOURS)]
        for program in ("nchw", "chw"):
            self.assertEqual(self.elements(program, "x=photo.png"), expected)
        last = [single(v / 255) for row in COLOURS for pixel in row for v in pixel]
        self.assertEqual(self.elements("nhwc", "x=photo.png"), last)
        half = [struct.unpack("<e", struct.pack("<e", v / 255))[0] for v in planes(COLOURS)]
        self.assertEqual(self.elements("half", "x=photo.png"), half)

    def test_uint8_inputs_take_the_pixels(self) -> None:
        self.assertEqual(self.elements("bytes", "x=photo.png"), planes(COLOURS))

    def test_scale_mean_and_std(self) -> None:
        mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
        words = ("--mean", "0.485,0.456,0.406", "--std", "0.229,0.224,0.225")
        expected = [single((p[c] / 255 - mean[c]) / std[c]) for c in range(3) for row in COLOURS for p in row]
        self.assertEqual(self.elements("nchw", "x=photo.png", *words), expected)
        expected = [single((p[c] * 0.5 - 127.5) / 2) for c in range(3) for row in COLOURS for p in row]
        words = ("--scale", "0.5", "--mean", "127.5", "--std", "2")
        self.assertEqual(self.elements("nchw", "x=photo.png", *words), expected)

    def test_channels_in_the_other_order(self) -> None:
        # The mean is in the order of the input's channels: blue first.
        words = ("--channels", "bgr", "--scale", "1", "--mean", "1,2,3")
        expected = [row[x][2 - c] - (1, 2, 3)[c] for c in range(3) for row in COLOURS for x in range(6)]
        self.assertEqual(self.elements("nchw", "x=photo.png", *words), expected)

    def test_the_layout_is_told_where_both_fit(self) -> None:
        pixels: Pixels = [[(10 * y + x, 100 + x, 200 + y) for x in range(3)] for y in range(4)]
        image = self.write("narrow.png", png(pixels, RGB))
        self.refused(
            r"input 'x' \(float32 1x3x4x3\) cannot be an image: .*--layout nchw or nhwc\n", image, program="either"
        )
        self.assertEqual(self.elements("either", image, "--layout", "nchw", "--resize", "none", "--scale", "1"),
                         planes(pixels))  # fmt: skip
        tall: Pixels = [[(x, y, x + y) for x in range(4)] for y in range(3)]
        image = self.write("flat.png", png(tall, RGB))
        self.assertEqual(self.elements("either", image, "--layout", "nhwc", "--resize", "none", "--scale", "1"),
                         [v for row in tall for pixel in row for v in pixel])  # fmt: skip

    def test_grey(self) -> None:
        greys: Pixels = [[(10 * x + 50 * y,) for x in range(6)] for y in range(4)]
        image = self.write("grey.png", png(greys, GREY))
        self.assertEqual(self.elements("grey", image, "--scale", "1"), planes(greys))
        self.assertEqual(self.elements("nchw", image, "--scale", "1"), planes(greys) * 3)
        # ITU-R BT.601, rounded to the nearest grey as Pillow's documentation of convert("L") says.
        expected = [(299 * r + 587 * g + 114 * b) / 1000 for row in COLOURS for r, g, b in row]
        for found, exact in zip(self.elements("grey", "x=photo.png", "--scale", "1"), expected, strict=True):
            self.assertLessEqual(abs(found - exact), 0.51)

    def test_palettes_and_opaque_alpha(self) -> None:
        colours = [(0, 128, 255), (9, 8, 7)]
        places: Pixels = [[((x + y) % 2,) for x in range(6)] for y in range(4)]
        table = chunk(b"PLTE", bytes(v for colour in colours for v in colour))
        image = self.write("palette.png", png(places, PALETTE, table))
        self.assertEqual(self.elements("bytes", image), planes([[colours[p[0]] for p in row] for row in places]))
        image = self.write("opaque.png", png([[(*pixel, 255) for pixel in row] for row in COLOURS], RGBA))
        self.assertEqual(self.elements("bytes", image), planes(COLOURS))

    def test_exif_turns_it_upright(self) -> None:
        # TIFF 6.0: little-endian, one entry: tag 0x112 (orientation), a short, 6: turn by a quarter to the right.
        exif = b"II*\x00\x08\x00\x00\x00\x01\x00" + struct.pack("<HHIHH", 0x112, 3, 1, 6, 0) + bytes(4)
        lying: Pixels = [[COLOURS[x][5 - y] for x in range(4)] for y in range(6)]
        image = self.write("turned.png", png(lying, RGB, chunk(b"eXIf", exif)))
        self.assertEqual(self.elements("bytes", image), planes(COLOURS))

    def test_jpeg(self) -> None:
        for name in ("grey.jpg", "grey.JPEG"):
            image = self.write(name, base64.b64decode(GREY_JPEG))
            self.assertEqual(self.elements("bytes", image), [128] * 72)


class ResizeTest(PillowTest):
    def test_crop_cuts_the_middle_out(self) -> None:
        # 6 x 4 for a square of 4 x 4: a column of each side goes.
        expected = planes([row[1:5] for row in COLOURS])
        self.assertEqual(self.elements("square", "x=photo.png", "--scale", "1"), expected)
        # 16 x 8, twice too large: the triangle below gives a pixel beyond the cut 1/8 of each outer column.
        stripes: Pixels = [[((16, 24, 32) if 4 <= x < 12 else (240, 0, 240)) for x in range(16)] for _ in range(8)]
        image = self.write("stripes.png", png(stripes, RGB))
        expected = [44, 16, 16, 44] * 4 + [21, 24, 24, 21] * 4 + [58, 32, 32, 58] * 4
        self.assertEqual(self.elements("square", image, "--scale", "1"), expected)

    def test_bilinear_with_a_triangle_as_wide_as_the_factor(self) -> None:
        # Four greys become two, so the triangle reaches 2 pixels to each side of 1 and of 3; its weights at the centres
        # 0.5, 1.5, 2.5 of the pixels are as 3 : 3 : 1, and they are scaled to a sum of 1.
        a, b, c, d = 0, 70, 140, 210
        image = self.write("four.png", png([[(a,), (b,), (c,), (d,)]], GREY))
        expected = [(3 * a + 3 * b + c) / 7, (b + 3 * c + 3 * d) / 7]
        self.assertEqual(
            self.elements("two", image, "--scale", "1", "--resize", "stretch", "--layout", "nchw"), expected
        )

    def test_stretch_keeps_all(self) -> None:
        halves: Pixels = [[((0, 0, 0) if x < 8 else (255, 255, 255)) for x in range(16)] for _ in range(4)]
        image = self.write("halves.png", png(halves, RGB))
        row = self.elements("square", image, "--resize", "stretch")[:4]
        self.assertEqual((row[0], row[3]), (0, 1))
        self.assertLess(row[1], 0.25)

    def test_none_takes_only_its_size(self) -> None:
        self.assertEqual(self.elements("bytes", "x=photo.png", "--resize", "none"), planes(COLOURS))
        pattern = "has 6 x 4 pixels, but the input takes 4 x 4; leave out --resize none"
        self.refused(pattern, "x=photo.png", "--resize", "none", program="square")


class RefusedTest(PillowTest):
    def test_files(self) -> None:
        whole = png(COLOURS, RGB)
        wide: Pixels = [[(257 * v for v in pixel) for pixel in row] for row in COLOURS]
        clear: Pixels = [[(*pixel, 255 if pixel[0] else 254) for pixel in row] for row in COLOURS]
        table = chunk(b"PLTE", bytes(6)) + chunk(b"tRNS", b"\x80\xff")
        cases = {
            "text.png": (b"not an image\n", "it is not a PNG or JPEG image that can be read"),
            "empty.png": (b"", "it is not a PNG or JPEG image that can be read"),
            "gif.png": (b"GIF89a\x01\x00\x01\x00\x00\x00\x00;", "it is not a PNG or JPEG image that can be read"),
            "cut.png": (whole[:-30], "it is damaged: "),
            "cut.jpg": (base64.b64decode(GREY_JPEG)[:-12], "it is damaged: "),
            "deep.png": (png(wide, RGB, depth=16), "its channels have 16 bits; save it with 8"),
            "deep_grey.png": (png([[(600 * x,) for x in range(6)]] * 4, GREY, depth=16), "its channels have 16 bits"),
            "cmyk.jpg": (base64.b64decode(CMYK_JPEG), "its colours are CMYK; save it as RGB or grey"),
            "clear.png": (png(clear, RGBA), "some of its pixels are transparent; save it with a background"),
            "veil.png": (png([[(9, 128)] * 6] * 4, GREY_ALPHA), "some of its pixels are transparent"),
            "hole.png": (png([[(0,)] * 6] * 4, PALETTE, table), "some of its pixels are transparent"),
            "bomb.png": (png([[(0,)]], GREY, size=(50000, 50000)), "has 50000 x 50000 pixels, more than 100 million"),
        }
        for name, (data, text) in cases.items():
            image = self.write(name, data)
            self.refused(rf"'{name}', for input 'x' \(float32 1x3x4x6\): .*{text}", image)
        self.refused("'no.png': No such file", "x=no.png")
        self.refused("no input 'y'; it has x", "y=photo.png")

    def test_inputs(self) -> None:
        cases = {
            "flat": "it has 2 dimensions, not 3 or 4",
            "batch": "its batch is not 1; make a .npy file with the images of the batch",
            "four": "no dimension is 1 or 3 channels",
            "integers": "pixels are given to inputs of floats or of uint8",
            "nothing": "it has no elements",
        }
        for program, text in cases.items():
            self.refused(rf"input 'x' \(.*\) cannot be an image: {text}", "x=photo.png", program=program)
        text = "no dimension is 1 or 3 channels by --layout nhwc"
        self.refused(text, "x=photo.png", "--layout", "nhwc")

    def test_options(self) -> None:
        def wrong(pattern: str, *arguments: object, program: str = "nchw") -> None:
            self.refused(pattern, "x=photo.png", *arguments, program=program, code=USAGE)

        wrong(r"--mean: 2 values are given, but input 'x' \(float32 1x3x4x6\) has 3 channels\n", "--mean", "0.1,0.2")
        wrong("--std: 3 values are given, but .* has 1 channel\n", "--std", "1,2,3", program="grey")
        # Their number is wrong whatever their size: 2 would be a mean of pixels from 0 to 255.
        wrong("--mean: 2 values are given, but .* has 1 channel\n", "--mean", "1,2", program="grey")
        wrong("--mean: '0.1;0.2' must be numbers with commas between", "--mean", "0.1;0.2")
        wrong("--mean: 'nan' must be numbers", "--mean", "nan")
        wrong("--std: '1,0,1' has a number that is not above 0", "--std", "1,0,1")
        wrong(
            "--mean: 123.675 is a mean of pixels from 0 to 255, .*; add --scale 1\n", "--mean", "123.675,116.28,103.53"
        )
        wrong(
            "--scale, --mean and --std are for inputs of floats, .* is uint8 1x3x4x6", "--mean", "0.5", program="bytes"
        )
        wrong("--channels: input .* has one channel, which is grey", "--channels", "rgb", program="grey")
        wrong("there is no layout 'hwc'; there is nchw, nhwc", "--layout", "hwc")
        wrong("there is no rule 'fit'; there is crop, stretch, none", "--resize", "fit")
        wrong("there is no order of channels 'grb'", "--channels", "grb")
        wrong("'-1' is not a number of 0 or more", "--scale=-1")
        (self.folder / "array.npy").write_bytes(npy("<f4", (1, 3, 4, 6), bytes(288)))
        for words in (("--mean", "0.5"), ("--std", "2"), ("--scale", "1"), ("--layout", "nchw"), ("--resize", "crop")):
            pattern = f"{words[0]}: is for images; give one, as in --input x=photo.png"
            self.fails(USAGE, pattern, "run", "nchw.so", "--input", "x=array.npy", *words)

    def test_images_are_no_expected_outputs(self) -> None:
        pattern = "'photo.png' does not hold a tensor with its shape, which --expected needs"
        self.fails(USER, pattern, "run", "nchw.so", "--random", "--expected", "y=photo.png")


class VerbsTest(PillowTest):
    def test_verify_bench_and_profile_take_images(self) -> None:
        words = ("--input", "x=photo.png", "--mean", "0.5")
        self.assertTrue(json.loads(self.call("verify", "nchw.relay", *words, "--json", check=True).stdout)["ok"])
        self.call("bench", "nchw.so", "--rounds", "2", *words, check=True)
        self.call("profile", "nchw.so", "--rounds", "2", *words, check=True)
        self.fails(USAGE, "--std", "verify", "nchw.relay", *words, "--std", "1,2")

    def test_pipelines_take_images(self) -> None:
        text = "reshape(negative(multiply(%x, 2f)), newshape=[72])"
        (self.folder / "twice.relay").write_text(
            f'#[version = "0.0.5"]\ndef @main(%x: Tensor[(1, 3, 4, 6), float32]) {{ {text} }}\n'
        )
        self.call("pipeline", "split", "twice.relay", "-o", "pipe.so", "--estimate", check=True)
        (self.folder / "names.txt").write_text("".join(f"pixel {i}\n" for i in range(72)))
        image = ("--input", "x=photo.png", "--scale", "1", "--mean", "1,2,3")
        shown = ("--values", "72", "--top", "3", "--labels", "names.txt", "--json")
        done = self.call("pipeline", "run", "pipe.so", *image, *shown)
        self.assertEqual((done.returncode, done.stderr), (OK, ""))
        (output,) = json.loads(done.stdout)["outputs"]
        expected = [-2 * (p[c] - (1, 2, 3)[c]) for c in range(3) for row in COLOURS for p in row]
        self.assertEqual(output["values"], expected)
        order = sorted(range(72), key=lambda i: -expected[i])[:3]
        largest = [{"index": i, "value": expected[i], "label": f"pixel {i}"} for i in order]
        self.assertEqual(output["top"], [largest])
        self.call("pipeline", "bench", "pipe.so", *image, "--requests", "2", "--rounds", "1", check=True)

    def test_what_pipelines_refuse(self) -> None:
        self.call("pipeline", "split", "nchw.relay", "-o", "stage.so", "--estimate", "--stages", "1", check=True)
        words = ("pipeline", "run", "stage.so", "--input", "x=photo.png")
        self.fails(USAGE, "--std: 2 values are given, but .* has 3 channels\n", *words, "--std", "1,2")
        self.fails(USAGE, "--labels: is for the elements that --top shows; add --top 5\n", *words, "--labels", "n.txt")
        (self.folder / "few.txt").write_text("one\ntwo\n")
        wrong = "the file has 2 lines, one for each label, but no output has rows of so many: .* \\(float32 72\\)\n"
        self.fails(USER, wrong, *words, "--top", "1", "--labels", "few.txt", "--requests", "100000000")  # at once
        self.fails(MISSING, "images are decoded", *words, HEADRACE_PYTHON="/bin/false")

    def test_an_input_of_any_value_needs_a_file_with_a_shape(self) -> None:
        # Only a process of Python has such a function, and calls the program's verbs.
        script = """if True:
            import sys
            import headrace
            from headrace import __main__, pipeline

            def twice(x):
                return headrace.nd.array(2 * x.numpy())

            with pipeline.chain([twice]) as pipe:
                pipe.save("any.so")
            headrace.register_func("twice", twice)
            sys.exit(__main__._main(["pipeline", "run", "any.so", *sys.argv[1:]]))
        """
        (self.folder / "three.npy").write_bytes(npy("<f4", (3,), struct.pack("<3f", 1, 2, 3)))
        (self.folder / "pair.txt").write_text("a\nb\n")

        def run(code: int, *arguments: str) -> subprocess.CompletedProcess:
            command = [self.python, "-c", script, *arguments]
            done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=120, check=False)
            self.assertEqual(done.returncode, code, done.stderr)
            return done

        (output,) = json.loads(run(OK, "--input", "x=three.npy", "--json").stdout)["outputs"]
        self.assertEqual(output["values"], [2, 4, 6])
        self.assertIn("'x' takes any value, so it is given: --input x=FILE\n", run(USER).stderr)
        image = run(USER, "--input", "x=photo.png")
        self.assertIn("'photo.png' does not hold a tensor with its shape, which --input needs", image.stderr)
        wrong = run(USER, "--input", "x=three.npy", "--top", "1", "--labels", "pair.txt")
        self.assertIn("but no output has rows of so many: output0 (float32 3)\n", wrong.stderr)

    def test_python_runs_the_same(self) -> None:
        words = ("run", "nchw.so", "--input", "x=photo.png", "--values", "1000", "--json")
        environment = {name: value for name, value in os.environ.items() if name != "HEADRACE_PYTHON"}
        command = [self.python, "-m", "headrace", *words]
        done = subprocess.run(command, cwd=self.folder, env=environment | {"PATH": "/nowhere"}, capture_output=True,
                              text=True, timeout=120, check=True)  # fmt: skip
        values = json.loads(done.stdout)["outputs"][0]["values"]
        self.assertEqual(values, [single(v / 255) for v in planes(COLOURS)])


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__], "cli_images"))
