"""Checks tools/prove.py: the rows and the head of docs/proofs.md, which passes count, which properties a call runs."""

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import prove

ROW = {"cases": 5, "seed": 0, "minutes": 0.1, "passed": True, "date": "2026-01-01", "machine": "m"}
# A test program: it lists two properties, and fails one where a file says so.
PROGRAM = """#!/usr/bin/env python3
import os, sys
from pathlib import Path
here = Path(__file__).parent
size = os.environ["HEADRACE_TEST_SIZE"]
chosen = sys.argv[1].partition("=")[2]
case = '<testcase classname="A" name="{}"><properties><property name="cases" value="{}"/></properties></testcase>'
cases = case.format("One", 5) + case.format("Two", 50)
Path(sys.argv[2].partition("xml:")[2]).write_text(f"<testsuites>{cases}</testsuites>")
if size == "full":
    with (here / "runs").open("a") as runs:
        print(chosen, os.environ["HEADRACE_PROPERTY_SEED"], file=runs)
    sys.exit(chosen in (here / "fails").read_text().split())
"""


@unittest.skipUnless(shutil.which("git"), "git is not installed, whose commits name the results")
class Tree(unittest.TestCase):
    """A git repository of its own with a build folder, whose one test program has two properties."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(setattr, prove, "ROOT", prove.ROOT)
        self.addCleanup(setattr, prove, "PAGE", prove.PAGE)
        self.root = prove.ROOT = Path(folder.name) / "tree"
        prove.PAGE = self.root / "docs/proofs.md"
        prove.PAGE.parent.mkdir(parents=True)
        self.bin = Path(folder.name) / "build/bin"
        self.bin.mkdir(parents=True)
        (self.bin / "fails").write_text("")
        (self.bin / "runs").write_text("")
        (self.bin / "a_test").write_text(PROGRAM)
        (self.bin / "a_test").chmod(0o755)
        (self.root / "source").write_text("first\n")
        self.git("init", "-q")
        self.commit()

    def git(self, *arguments: str) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        options = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", str(self.root), *options, *arguments], env=environment, check=True)

    def commit(self) -> str:
        self.git("add", ".")
        self.git("commit", "-q", "--allow-empty", "-m", "a commit")
        return prove.commit()

    def call(self, *arguments: str, status: int = 0) -> str:
        """Returns the output of a call, and puts the names of the properties that it ran into `self.ran`."""
        before, output = len(self.runs()), io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(prove.main(["--build", str(self.bin.parent), "--jobs", "1", *arguments]), status)
        self.ran = self.runs()[before:]
        return output.getvalue()

    def runs(self) -> list[str]:
        return [line.split()[0] for line in (self.bin / "runs").read_text().splitlines()]

    def head(self) -> str:
        """The lines of the page before its table, as one."""
        return " ".join(prove.PAGE.read_text(encoding="utf-8").partition("\n|")[0].split())


class Page(Tree):
    def test_rows_of_earlier_commits_stay_until_the_property_is_run_again(self) -> None:
        proofs = [prove.Proof("a_test", f"A.{name}", 5) for name in ("Again", "Before", "Never")]
        path = self.bin / "proofs.json"
        ledger = prove.Ledger(path)
        for proof in proofs[:2]:
            ledger.add(proof, {**ROW, "commit": "first"})
        prove.write_page(ledger, proofs, "first")
        path.unlink()
        ledger = prove.Ledger(path)
        ledger.add(proofs[0], {**ROW, "passed": False, "commit": "second"})
        prove.write_page(ledger, proofs, "second")
        lines = [line for line in prove.PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| A.")]
        self.assertEqual(
            lines,
            [
                "| A.Again | a_test | 5 | 0 | 0.1 | FAILED | second | 2026-01-01 | m |",
                "| A.Before | a_test | 5 | 0 | 0.1 | passed | first | 2026-01-01 | m |",
                "| A.Never | a_test | 5 | - | - | not run | - | - | - |",
            ],
        )

    def test_the_head_counts_rows_by_their_commits(self) -> None:
        old = prove.commit()
        for _ in range(3):
            new = self.commit()
        proofs = [prove.Proof("a_test", f"A.{name}", 5) for name in "abcde"]
        ledger = prove.Ledger(self.bin / "proofs.json")
        ledger.add(proofs[0], {**ROW, "commit": old})
        ledger.add(proofs[1], {**ROW, "commit": new, "passed": False})
        ledger.add(proofs[2], {**ROW, "commit": "gone"})
        prove.write_page(ledger, proofs, new)
        newest = f"5 rows: 1 of {new}, the newest commit when this page was written, "
        older = "2 of older commits (the oldest is 3 commits behind), 2 not run. Failed: 1."
        self.assertIn(newest + older, self.head())
        ledger.add(proofs[0], {**ROW, "commit": f"{new} with changes"})
        prove.write_page(ledger, proofs, new)
        self.assertIn(newest + "1 of older commits, 1 of trees with uncommitted changes, 2 not run.", self.head())


class Passes(Tree):
    def test_a_pass_counts_at_its_commit_and_seed(self) -> None:
        self.call()
        self.assertEqual(self.ran, ["A.One", "A.Two"])
        self.assertIn("0 properties to prove", self.call())
        self.assertEqual(self.ran, [])
        self.call("--seed", "3")
        self.assertEqual(self.ran, ["A.One", "A.Two"])
        self.call("--again", "--seed", "3")
        self.assertEqual(self.ran, ["A.One", "A.Two"])
        self.commit()
        self.call()
        self.assertEqual(self.ran, ["A.One", "A.Two"])

    def test_a_suite_has_a_seed_of_its_own(self) -> None:
        (self.bin / "b_test").write_text(PROGRAM.replace('"A"', '"B"'))
        (self.bin / "b_test").chmod(0o755)
        self.call("--seed", "3", "--seed", "b_test=7")
        seeds = dict(line.split() for line in (self.bin / "runs").read_text().splitlines())
        self.assertEqual(seeds, {"A.One": "3", "A.Two": "3", "B.One": "7", "B.Two": "7"})
        self.assertIn("2 properties to prove", self.call("--seed", "3", "--seed", "b_test=8"))
        self.assertEqual(self.ran, ["B.One", "B.Two"])
        row = next(line for line in prove.PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| B.One"))
        self.assertEqual(row.split(" | ")[3], "8")
        for wrong in ("c_test=1", "x", "=1", "-1", "b_test=", str(2**64)):
            with self.assertRaises(SystemExit) as end:
                self.call("--seed", wrong)
            self.assertEqual(end.exception.code, 2, wrong)

    def test_a_pass_in_a_tree_with_changes_counts_for_no_later_run(self) -> None:
        for file, text in (("source", "second\n"), ("source", "third\n"), ("new", "a new file\n")):
            (self.root / file).write_text(text)
            for options in ([], ["--left"]):
                self.call(*options)
                self.assertEqual(self.ran, ["A.One", "A.Two"], (file, text, options))
        self.assertIn("2 of trees with uncommitted changes", self.head())
        self.commit()
        self.call("--left")
        self.assertEqual(self.ran, ["A.One", "A.Two"])

    def test_a_new_file_alone_is_a_change(self) -> None:
        self.assertFalse(prove.commit().endswith(prove.CHANGED))
        (self.root / "new").write_text("")
        self.assertTrue(prove.commit().endswith(prove.CHANGED))

    def test_the_page_itself_is_no_change(self) -> None:
        prove.PAGE.write_text("old\n")
        self.commit()
        prove.PAGE.write_text("new\n")
        self.assertFalse(prove.commit().endswith(prove.CHANGED))


class Choice(Tree):
    def test_left_runs_what_was_not_run_or_failed_at_any_commit(self) -> None:
        self.call("--only", "One")
        self.assertEqual(self.ran, ["A.One"])
        self.commit()
        self.call("--left")
        self.assertEqual(self.ran, ["A.Two"])
        self.call("--left")
        self.assertEqual(self.ran, [])
        (self.bin / "fails").write_text("A.One")
        self.call("--only", "One", status=1)
        self.call("--left", status=1)
        self.assertEqual(self.ran, ["A.One"])

    def test_left_reads_the_page_where_there_are_no_results(self) -> None:
        self.call("--only", "One")
        (self.bin.parent / "proofs.json").unlink()
        self.call("--left")
        self.assertEqual(self.ran, ["A.Two"])

    def test_a_pattern_is_of_a_property_or_a_program(self) -> None:
        self.call("--only", "^A.T")
        self.assertEqual(self.ran, ["A.Two"])
        self.call("--only", "^a_test$", "--most", "5")
        self.assertEqual(self.ran, ["A.One"])
        self.assertEqual(self.call("--list", "--only", "One"), "       5 a_test: A.One\n")

    def test_after_the_minutes_nothing_starts_and_the_next_call_goes_on(self) -> None:
        slow = PROGRAM.replace('if size == "full":', 'if size == "full":\n    import time; time.sleep(1.3)')
        self.call("--list")  # listing counts as time, too
        (self.bin / "a_test").write_text(slow)
        self.call("--list")
        said = self.call("--minutes", "0.02")
        self.assertEqual(self.ran, ["A.One"])
        self.assertIn("1 passed, 0 failed", said)
        self.assertIn("1 not run: the same command goes on where it was", said)
        self.assertIn(", 1 not run. Failed: 0.", self.head())
        self.call("--minutes", "10")
        self.assertEqual(self.ran, ["A.Two"])
        (self.root / "source").write_text("changed\n")
        self.assertIn("1 not run: the tree has changes, so the same command begins", self.call("--minutes", "0.02"))

    def test_a_property_after_the_deadline_leaves_no_result(self) -> None:
        ledger, build = prove.Ledger(self.bin / "proofs.json"), self.bin.parent
        proof = prove.Proof("a_test", "A.One", 5)
        self.assertIsNone(prove.prove(proof, build, self.bin, "first", 0, ledger, time.monotonic() - 1))
        self.assertEqual((ledger.rows, self.runs()), ({}, []))

    def test_results_are_kept_after_each_property(self) -> None:
        self.call("--only", "One")
        rows = json.loads((self.bin.parent / "proofs.json").read_text())
        self.assertEqual({name: row["passed"] for name, row in rows.items()}, {"A.One": True})


class Usage(Tree):
    def refused(self, *arguments: str) -> str:
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors), self.assertRaises(SystemExit) as stopped:
            prove.main(["--build", str(self.bin.parent), *arguments])
        return errors.getvalue() + str(stopped.exception)

    def test_wrong_options(self) -> None:
        self.assertIn("'(' is not a regular expression", self.refused("--only", "("))
        for wrong in ("0", "-1", "nan", "inf", "soon"):
            told = f"expected a number of minutes above 0, got '{wrong}'"
            self.assertIn(told, self.refused(f"--minutes={wrong}"))
        self.assertIn("expected a number from 1 on, got '0'", self.refused("--jobs", "0"))

    def test_a_pattern_that_nothing_matches(self) -> None:
        told = "prove: no property matches --only 'Three'; --list shows them\n2"
        self.assertTrue(self.refused("--only", "Three").endswith(told))

    def test_a_build_without_test_programs_leaves_the_page(self) -> None:
        prove.PAGE.write_text("a page\n")
        (self.bin / "a_test").unlink()
        self.assertIn("bin has no test programs: build them first", self.refused())
        self.assertEqual(prove.PAGE.read_text(), "a page\n")

    def test_a_tree_without_a_commit(self) -> None:
        prove.ROOT = self.bin
        self.assertIn("has no commit, and a result names one", self.refused())

    def test_help_names_the_options(self) -> None:
        said = io.StringIO()
        with contextlib.redirect_stdout(said), self.assertRaises(SystemExit):
            prove.main(["--help"])
        for option in ("--only REGEX", "--left", "--minutes N", "--seed", "--again", "--most N", "--list"):
            self.assertIn(option, said.getvalue())


if __name__ == "__main__":
    unittest.main()
