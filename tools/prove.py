"""Runs every property at its full size and writes docs/proofs.md: what holds, at which commit, for how many cases.

A property is a test that states something about many random cases. A check runs a few of them (HEADRACE_TEST_SIZE=ci),
this program all (full). It takes hours, and may be stopped by Ctrl-C or --minutes: what has passed at this commit is
not run again. A pass in a tree with uncommitted changes counts for no later run, since the changes may differ. --seed
gives all test programs, or one of them, other cases. Results are in proofs.json of the build folder, the log of each
property in its folder proofs.

Exit codes: 0 no property failed, 1 one failed or nothing is built, 2 wrong usage, 130 stopped by Ctrl-C.
"""

import argparse
import concurrent.futures
import datetime
import json
import math
import os
import platform
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/proofs.md"
RESULT, COMMIT = 5, 6  # cells of a row
CHANGED = " with changes"  # ends the name of a commit where the tree differed from it

# The next call's work after a call that was stopped.
GOES_ON = "the same command goes on where it was"
BEGINS_ANEW = "the tree has changes, so the same command begins anew; commit them, and it will go on"


class Proof(NamedTuple):
    """A property: a test of a test program, and how many cases it has at full size."""

    program: str
    test: str
    cases: int


def run_test(program: Path, size: str, seed: int, test: str, results: Path, log: Path) -> int:
    """Runs tests of a program; its exit status."""
    environment = dict(os.environ, HEADRACE_TEST_SIZE=size, HEADRACE_PROPERTY_SEED=str(seed))
    with log.open("w", encoding="utf-8") as output:
        command = [str(program), f"--gtest_filter={test}", f"--gtest_output=xml:{results}"]
        return subprocess.run(command, env=environment, stdout=output, stderr=subprocess.STDOUT, check=False).returncode


def cases_in(results: Path) -> dict[str, int]:
    """The tests of an XML report that recorded a number of cases."""
    found = {}
    for case in ElementTree.parse(results).getroot().iter("testcase"):
        for recorded in case.iter("property"):
            if recorded.get("name") == "cases":
                found[f"{case.get('classname')}.{case.get('name')}"] = int(recorded.get("value", "0"))
    return found


def list_proofs(build: Path, folder: Path) -> list[Proof]:
    """Every property of every test program, by running them without cases."""
    proofs = []
    for program in sorted((build / "bin").glob("*_test")):
        results = folder / f"{program.name}.list.xml"
        if not results.exists() or results.stat().st_mtime < program.stat().st_mtime:
            print(f"listing the properties of {program.name}", file=sys.stderr)
            results.unlink(missing_ok=True)
            run_test(program, "list", 0, "*", results, folder / f"{program.name}.list.log")
        if not results.exists():
            raise SystemExit(f"prove: {program.name} wrote no results; see {folder / program.name}.list.log")
        proofs += [Proof(program.name, test, cases) for test, cases in cases_in(results).items()]
    return proofs


def git(*arguments: str) -> str:
    """Runs git in the tree; returns what it prints, "" when it fails."""
    return _git(*arguments).stdout


def _git(*arguments: str) -> subprocess.CompletedProcess[str]:
    # Within a hook of git, its variables would name another tree.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def commit() -> str:
    """The commit that is proved; marked where the tree differs from it, by changed files or by new ones."""
    name = git("rev-parse", "--short=10", "HEAD").strip()
    if not name:
        raise SystemExit(f"prove: {ROOT} has no commit, and a result names one: run this in a clone of the repository")
    changes = _git("status", "--porcelain", "--untracked-files=all", "--", ".", ":!docs/proofs.md")
    return name + (CHANGED if changes.returncode != 0 or changes.stdout else "")


def machine() -> str:
    """The processor and how many there are."""
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8") if Path("/proc/cpuinfo").exists() else ""
    model = re.search(r"model name\s*: (.*)", text)
    return f"{model.group(1) if model else platform.machine()}, {os.cpu_count()} processors"


class Seeds(NamedTuple):
    """The seed of each suite: one for all, and those of suites that have their own."""

    of_all: int
    of_suites: dict[str, int]

    def seed_of(self, proof: Proof) -> int:
        """The seed by which the property's suite chooses its cases."""
        return self.of_suites.get(proof.program, self.of_all)


class Ledger:
    """The results so far, in a file that is rewritten after each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock = threading.Lock()
        self.rows: dict[str, dict] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def has_passed(self, proof: Proof, at: str, seed: int) -> bool:
        """Whether the property passed at that commit with that seed; never for a tree with changes."""
        row = self.rows.get(proof.test)
        return bool(row and row["passed"] and row["commit"] == at and row["seed"] == seed and not at.endswith(CHANGED))

    def add(self, proof: Proof, row: dict) -> None:
        """Keeps a result."""
        with self.lock:
            self.rows[proof.test] = row
            part = self.path.with_suffix(".part")
            part.write_text(json.dumps(self.rows, indent=1), encoding="utf-8")
            part.replace(self.path)


def prove(
    proof: Proof, build: Path, folder: Path, at: str, seeds: Seeds, ledger: Ledger, deadline: float = math.inf
) -> bool | None:
    """Runs one property at full size; None when it is left: the deadline passed before it, or Ctrl-C stopped it."""
    begin = time.monotonic()
    if begin >= deadline:
        return None
    name, seed = re.sub(r"[^A-Za-z0-9_.]", "_", proof.test), seeds.seed_of(proof)
    status = run_test(
        build / "bin" / proof.program, "full", seed, proof.test, folder / f"{name}.xml", folder / f"{name}.log"
    )
    if status in (-signal.SIGINT, -signal.SIGTERM):
        return None
    minutes = (time.monotonic() - begin) / 60
    if commit() != at and not at.endswith(CHANGED):  # an edit, or another commit, since the program was built
        at += CHANGED
    row = {"program": proof.program, "cases": proof.cases, "seed": seed, "minutes": round(minutes, 1)}
    row |= {"passed": status == 0, "commit": at, "date": datetime.date.today().isoformat(), "machine": machine()}
    ledger.add(proof, row)
    verdict = "passed" if status == 0 else f"FAILED: {folder / name}.log"
    print(f"{minutes:6.1f} min  {proof.test}, {proof.cases} cases: {verdict}", flush=True)
    return status == 0


def rows_of_page() -> dict[str, list[str]]:
    """The rows of docs/proofs.md that say a result, by property: those of earlier commits and other machines."""
    rows = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines() if PAGE.exists() else ():
        cells = [cell.strip() for cell in line.split("|")][1:-1]
        if len(cells) == 9 and cells[RESULT] in ("passed", "FAILED"):
            rows[cells[0]] = cells
    return rows


def row_of(proof: Proof, ledger: Ledger, before: dict[str, list[str]]) -> list[str]:
    """The cells of a property: its result, else what the page says of it, else that it was not run."""
    row = ledger.rows.get(proof.test)
    if row is None:
        return before.get(proof.test, [proof.test, proof.program, str(proof.cases), "-", "-", "not run", "-", "-", "-"])
    result = "passed" if row["passed"] else "FAILED"
    cells = [proof.test, proof.program, row["cases"], row["seed"], row["minutes"], result]
    return [str(cell) for cell in [*cells, row["commit"], row["date"], row["machine"]]]


def is_left(cells: list[str]) -> bool:
    """Whether a property was not run, failed, or passed only in a tree with changes."""
    return cells[RESULT] != "passed" or cells[COMMIT].endswith(CHANGED)


def age_of(commits: set[str]) -> str:
    """How far the oldest of some commits is behind the tree's, in brackets; "" when git knows none of them."""
    counts = [git("rev-list", "--count", f"{name}..HEAD").strip() for name in commits]
    known = [int(count) for count in counts if count]
    return f" (the oldest is {max(known)} commits behind)" if known else ""


def summary(rows: list[list[str]], at: str) -> list[str]:
    """The lines that say how many rows are of the newest commit, of older ones, of trees with changes, and not run."""
    newest = at.removesuffix(CHANGED)
    told = [cells[COMMIT] for cells in rows if cells[RESULT] != "not run"]
    changed = [name for name in told if name.endswith(CHANGED)]
    older = [name for name in told if name != newest and name not in changed]
    failed = sum(cells[RESULT] == "FAILED" for cells in rows)
    parts = [
        f"{told.count(newest)} of {newest}, the newest commit when this page was written",
        f"{len(older)} of older commits{age_of(set(older))}",
        *([f"{len(changed)} of trees with uncommitted changes"] if changed else []),
        f"{len(rows) - len(told)} not run",
    ]
    return textwrap.wrap(f"{len(rows)} rows: {', '.join(parts)}. Failed: {failed}.", 118)


def write_page(ledger: Ledger, proofs: list[Proof], at: str) -> None:
    """docs/proofs.md: the results of the properties that exist now, and what the page says of those not run since."""
    before = rows_of_page()
    rows = [row_of(proof, ledger, before) for proof in sorted(proofs, key=lambda p: (p.program, p.test))]
    lines = [
        "# Proofs",
        "Each property is a test that must hold for all random cases of a kind: programs, models, texts, numbers.",
        "`./dev check` runs a few cases of each property. `./dev prove` runs all cases and writes this page; with",
        "`--seed N` it runs other cases, with `--seed PROGRAM=N` other ones of one program. A row is valid for its",
        "commit only.",
        "",
        *summary(rows, at),
        "",
        "| property | program | cases | seed | minutes | result | commit | date | machine |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        *("| " + " | ".join(cells) + " |" for cells in rows),
    ]
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def pattern(text: str) -> re.Pattern[str]:
    """The value of --only."""
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"'{text}' is not a regular expression: {error}") from None


def positive(text: str) -> float:
    """The value of --minutes."""
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number of minutes above 0, got '{text}'")
    return value


def seed(text: str) -> tuple[str, int]:
    """The value of --seed: a suite ("" for all) and its seed."""
    suite, _, number = text.rpartition("=")
    if not number.isdigit() or int(number) >= 2**64 or (suite == "" and "=" in text):
        raise argparse.ArgumentTypeError(f"expected a seed from 0 on or PROGRAM=SEED, got '{text}'")
    return suite, int(number)


def seeds_of(given: list[tuple[str, int]], proofs: list[Proof]) -> Seeds:
    """The seeds that the options give, each of a suite that exists."""
    suites = {proof.program for proof in proofs}
    unknown = sorted({suite for suite, _ in given} - suites - {""})
    if unknown:
        print(f"prove: --seed names no test program: {', '.join(unknown)}; --list shows them", file=sys.stderr)
        raise SystemExit(2)
    of_suites = dict(given)
    return Seeds(of_suites.pop("", 0), of_suites)


def count_or_none(text: str) -> int:
    """A number of 0 or more."""
    return 0 if text == "0" else count(text)


def count(text: str) -> int:
    """The value of --jobs."""
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"expected a number from 1 on, got '{text}'")
    return int(text)


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="./dev prove", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--build", type=Path, default=ROOT / "build/release", help="the build folder")
    add(
        "--only",
        type=pattern,
        default=re.compile(""),
        metavar="REGEX",
        help="the properties whose name or program this matches",
    )
    add(
        "--left",
        action="store_true",
        help="those that were not run at any commit, failed, or passed in a tree with changes",
    )
    add("--most", type=count_or_none, default=0, metavar="N", help="those with at most so many cases (0: all)")
    add("--jobs", type=count, default=os.cpu_count() or 1, help="properties at once")
    add(
        "--minutes",
        type=positive,
        default=math.inf,
        metavar="N",
        help="start no property after N minutes; the next call goes on",
    )
    add(
        "--seed",
        type=seed,
        action="append",
        default=[],
        metavar="[PROGRAM=]N",
        help="other cases than those of the check, when not 0; of one test program when it is named; may be repeated",
    )
    add("--again", action="store_true", help="run what has passed at this commit, too")
    add("--list", action="store_true", help="list the properties that are chosen and run none")
    return parser.parse_args(arguments)


def choose(proofs: list[Proof], args: argparse.Namespace, ledger: Ledger) -> list[Proof]:
    """The properties that the options name; those of --left by the results so far and the page."""
    before = rows_of_page()
    if not any(re.search(args.only, name) for proof in proofs for name in (proof.test, proof.program)):
        print(f"prove: no property matches --only '{args.only.pattern}'; --list shows them", file=sys.stderr)
        raise SystemExit(2)
    return [
        proof
        for proof in proofs
        if (re.search(args.only, proof.test) or re.search(args.only, proof.program))
        and (not args.most or proof.cases <= args.most)
        and (not args.left or is_left(row_of(proof, ledger, before)))
    ]


def run_all(
    wanted: list[Proof], args: argparse.Namespace, at: str, seeds: Seeds, ledger: Ledger, deadline: float
) -> list[bool | None]:
    """The verdicts of properties, several at a time; KeyboardInterrupt after Ctrl-C."""
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        folder = args.build / "proofs"
        jobs = [pool.submit(prove, p, args.build, folder, at, seeds, ledger, deadline) for p in wanted]
        try:
            return [job.result() for job in jobs]
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            raise


def main(arguments: list[str] | None = None) -> int:
    """Runs what is left to prove; 1 when a property fails."""
    begin, args = time.monotonic(), parse_arguments(arguments)
    folder = args.build / "proofs"
    if not any((args.build / "bin").glob("*_test")):
        raise SystemExit(f"prove: {args.build}/bin has no test programs: build them first, as ./dev prove does")
    folder.mkdir(parents=True, exist_ok=True)
    proofs, ledger = list_proofs(args.build, folder), Ledger(args.build / "proofs.json")
    chosen = choose(proofs, args, ledger)
    if args.list:
        for proof in chosen:
            print(f"{proof.cases:8} {proof.program}: {proof.test}")
        return 0
    at, seeds = commit(), seeds_of(args.seed, proofs)
    wanted = [p for p in chosen if args.again or not ledger.has_passed(p, at, seeds.seed_of(p))]
    print(f"{len(wanted)} properties to prove at {at}, {len(chosen) - len(wanted)} proved before", flush=True)
    try:
        verdicts = run_all(wanted, args, at, seeds, ledger, begin + args.minutes * 60)
    except KeyboardInterrupt:
        write_page(ledger, proofs, at)
        print(f"stopped: {GOES_ON if not at.endswith(CHANGED) else BEGINS_ANEW}", file=sys.stderr)
        return 130
    write_page(ledger, proofs, at)
    passed, failed, left = (verdicts.count(verdict) for verdict in (True, False, None))
    print(f"{passed} passed, {failed} failed; written to {PAGE}")
    if left:
        print(f"{left} not run: {GOES_ON if not at.endswith(CHANGED) else BEGINS_ANEW}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
