#!/usr/bin/env python3
"""Whole networks: each is compared with the float64 interpreter and with onnxruntime, and compiles to the same bytes.

    tests/models/verify_models.py --program headrace --opt headrace-opt --write-zoo write_zoo --folder FOLDER
        --footprint footprint [--only NAMES] [--jobs N] [--rewrite-expected] [--junit FILE]

Models: those of the kit's generator, models/digits.onnx, and those of models/fetch.py where PyPI could be reached.
HEADRACE_TEST_SIZE=ci (default) takes the small ones at a low resolution, full takes all at their own, and the detector
on the real page too. Each runs unoptimised and optimised, on one thread and on two, beside onnxruntime where
HEADRACE_PYTHON (default: .venv) has it: `headrace verify` judges ours to float64 and ours to onnxruntime by its own
limits. Outputs are also compared with those of onnxruntime in expected/ (at size full in expected/full/), so that a
wrong import is found on machines without it; --rewrite-expected writes these anew. Inputs are made here, of random
numbers that are the same on every machine; those of digits are pictures, and models of texts read ids of tokens and a
mask (text_inputs.py).

As text, each is printed, read back and compared around every pass, as is its JSON (headrace-opt --verify-text), and
goes through files: weights aside and in the metadata, both twice with the same bytes. What each takes of memory when it
is loaded and run is held against the limits of footprint.cc.
"""

from __future__ import annotations

import argparse
import filecmp
import itertools
import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "models"), str(ROOT / "tests/kit"), str(ROOT / "tests/models")]
import expected  # noqa: E402
import fetch  # noqa: E402
import junit  # noqa: E402
import text_inputs  # noqa: E402

CLASSIFIER, DETECTOR = "ch_ppocr_mobile_v2.0_cls_infer.onnx", "ch_PP-OCRv4_det_infer.onnx"
DETECTORS = ("ssd_resnet50", "ssd_vgg16", "ssd_mobilenet")
LIGHT = ("squeezenet1_1", "mobilenet_v2", "shufflenet_v2")
CLASSIFIERS = (*LIGHT, "vgg16", "alexnet", "resnet18", "resnet50", "densenet121")
TRANSFORMERS = ("bert_base", "vit_base16", "gpt2")
ZOO = ("mlp", *CLASSIFIERS, "inception_v3", *DETECTORS, *TRANSFORMERS)
EVERYTHING = ("digits", *ZOO, "classifier", "detector", "page")
IN_CI = ("digits", "mlp", "squeezenet1_1", "mobilenet_v2", "bert_base", "classifier")
LEVELS, THREADS = (0, 3), (1, 2)
# Shapes of the inputs x that are made here, of the networks whose outputs are kept: at test size ci and at size full.
CI_SHAPES = {
    "digits": (16, 1, 8, 8),
    "mlp": (1, 784),
    "alexnet": (1, 3, 64, 64),
    "classifier": (1, 3, 48, 64),
} | dict.fromkeys((*LIGHT, "densenet121", "vit_base16"), (1, 3, 32, 32))
FULL_SHAPES = (
    {"digits": (360, 1, 8, 8), "mlp": (1, 784), "inception_v3": (1, 3, 299, 299)}
    | dict.fromkeys((*CLASSIFIERS, "vit_base16"), (1, 3, 224, 224))
    | dict.fromkeys(DETECTORS, (1, 3, 300, 300))
    | {"classifier": (1, 3, 48, 192), "detector": (1, 3, 384, 768)}
)


# The most that outputs may differ from those that are kept, where the least limit of verify is too strict: the detector
# amplifies rounding where its input is noise, not a page. This is the most that verify allows.
KEPT_LIMITS = {"full/detector": 1e-3}


@dataclass(frozen=True)
class Network:
    """A model file and the shapes that it leaves open; `missing` says why there is no file.

    `kept` names its outputs in expected/; none for a network that runs again on another input.
    """

    name: str
    path: Path = Path()
    shapes: tuple[str, ...] = ()
    missing: str = ""
    # The .npy file of each input, by its name; none: random ones, made by verify.
    sources: dict[str, Path] = field(default_factory=dict)
    kept: str = ""

    def arguments(self) -> list[str]:
        """The arguments that name this network to every verb."""
        return [str(self.path), *itertools.chain.from_iterable(("--shape", shape) for shape in self.shapes)]

    def inputs(self) -> list[str]:
        """The options that name the files of its inputs."""
        return [word for name, file in self.sources.items() for word in ("--input", f"{name}={file}")]


@dataclass
class Tally:
    """The results so far, for the table and the exit code."""

    cases: list[junit.Case] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)

    def add(self, name: str, cells: list[str], problem: str, begin: float) -> None:
        """One case; an empty problem is a pass."""
        self.cases.append(junit.Case(name, "failed" if problem else "passed", problem))
        seconds, verdict = f"{time.monotonic() - begin:.1f}", problem or "ok"
        self.rows.append([*cells, seconds, verdict])
        print(f"{name}: {seconds} s, {verdict}", file=sys.stderr, flush=True)


def run(command: list[str]) -> subprocess.CompletedProcess:
    """Runs a program and keeps what it says."""
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=3600)


def problem_of(done: subprocess.CompletedProcess) -> str:
    """The exit code and last words of a program that failed, in one line."""
    lines = done.stderr.strip().splitlines()
    return f"exit code {done.returncode}: {' / '.join(lines[-2:])}"


def fetched(name: str, file: str, shape: str) -> Network:
    """A model of models/fetch.py."""
    try:
        return Network(name, fetch.fetch([file])[file], (shape,))
    except (fetch.FetchError, OSError) as error:
        return Network(name, missing=str(error))


def networks(wanted: list[str], is_full: bool, args: argparse.Namespace) -> list[Network]:
    """The models, written or fetched."""
    zoo = [name for name in ZOO if name in wanted]
    if zoo:
        done = run([str(args.write_zoo), str(made(args.folder)), *zoo, *([] if is_full else ["--small"])])
        if done.returncode != 0:
            sys.exit(f"write_zoo failed: {problem_of(done)}")
    found = [Network(name, args.folder / f"{name}.onnx") for name in zoo]
    if "digits" in wanted:
        found.insert(0, Network("digits", ROOT / "models/digits.onnx", (f"x={360 if is_full else 16},1,8,8",)))
    if "classifier" in wanted:
        found.append(fetched("classifier", CLASSIFIER, "x=1,3,48,192" if is_full else "x=1,3,48,64"))
    if "detector" in wanted:
        found.append(fetched("detector", DETECTOR, "x=1,3,384,768" if is_full else "x=1,3,64,96"))
    if "page" in wanted:
        found.append(real_page(args.folder))
    return [with_source(network, args.folder, is_full) for network in found]


def with_source(network: Network, folder: Path, is_full: bool) -> Network:
    """The network with inputs that are the same on every machine, if it is one of those that have outputs to keep."""
    arrays = {} if network.missing else make_inputs(network.name, is_full)
    if not arrays:
        return network
    sources = {name: made(folder) / f"{network.name}-{name}.npy" for name in arrays}
    for name, array in arrays.items():
        expected.write_npy(sources[name], array)
    return replace(network, sources=sources, kept=f"full/{network.name}" if is_full else network.name)


def make_inputs(name: str, is_full: bool) -> dict[str, expected.Array]:
    """The inputs of a network by their names; none for one without outputs to keep."""
    if name in text_inputs.NAMES:
        return text_inputs.inputs_of(name, is_full)
    shape = (FULL_SHAPES if is_full else CI_SHAPES).get(name)
    if shape is None:
        return {}
    array = expected.random_array(shape)
    if name == "digits":  # random pictures are not digits, and all as sure to be one
        images = expected.read_npy(ROOT / "models/digits_images.npy")
        array = expected.Array(images.dtype, shape, images.data[: len(array.data)])
    return {"x": array}


def real_page(folder: Path) -> Network:
    """The detector on the picture that the demo reads."""
    network = fetched("page", DETECTOR, "x=1,3,384,768")
    if network.missing:
        return network
    picture = made(folder) / "page.npy"
    try:
        done = run([os.environ["HEADRACE_PYTHON"], str(ROOT / "models/page.py"), str(picture)])
    except OSError as error:
        return Network("page", missing=f"{os.environ['HEADRACE_PYTHON']}: {error.strerror}")
    if done.returncode != 0:
        return Network("page", missing=problem_of(done))
    return replace(network, sources={"x": picture})


def find_peer() -> tuple[list[str], str]:
    """The arguments that ask for onnxruntime, and which Python has it or why none does."""
    python = os.environ.setdefault("HEADRACE_PYTHON", str(ROOT / ".venv/bin/python"))
    try:
        done = run([python, "-c", "import headrace.peer, onnxruntime; print(onnxruntime.__version__)"])
    except OSError as error:
        return [], f"without onnxruntime ({python}: {error.strerror})"
    if done.returncode != 0:
        return [], f"without onnxruntime ({(done.stderr.strip().splitlines() or ['?'])[-1]})"
    return ["--against", "onnxruntime"], f"beside onnxruntime {done.stdout.strip()}"


def verify(network: Network, level: int, threads: int, peer: list[str], program: Path, tally: Tally) -> None:
    """One run against the interpreter."""
    begin = time.monotonic()
    command = [str(program), "verify", *network.arguments(), "--opt-level", str(level), "--threads", str(threads)]
    done = run([*command, *network.inputs(), *peer, "--json"])
    cells = [network.name, str(level), str(threads), "-", "-", "-", "-"]
    if done.returncode in (0, 5) and done.stdout:
        report = json.loads(done.stdout)
        keys = ("error", "peer_error", "difference", "difference_limit")
        cells[3:] = [show_error(report[key]) if key in report else "-" for key in keys]
        problem = "" if report["ok"] and done.returncode == 0 else f"MISMATCH: {done.stdout.strip()}"
    else:
        problem = problem_of(done)
    tally.add(f"{network.name}_level{level}_threads{threads}", cells, problem, begin)


def show_error(error: float | None) -> str:
    """A number of a report; null is infinite."""
    return "infinite" if error is None else f"{error:.2e}"


def same_bytes(network: Network, folder: Path, program: Path, tally: Tally) -> None:
    """Compiled twice, and by one thread and two: the same file."""
    begin = time.monotonic()
    files, problem = [], ""
    for i, jobs in enumerate((1, 1, 2)):
        # The file's name may be part of it, so it is the same one in another folder.
        files.append(made(folder / f"{network.name}-{i}") / "model.so")
        done = run([str(program), "compile", *network.arguments(), "--jobs", str(jobs), "-o", str(files[-1])])
        if done.returncode != 0:
            problem = problem_of(done)
            break
    if not problem and not all(filecmp.cmp(files[0], other, shallow=False) for other in files[1:]):
        problem = f"DIFFERENT BYTES: {', '.join(map(str, files))}"
    if not problem:
        for file in files:
            file.unlink()
    tally.add(f"{network.name}_same_bytes", [network.name, "3", "same bytes", "", "", "", ""], problem, begin)


def with_artifact(network: Network, args: argparse.Namespace, tally: Tally) -> None:
    """Compiles one network to a file, and checks the memory and outputs of its runs."""
    begin = time.monotonic()
    artifact = made(args.folder / f"{network.name}-artifact") / "model.so"
    done = run([str(args.program), "compile", *network.arguments(), "-o", str(artifact)])
    if done.returncode != 0:
        tally.add(f"{network.name}_artifact", [network.name, "3", "artifact"] + [""] * 4, problem_of(done), begin)
        return
    memory(network, artifact, args, tally, begin)
    if network.kept:
        beside_what_is_kept(network, artifact, args, tally)
    artifact.unlink()


def memory(network: Network, artifact: Path, args: argparse.Namespace, tally: Tally, begin: float) -> None:
    """Resident memory after loading and after the first run; allocations of later runs."""
    done = run([str(args.footprint), str(artifact)])
    cells, problem = [network.name, "3", "memory", "-", "-", "", "-"], ""
    if done.returncode in (0, 5) and done.stdout.startswith("{"):
        found = json.loads(done.stdout)
        cells[3:5] = [f"{found[key] / 1e6:.1f} MB" for key in ("load_growth", "run_growth")]
        cells[6] = f"{found['run_limit'] / 1e6:.1f} MB"
        problem = "" if done.returncode == 0 else f"TOO MUCH: {done.stdout.strip()}"
    else:
        problem = problem_of(done)
    tally.add(f"{network.name}_memory", cells, problem, begin)


def beside_what_is_kept(network: Network, artifact: Path, args: argparse.Namespace, tally: Tally) -> None:
    """Outputs against those of onnxruntime in expected/."""
    begin = time.monotonic()
    limit = KEPT_LIMITS.get(network.kept, expected.LIMIT)
    cells, problem = [network.name, "3", "kept", "", "", "-", f"{limit:.2e}"], ""
    outputs = str(artifact.parent / "outputs")
    done = run([str(args.program), "run", str(artifact), *network.inputs(), "--output-dir", outputs, "--json"])
    if done.returncode == 0:
        files = [Path(output["file"]) for output in json.loads(done.stdout)["outputs"]]
        try:
            off = expected.check(network.kept, network.path, network.sources, files)
            cells[5] = f"{off:.2e}"
            problem = "" if off <= limit else f"MISMATCH: {off} from what expected/ has of onnxruntime"
        except ValueError as error:
            problem = str(error)
    else:
        problem = problem_of(done)
    tally.add(f"{network.name}_kept", cells, problem, begin)


def made(folder: Path) -> Path:
    """The folder, made where it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def around_passes(network: Network, folder: Path, opt: Path, tally: Tally) -> None:
    """Text and JSON read back as the same program before and after each pass."""
    begin = time.monotonic()
    text = made(folder) / f"{network.name}-passes.relay"
    command = [str(opt), *network.arguments(), "--passes", "canonical,native", "--verify-each", "--verify-text"]
    done = run([*command, "--hide-data", "-o", str(text)])
    problem = problem_of(done) if done.returncode != 0 else ""
    text.unlink(missing_ok=True)
    tally.add(f"{network.name}_around_passes", [network.name, "3", "text, JSON", "", "", "", ""], problem, begin)


def through_files(network: Network, folder: Path, opt: Path, tally: Tally) -> None:
    """Printed and read back by files: the second print is the first, with weights aside and in the metadata."""
    begin = time.monotonic()
    folder = made(folder / f"{network.name}-text")
    a, b = folder / "a.relay", folder / "b.relay"
    weights = [folder / "a.safetensors", folder / "b.safetensors"]
    steps = [
        [*network.arguments(), "-o", str(a), "--weights", str(weights[0])],
        [str(a), "--input-weights", str(weights[0]), "-o", str(b), "--weights", str(weights[1])],
        [str(a), "--input-weights", str(weights[0]), "-o", str(folder / "c.relay")],
        [str(folder / "c.relay"), "-o", str(folder / "d.relay")],
    ]
    problem = ""
    for step in steps:
        done = run([str(opt), *step])
        if done.returncode != 0:
            problem = problem_of(done)
            break
    if not problem:
        pairs = ((a, b), weights, (folder / "c.relay", folder / "d.relay"))
        unlike = [first.name for first, second in pairs if not filecmp.cmp(first, second, shallow=False)]
        problem = f"ANOTHER TEXT: {', '.join(unlike)} in {folder}" if unlike else ""
    if not problem:
        shutil.rmtree(folder)
    tally.add(f"{network.name}_through_files", [network.name, "-", "files", "", "", "", ""], problem, begin)


def check_all(found: list[Network], peer: list[str], args: argparse.Namespace) -> Tally:
    """Every check of every network, args.jobs at once."""
    tally = Tally()
    with ThreadPoolExecutor(max_workers=args.jobs) as pool:
        jobs = []
        for network in found:
            if network.missing:
                tally.cases.append(junit.Case(network.name, "skipped", network.missing))
                tally.rows.append([network.name, *[""] * 7, f"skipped: {network.missing}"])
                continue
            for level, threads in itertools.product(LEVELS, THREADS):
                jobs.append(pool.submit(verify, network, level, threads, peer, args.program, tally))
            if network.name == "page":
                continue  # the detector again, on another input
            jobs.append(pool.submit(same_bytes, network, args.folder, args.program, tally))
            jobs.append(pool.submit(with_artifact, network, args, tally))
            for check in (around_passes, through_files):
                jobs.append(pool.submit(check, network, args.folder, args.opt, tally))
        for job in jobs:
            job.result()
    return tally


def rewrite_expected(found: list[Network], folder: Path) -> None:
    """The outputs to keep, of the networks whose inputs are the same everywhere."""
    for network in found:
        if network.kept:
            outputs = made(folder / f"{network.name}-expected")
            expected.rewrite(network.kept, network.path, network.sources, os.environ["HEADRACE_PYTHON"], outputs)


def show(rows: list[list[str]]) -> None:
    """The table."""
    heading = ["model", "level", "threads", "error", "peer's", "difference", "limit", "seconds", "verdict"]
    rows = [heading, *sorted(rows, key=lambda row: row[:3])]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--opt", type=Path, required=True, help="the program headrace-opt")
    parser.add_argument("--write-zoo", type=Path, required=True)
    parser.add_argument("--footprint", type=Path, required=True, help="the program of footprint.cc")
    parser.add_argument("--folder", type=Path, required=True, help="gets the generated models")
    parser.add_argument("--only", help=f"of {', '.join(EVERYTHING)}")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="checks at once")
    parser.add_argument("--rewrite-expected", action="store_true", help="write expected/ anew, with onnxruntime")
    parser.add_argument("--junit", type=Path)
    return parser.parse_args()


def main() -> int:
    """Checks all; 1 when something is off."""
    args = parse_arguments()
    begin = time.monotonic()
    is_full = os.environ.get("HEADRACE_TEST_SIZE", "ci") == "full"
    wanted = args.only.split(",") if args.only else list(EVERYTHING) if is_full else list(IN_CI)
    unknown = [name for name in wanted if name not in EVERYTHING]
    if unknown:
        print(f"no model is called {', '.join(unknown)}; there are {', '.join(EVERYTHING)}", file=sys.stderr)
        return 2
    peer, which = find_peer()
    found = networks(wanted, is_full, args)
    if args.rewrite_expected:
        rewrite_expected(found, args.folder)
    tally = check_all(found, peer, args)
    show(tally.rows)
    failed = sum(case.outcome == "failed" for case in tally.cases)
    size = "full" if is_full else "ci"
    print(f"size {size}, {which}: {len(tally.cases)} cases, {failed} failed, {time.monotonic() - begin:.0f} s")
    if args.junit:
        junit.write_junit(args.junit, "models", tally.cases)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
