"""Runs every property at its full size and writes docs/proofs.md: what holds, at which commit, for how many cases.

A property is a test that states something about many random cases. A check runs a few of them (HEADRACE_TEST_SIZE=ci),
this program all (full). It takes hours, and may be stopped: what has passed at this commit is not run again. Results
are in proofs.json of the build folder, the log of each property in its folder proofs.
"""

import argparse
import concurrent.futures
import datetime
import json
import os
import platform
import re
import signal
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/proofs.md"


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


def commit() -> str:
    """The commit that is proved; marked where the tree differs from it."""
    git = ["git", "-C", str(ROOT)]
    name = subprocess.run([*git, "rev-parse", "--short=10", "HEAD"], capture_output=True, text=True, check=True)
    changes = subprocess.run(
        [*git, "status", "--porcelain", "--untracked-files=no"], capture_output=True, text=True, check=True
    )
    lines = [line for line in changes.stdout.splitlines() if not line.endswith("docs/proofs.md")]
    return name.stdout.strip() + (" with changes" if lines else "")


def machine() -> str:
    """The processor and how many there are."""
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8") if Path("/proc/cpuinfo").exists() else ""
    model = re.search(r"model name\s*: (.*)", text)
    return f"{model.group(1) if model else platform.machine()}, {os.cpu_count()} processors"


class Ledger:
    """The results so far, in a file that is rewritten after each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock = threading.Lock()
        self.rows: dict[str, dict] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def has_passed(self, proof: Proof, at: str, seed: int) -> bool:
        """Whether the property passed at that commit with that seed."""
        row = self.rows.get(proof.test)
        return bool(row and row["passed"] and row["commit"] == at and row["seed"] == seed)

    def add(self, proof: Proof, row: dict) -> None:
        """Keeps a result."""
        with self.lock:
            self.rows[proof.test] = row
            part = self.path.with_suffix(".part")
            part.write_text(json.dumps(self.rows, indent=1), encoding="utf-8")
            part.replace(self.path)


def prove(proof: Proof, build: Path, folder: Path, at: str, seed: int, ledger: Ledger) -> bool:
    """Runs one property at full size."""
    begin = time.monotonic()
    name = re.sub(r"[^A-Za-z0-9_.]", "_", proof.test)
    status = run_test(
        build / "bin" / proof.program, "full", seed, proof.test, folder / f"{name}.xml", folder / f"{name}.log"
    )
    if status in (-signal.SIGINT, -signal.SIGTERM):
        return True  # stopped with this program: it says nothing of the property
    minutes = (time.monotonic() - begin) / 60
    row = {"program": proof.program, "cases": proof.cases, "seed": seed, "minutes": round(minutes, 1)}
    row |= {"passed": status == 0, "commit": at, "date": datetime.date.today().isoformat(), "machine": machine()}
    ledger.add(proof, row)
    verdict = "passed" if status == 0 else f"FAILED: {folder / name}.log"
    print(f"{minutes:6.1f} min  {proof.test}, {proof.cases} cases: {verdict}", flush=True)
    return status == 0


def rows_of_page() -> dict[str, str]:
    """The rows of docs/proofs.md that say a result, by property: those of earlier commits and other machines."""
    rows = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines() if PAGE.exists() else ():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 11 and cells[6] in ("passed", "FAILED"):
            rows[cells[1]] = line
    return rows


def write_page(ledger: Ledger, proofs: list[Proof]) -> None:
    """docs/proofs.md: the results of the properties that exist now, and what the page says of those not run since."""
    before = rows_of_page()
    lines = [
        "# Proofs",
        "Each property states something about random cases: programs, models, texts, numbers. `./dev check` runs a few",
        "cases of each; `./dev prove` runs all and writes this page. A row holds at its commit only.",
        "`./dev prove --seed N` tries other cases.",
        "",
        "| property | program | cases | seed | minutes | result | commit | date | machine |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for proof in sorted(proofs, key=lambda p: (p.program, p.test)):
        row = ledger.rows.get(proof.test)
        if row is None and proof.test in before:
            lines.append(before[proof.test])
            continue
        if row is None:
            lines.append(f"| {proof.test} | {proof.program} | {proof.cases} | - | - | not run | - | - | - |")
            continue
        result = "passed" if row["passed"] else "FAILED"
        cells = [proof.test, proof.program, row["cases"], row["seed"], row["minutes"], result]
        cells += [row["commit"], row["date"], row["machine"]]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="./dev prove", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", type=Path, default=ROOT / "build/release", help="the build folder")
    parser.add_argument("--only", default="", metavar="REGEX", help="properties whose name this matches")
    parser.add_argument("--most", type=int, default=0, metavar="N", help="those with at most so many cases (0: all)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="properties at once")
    parser.add_argument("--seed", type=int, default=0, help="other cases than those of the check, when not 0")
    parser.add_argument("--again", action="store_true", help="run what has passed at this commit, too")
    parser.add_argument("--list", action="store_true", help="list the properties and run none")
    return parser.parse_args()


def main() -> int:
    """Runs what is left to prove; 1 when a property fails."""
    args = parse_arguments()
    folder = args.build / "proofs"
    folder.mkdir(parents=True, exist_ok=True)
    proofs = list_proofs(args.build, folder)
    if args.list:
        for proof in proofs:
            print(f"{proof.cases:8} {proof.program}: {proof.test}")
        return 0
    at, ledger = commit(), Ledger(args.build / "proofs.json")
    chosen = [p for p in proofs if re.search(args.only, p.test) and (not args.most or p.cases <= args.most)]
    wanted = [p for p in chosen if args.again or not ledger.has_passed(p, at, args.seed)]
    print(f"{len(wanted)} properties to prove at {at}, {len(chosen) - len(wanted)} proved before", flush=True)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        jobs = [pool.submit(prove, proof, args.build, folder, at, args.seed, ledger) for proof in wanted]
        try:
            failed = sum(not job.result() for job in jobs)
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            write_page(ledger, proofs)
            print("stopped; ./dev prove goes on where it was", file=sys.stderr)
            return 130
    write_page(ledger, proofs)
    print(f"{len(wanted) - failed} passed, {failed} failed; written to {PAGE.relative_to(ROOT)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
