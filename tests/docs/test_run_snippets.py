"""run_snippets.py on pages made here. Standard library only."""

import json
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))
import run_snippets

PAGE = """# A page
    echo indented is not run

```sh
echo 1 23 > build/x; cat build/x
```
```text
1 ...
```

```c
not run
```
```text
not expected
```

```python
print(open("build/x").read(), end="")
```

```python needs=no_such_module
raise SystemExit(1)
```
"""


class RunSnippetsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.page = Path(folder.name) / "page.md"
        patcher = mock.patch.object(run_snippets, "ROOT", Path(folder.name))
        patcher.start()
        self.addCleanup(patcher.stop)

    def run_page(self, text):
        self.page.write_text(text)
        return [(case.name, case.outcome) for case in run_snippets.run_page(self.page, Path("/bin/true"))]

    def test_blocks_run_in_order_in_one_folder(self):
        self.assertEqual(
            self.run_page(PAGE), [("page.md:4", "passed"), ("page.md:18", "passed"), ("page.md:22", "skipped")]
        )

    def test_other_output_fails(self):
        others = [("page.md:18", "passed"), ("page.md:22", "skipped")]
        self.assertEqual(self.run_page(PAGE.replace("1 ...", "2 ...")), [("page.md:4", "failed"), *others])

    def test_a_command_that_fails(self):
        page = "```sh\nfalse; true\n```\n```sh\ntrue\n```\n"
        self.assertEqual(self.run_page(page), [("page.md:1", "failed"), ("page.md:4", "passed")])
        self.assertEqual(self.run_page("```python\n1 / 0\n```\n"), [("page.md:1", "failed")])

    def test_a_block_whose_backend_the_build_leaves_out_is_skipped(self):
        program = self.page.parent / "program"
        why = "left out of this build; configure it with -DUSE_A=ON"
        rows = [{"name": "a", "missing": why}, {"name": "b", "missing": ""}, {"name": "c", "missing": "no library"}]
        listed = json.dumps({"backends": rows})
        program.write_text(f"#!/bin/sh\n[ \"$*\" = 'backend list --json' ] && echo '{listed}'\n")
        program.chmod(0o755)
        self.page.write_text("".join(f"```sh backends={names}\nfalse\n```\n" for names in ("a", "b,a", "c")))
        cases = run_snippets.run_page(self.page, program)
        self.assertEqual([case.outcome for case in cases], ["skipped", "skipped", "failed"])
        self.assertEqual(cases[0].message, f"the backend a was {why}")

    def test_pages_cannot_run_whole_checks(self):
        self.assertEqual(self.run_page("```sh\n./dev check\n```\n"), [("page.md:1", "failed")])

    def test_quotes_are_the_files_text(self):
        (self.page.parent / "x.cc").write_text("int a;\nint b;\nint c;\nint b2;\n")

        def outcome(quote, source="x.cc"):
            return self.run_page(f"```cpp from={source}\n{quote}```\n")[0][1]

        self.assertEqual(outcome("int a;\nint b;\n"), "passed")
        self.assertEqual(outcome("int a;\n...\nint c;\n"), "passed")
        self.assertEqual(outcome("int a;\nint c;\n"), "failed")
        self.assertEqual(outcome("int c;\n...\nint a;\n"), "failed")
        self.assertEqual(outcome("nt a;\n"), "failed")
        self.assertEqual(outcome("int a;\n", "y.cc"), "failed")

    def test_only_quotes_may_be_indented(self):
        (self.page.parent / "x.cc").write_text("if (a) {\n  b();\n}\n")
        quote = "1. A list:\n\n   ```cpp from=x.cc\n   if (a) {\n     {}\n   ```\n"
        self.assertEqual(self.run_page(quote.replace("{}", "b();")), [("page.md:3", "passed")])
        self.assertEqual(self.run_page(quote.replace("{}", "c();")), [("page.md:3", "failed")])
        self.assertEqual(self.run_page("- An item:\n\n  ```sh\n  false\n  ```\n"), [])

    def test_dots_stand_for_text_and_lines(self):
        self.assertTrue(run_snippets.is_expected("a ... c\n...\nz\n", "a b c\n1\n2\nz\n"))
        self.assertTrue(run_snippets.is_expected("a\n", "a  \n"))
        self.assertFalse(run_snippets.is_expected("a.c\n", "abc\n"))
        self.assertFalse(run_snippets.is_expected("a ...\n", "a b\nc\n"))


if __name__ == "__main__":
    unittest.main()
