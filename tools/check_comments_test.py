#!/usr/bin/env python3
"""Plants comments of each kind and sees check_comments.py count them, and fail."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parent / "check_comments.py"
SAID = 'begin with "What", "Of", "Who", "The same" or "As above"'

SOUND_HOUSE = {
    "src/a.cc": '// Returns x.\nint f(int x) { return x; }  // plainly\n\n/* A block. */\nconst char* s = "// What";\n',
    "src/a.py": '"""A module."""\n\n\ndef f() -> str:\n    """Returns a text."""\n    return "# What"  # plainly\n',
}


class CheckCommentsTest(unittest.TestCase):
    def check(self, planted: dict[str, str]) -> tuple[int, list[str]]:
        """Exit status and the lines of the tool for the sound house with `planted` files added to it."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in (SOUND_HOUSE | planted).items():
                path = Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            run = subprocess.run([sys.executable, TOOL, folder], capture_output=True, text=True, check=False)
            self.assertEqual(run.stderr, "")
            return run.returncode, run.stdout.splitlines()

    def expect(self, file: str, text: str, *lines: str) -> None:
        """Exactly these lines are printed when a file is added."""
        self.assertEqual(self.check({file: text}), (1, list(lines)))

    def test_sound_house_passes(self) -> None:
        counts = "2 C++ comments, 1 C++ trailing comments, 2 Python docstrings, 1 Python comments, 0 script comments"
        self.assertEqual(self.check({}), (0, [f"plain statements: {counts}"]))

    def test_each_opening(self) -> None:
        for words in ("What x is.", "what x is", "Of x.", "of x", "Who reads x.", "The same.", "the same", "As above."):
            self.expect("a.h", f"// {words}\nint x;\n", f"a.h:1: {words}", f"1 of 3 C++ comments {SAID}")

    def test_words_that_begin_so_are_others(self) -> None:
        for words in ("Whatever x is.", "Offsets.", "Whole ones.", "The sameness.", "As a rule.", "Often of x."):
            self.assertEqual(self.check({"a.h": f"// {words}\nint x;\n"})[0], 0, words)

    def test_trailing_comments(self) -> None:
        said = f"1 of 2 C++ trailing comments {SAID}"
        self.expect("a.hpp", "int x;  // of y\n", "a.hpp:1: of y", said)
        self.expect("a.c", "int x; /* what y is */\n", "a.c:1: what y is", said)

    def test_lines_that_follow_each_other_are_one_comment(self) -> None:
        self.assertEqual(self.check({"a.h": "// Returns\n// what x is.\nint x();\n"})[0], 0)
        self.expect("a.h", "// What\n// x is.\n\n// Y.\n", "a.h:1: What x is.", f"1 of 4 C++ comments {SAID}")
        self.expect("a.py", "#: What\n# x is.\nx = 1\n", "a.py:1: What x is.", f"1 of 2 Python comments {SAID}")

    def test_blocks(self) -> None:
        self.expect("a.h", "/* What x\n * is. */\n", "a.h:1: What x", f"1 of 3 C++ comments {SAID}")
        self.expect("a.h", "\n/** Of x. */\n", "a.h:2: Of x.", f"1 of 3 C++ comments {SAID}")

    def test_literals_hide_what_looks_like_a_comment(self) -> None:
        for text in ("'\"'", 'R"(// What\n// of)"', "u8'/'", '"\\"// What"', "1'000"):
            lines = f"auto a = {text};\n// What x is.\nauto b = {text};\n"
            number = lines[: lines.index("\n// What x") + 1].count("\n") + 1
            self.expect("a.cc", lines, f"a.cc:{number}: What x is.", f"1 of 3 C++ comments {SAID}")

    def test_docstrings(self) -> None:
        said = f"1 of 3 Python docstrings {SAID}"
        self.expect("a.py", '#!/usr/bin/env python3\n"""What is here."""\n', "a.py:2: What is here.", said)
        self.expect("a.py", 'class A:\n    """\n    Of a.\n\n    More.\n    """\n', "a.py:2: Of a.", said)
        self.expect("a.py", 'async def f():\n    """As above."""\n', "a.py:2: As above.", said)

    def test_scripts(self) -> None:
        text = "#!/bin/sh\n# Runs x\n# of y.\nset(x)  # of y\n"
        for file in ("dev", "a.sh", "a/CMakeLists.txt", "b.cmake"):
            self.assertEqual(self.check({file: text})[0], 0, file)
            self.expect(file, f"{text}\n  # Of z.\n", f"{file}:6: Of z.", f"1 of 2 script comments {SAID}")
        self.expect("a.js", "// Of z.\n", "a.js:1: Of z.", f"1 of 3 C++ comments {SAID}")

    def test_folders_that_are_not_ours_or_made(self) -> None:
        for folder in ("build/x", "third_party/x", ".cache", "tools/html/vendor", "tests/plugins/headers/1.0"):
            self.assertEqual(self.check({f"{folder}/a.h": "// What x is.\n"})[0], 0, folder)
        self.assertEqual(self.check({"src/build/a.h": "// What x is.\n"})[0], 1)


if __name__ == "__main__":
    unittest.main()
