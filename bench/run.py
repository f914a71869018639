"""Measured benchmarks over the release build: ./dev bench SUITE.

probes   what the machine can do: multiply-adds, reads from L2, L3 and memory, the hop from core to core.
kernels  listed shapes of convolutions and dense layers, each as a share of what these probes, made in the same process,
         allow: max(operations / FMA peak, bytes / bandwidth) by the best time. Inputs and weights are hot.
models   networks of the test kit's generator (seeded random weights) at full resolution, and of texts at 128 tokens
         (bert_base) or 64 (gpt2): seconds a run of the compiled model and of each peer in the same rounds, taking
         turns; seconds to compile. `ratio` is ours by theirs, of medians, `best ratio` of the best rounds: below 1 is
         faster. The hop from core to core is probed before and after each, and runs of several threads are split into
         parts with a probe between them: the last two columns have the best ratios of the parts with hops below 120 ns
         and from 150 ns on, because a loop of several threads waits for several hops. The line of a peer that refuses
         a network ends with its reason.
lstm     an LSTM layer of 128 units over one sequence of 100 steps, as `models` times networks. Give --rounds 200 or
         more, since a run takes less than a millisecond.
passes   a chain of 10,000 ops and the models: seconds to infer all types and for the optimising passes, without
         lowering and code generation.
labels   least-cost labels of 100,000 nodes in stacked residual blocks and attention layers, with 8 labels: seconds of
         the exact method and of moves, the cost found and its gap to a lower bound.
regions  regions of another compiler in programs of 100,000 ops, by AnnotateTarget, MergeCompilerRegions and
         PartitionGraph without type inference: processor seconds of each, and their ratio to those of a tenth of the
         program.
split    stages of a pipeline over four devices for graphs shaped like networks and for 1,000,000 nodes in residual
         blocks: seconds, the period of the plan, and its gap to a lower bound.
placement
         the plan of least cost over onednn,ccompiler, by modelled and by measured costs, beside native code, onednn
         alone and the order of the list, in the same rounds on one thread. Ratios are to the fastest of those three.
onednn   networks on the backend onednn, on one thread, beside the same primitives called by hand in the same layouts,
         and beside onnxruntime; and what each kind of primitive reaches.
pipeline streams through stages that do nothing, or sleep: the cost of one more stage and of one more group, the round
         trip of one request, large tensors by small ones, and the throughput of sleeping stages by its bound; beside
         oneTBB and GStreamer where they were there when this was built (./dev setup --peers).
predict  12 pipelines of sleeping stages, and ResNet-50 (or --models) split in two: requests per second as the simulator
         predicts them, as achieved, and the ratio; limits are 5 % and 15 %.
compile  wall seconds and peak memory of `headrace compile`, the peak by the size of the model's file, the time of a
         load and the peak memory of a run; --beside FOLDER, the folder `bin` of another build, takes turns with it.
cache    seconds of a compile in Python, and of the same compile in further processes, which find its result in a cache
         on disk (`hr.compile(cache=)`). `ratio` is the median of these by the compile.
scaling  programs of some forty shapes, each at two sizes, one twice the other: seconds and allocated bytes of parsing,
         printing, comparing, inferring, each pass and so on, and their ratios: 2 is linear, 4 quadratic; over 2.6 is
         marked with `!`. --size 25 makes chains of 100,000 ops.

Numbers depend on the machine and on what else runs on it: read ratios, and the best beside the median.
Examples: ./dev bench probes
          ./dev bench kernels --only depthwise --rounds 100
          ./dev bench models --models resnet50,squeezenet1_1 --threads 1,2 --json
          ./dev bench placement --rounds 60
          ./dev bench compile --models resnet50 --rounds 5 --beside ../before/build/release/bin
          ./dev bench scaling --only globals --work parse --size 5
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/models"))
import compiles  # noqa: E402
import expected  # noqa: E402
import hops  # noqa: E402
import kept  # noqa: E402
import lstm  # noqa: E402
import onednn  # noqa: E402
import placement  # noqa: E402
import text_inputs  # noqa: E402

CONVOLUTIONAL = ["squeezenet1_1", "mobilenet_v2", "shufflenet_v2", "resnet18", "resnet50", "densenet121"]
MODELS = ["mlp", *CONVOLUTIONAL, "inception_v3", "alexnet", "vgg16", "vit_base16", "bert_base", "gpt2"]
PEERS = ["onnxruntime", "openvino", "openvino-default", "ncnn", "torch-compile"]
SHORT = ["mobilenet_v2", "resnet50"]
PLACED = [*SHORT, "squeezenet1_1", "mlp"]  # models of placement
DEFAULTS = {"placement": PLACED, "predict": ["resnet50"]}
COLUMNS = ("best_seconds", "median_seconds", "peer_best_seconds", "peer_median_seconds")
TIMES = ["best ms", "median ms", "peer best", "peer median"]
HEADING = ["model", "peer", "threads", *TIMES, "ratio", "best ratio", "compile s", "hop ns", *hops.CLASSES]
USER_ERROR = 3  # the program's exit code for what the user gave, such as a model that a peer refuses


def run(*command: str | Path) -> str:
    """The stdout of a command; ends the program with its exit code when it fails."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.returncode)
    return done.stdout


class RefusedByPeer(Exception):
    """A peer cannot take a model; the sentence is the peer's."""


def run_beside(peer: str, *command: str | Path) -> str:
    """As run(). RefusedByPeer when the peer is installed, but refuses the model."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    refusal = f"headrace: {peer}: "
    for line in done.stderr.splitlines():
        if done.returncode == USER_ERROR and line.startswith(refusal):
            raise RefusedByPeer(line.removeprefix(refusal))
    sys.stderr.write(done.stderr)
    if done.returncode != 0:
        sys.exit(done.returncode)
    return done.stdout


def make_model(name: str, args: argparse.Namespace) -> Path:
    """The generated model's file; made once."""
    path = args.folder / f"{name}.onnx"
    if not path.is_file():
        args.folder.mkdir(parents=True, exist_ok=True)
        run(args.bin / "write_zoo", args.folder, name)
    return path


def input_options(name: str, folder: Path) -> list[str]:
    """The options that name the inputs of a model of texts, which are written to the folder. Other models read random
    numbers that headrace bench makes; an artifact does not say which ids its tables have, and which masks are valid."""
    options = []
    if name in text_inputs.NAMES:
        for key, array in text_inputs.inputs_of(name, is_full=True).items():
            file = folder / f"{name}-{key}.npy"
            expected.write_npy(file, array)
            options += ["--input", f"{key}={file}"]
    return options


def measure(model: Path, args: argparse.Namespace) -> list[dict]:
    """Measures one model beside each peer; returns a report for each."""
    artifact = model.with_suffix(".so")
    begin = time.perf_counter()
    run(args.bin / "headrace", "compile", model, "-o", artifact, "--jobs", "2", "--quiet")
    seconds = time.perf_counter() - begin
    shared = {"model": model.stem, "compile_seconds": seconds}
    return [measure_beside(peer, model, args) | shared for peer in args.against.split(",")]


def measure_beside(peer: str, model: Path, args: argparse.Namespace) -> dict:
    """Measures one compiled model beside one peer, with each number of threads."""
    options = ["--json", "--quiet", *input_options(model.stem, args.folder)]
    if peer != "none":
        options += ["--against", peer, "--against-model", model]
    headrace, artifact = args.bin / "headrace", model.with_suffix(".so")
    report = {"results": [], "hop_nanoseconds": [probe_hop(args)]}
    try:
        for threads in args.threads.split(","):
            found = hops.measure(
                threads,
                args.rounds,
                lambda *words: json.loads(run_beside(peer, headrace, "bench", artifact, *words, *options)),
                lambda: probe_hop(args),
            )
            report |= {key: value for key, value in found.items() if key != "results"}
            report["results"] += found["results"]
    except RefusedByPeer as refusal:
        return {"peer": peer, "results": [], "refusal": str(refusal)}
    report["hop_nanoseconds"].append(probe_hop(args))
    return report


def rows_of(report: dict) -> list[list[str]]:
    """The lines of the table for one model beside one peer. The reason why a peer refused it is one cell more."""
    if "refusal" in report:
        return [[report["model"], report["peer"], *["-"] * (len(HEADING) - 2), report["refusal"]]]
    rows = []
    for result in report["results"]:
        row = [report["model"], report["peer"] or "-", str(result["threads"])]
        row += [f"{result[key] * 1e3:.2f}" if key in result else "-" for key in COLUMNS]
        row.append(f"{result['ratio']:.2f}" if "ratio" in result else "-")
        is_peer = "peer_best_seconds" in result
        row.append(f"{result['best_seconds'] / result['peer_best_seconds']:.2f}" if is_peer else "-")
        row.append(f"{report['compile_seconds']:.1f}")
        row.append(" ".join("-" if hop is None else f"{hop:.0f}" for hop in report["hop_nanoseconds"]))
        row += hops.cells_of(result)
        rows.append(row)
    return rows


def print_table(rows: list[list[str]]) -> None:
    """Columns aligned as the heading has them; a cell more ends its line as it is."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row, widths, strict=False)]
        print("  ".join(cells + row[len(widths) :]))


def probe_hop(args: argparse.Namespace) -> float | None:
    """Nanoseconds from one core to another; None where there is one core."""
    report = json.loads(run(args.bin / "headrace-bench", "probes", "--only-hop", "--json"))
    return report["hop_nanoseconds"]


def bench_models(args: argparse.Namespace) -> None:
    """Measures the models."""
    measure_all([make_model(name, args) for name in args.models.split(",")], args)


def bench_lstm(args: argparse.Namespace) -> None:
    """Measures one layer."""
    measure_all([lstm.write_model(args.folder)], args)


def measure_all(models: list[Path], args: argparse.Namespace) -> None:
    """Measures the models and prints a table, or one JSON object."""
    reports = []
    for model in models:
        print(f"measuring {model.stem}", file=sys.stderr)
        reports += measure(model, args)
    if args.json:
        print(json.dumps({"models": reports}, indent=2))
        return
    print_table([HEADING] + [row for report in reports for row in rows_of(report)])


def bench_kernels(args: argparse.Namespace) -> None:
    """Passes on to headrace-bench, once a number of threads."""
    reports = []
    for threads in args.threads.split(","):
        options = ["--threads", threads, "--rounds", str(args.rounds), "--only", args.only]
        if args.json:
            reports.append(json.loads(run(args.bin / "headrace-bench", "kernels", *options, "--json")))
        else:
            print(run(args.bin / "headrace-bench", "kernels", *options), end="")
    if args.json:
        print(json.dumps(reports, indent=2))


def bench_passes(args: argparse.Namespace) -> None:
    """Passes on to headrace-bench."""
    models = [make_model(name, args) for name in args.models.split(",")]
    options = ["--rounds", str(args.rounds), *(["--json"] if args.json else [])]
    print(run(args.bin / "headrace-bench", "passes", *options, *models), end="")


def bench_labels(args: argparse.Namespace) -> None:
    """Passes on to headrace-bench."""
    options = ["--rounds", str(args.rounds), *(["--json"] if args.json else [])]
    print(run(args.bin / "headrace-bench", "labels", *options), end="")


def bench_regions(args: argparse.Namespace) -> None:
    """Passes on to headrace-bench."""
    options = ["--rounds", str(args.rounds), *(["--json"] if args.json else [])]
    print(run(args.bin / "headrace-bench", "regions", *options), end="")


def bench_split(args: argparse.Namespace) -> None:
    """Passes on to headrace-bench."""
    options = ["--rounds", str(args.rounds), *(["--json"] if args.json else [])]
    print(run(args.bin / "headrace-bench", "split", *options), end="")


def bench_pipeline(args: argparse.Namespace) -> None:
    """Passes on to headrace-bench."""
    options = ["--rounds", str(args.rounds), *(["--json"] if args.json else [])]
    print(run(args.bin / "headrace-bench", "pipeline", *options), end="")


def bench_predict(args: argparse.Namespace) -> None:
    """Compares the simulator of pipelines with what it predicts."""
    options = ["--rounds", str(args.rounds), "--json"]
    report = json.loads(run(args.bin / "headrace-bench", "predict", *options))
    report["models"] = [predict_model(name, args) for name in args.models.split(",")]
    if args.json:
        print(json.dumps(report, indent=2))
        return
    rows = [["pipeline", "predicted", "achieved", "ratio", "limit", ""]]
    for one in report["pipelines"] + report["models"]:
        rates = [f"{one[key]:.1f}" for key in ("predicted_per_second", "achieved_per_second")]
        outside = "" if one["holds"] else "outside"
        rows.append([one["name"], *rates, f"{one['ratio']:.3f}", f"1 +- {one['limit']:.2f}", outside])
    print_table(rows)


def predict_model(name: str, args: argparse.Namespace) -> dict:
    """Splits a model in two stages, and runs a stream beside its prediction."""
    model, limit = make_model(name, args), 0.15
    file = model.with_suffix(".pipeline.so")
    cpus = sorted(os.sched_getaffinity(0))
    places = ["--cpus", f"{cpus[0]}/{cpus[1]}"] if len(cpus) > 1 else []
    split = json.loads(
        run(args.bin / "headrace", "pipeline", "split", model, "--stages", "2", *places, "-o", file, "--json")
    )
    options = ["--rounds", str(args.rounds), "--requests", "20", "--simulate", "--json", "--quiet"]
    report = json.loads(run(args.bin / "headrace", "pipeline", "bench", file, *options))
    ratio = report["simulation"]["achieved_by_predicted"]
    return {
        "name": f"{name} in {len(split['stages'])} stages",
        "predicted_per_second": report["simulation"]["requests_per_second"],
        "achieved_per_second": report["stream"]["median_per_second"],
        "ratio": ratio,
        "limit": limit,
        "holds": 1 - limit <= ratio <= 1 + limit,
    }


def bench_placement(args: argparse.Namespace) -> None:
    """Compares plans by the clock."""
    models = [make_model(name, args) for name in args.models.split(",")]
    placement.bench(models, args, run, input_options, print_table)


def bench_onednn(args: argparse.Namespace) -> None:
    """Compares the backend onednn with oneDNN called by hand and with onnxruntime."""
    if not (args.bin / "onednn-by-hand").is_file():
        sys.exit(f"bench: {args.bin / 'onednn-by-hand'} is missing: it is built with the tests and USE_ONEDNN=ON")
    onednn.bench([make_model(name, args) for name in args.models.split(",")], args, run, print_table)


def bench_compile(args: argparse.Namespace) -> None:
    """Times compiles and loads, and their memory."""
    compiles.bench([make_model(name, args) for name in args.models.split(",")], args, input_options, print_table)


def bench_cache(args: argparse.Namespace) -> None:
    """Times compiles whose results are kept."""
    kept.bench([make_model(name, args) for name in args.models.split(",")], args, run, print_table)


def bench_scaling(args: argparse.Namespace) -> None:
    """Passes on to headrace-bench."""
    options = ["--shape", args.only, "--work", args.work, "--size", str(args.size)]
    print(run(args.bin / "headrace-bench", "scaling", *options, *(["--json"] if args.json else [])), end="")


def bench_probes(args: argparse.Namespace) -> None:
    """Passes on to headrace-bench."""
    print(run(args.bin / "headrace-bench", "probes", *(["--json"] if args.json else [])), end="")


SUITES = {
    "probes": bench_probes,
    "kernels": bench_kernels,
    "models": bench_models,
    "lstm": bench_lstm,
    "passes": bench_passes,
    "labels": bench_labels,
    "regions": bench_regions,
    "split": bench_split,
    "placement": bench_placement,
    "onednn": bench_onednn,
    "pipeline": bench_pipeline,
    "predict": bench_predict,
    "compile": bench_compile,
    "cache": bench_cache,
    "scaling": bench_scaling,
}


def read_peers(text: str) -> str:
    """The argument of --against, checked."""
    if text != "none":
        for name in text.split(","):
            if name not in PEERS:
                raise argparse.ArgumentTypeError(f"no peer {name}; there are {', '.join(PEERS)}, or none")
    return text


def make_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="./dev bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suite", choices=list(SUITES))
    parser.add_argument(
        "--models",
        help=f"models, passes, placement, predict, onednn, compile, cache: of {','.join(MODELS)} "
        f"(default: {','.join(SHORT)}; of placement {','.join(PLACED)}, of predict resnet50)",
    )
    parser.add_argument("--only", default="", help="kernels, scaling: kernels, shapes whose name contains this")
    parser.add_argument("--work", default="", help="scaling: kinds of work whose name contains this")
    parser.add_argument("--size", type=float, default=1, help="scaling: times the size of each shape (default: 1)")
    parser.add_argument("--threads", default="1", help="numbers of threads, as 1,2 (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=15, help="(default: %(default)s; not of scaling)")
    parser.add_argument(
        "--against",
        default="onnxruntime",
        type=read_peers,
        help=f"models, lstm, onednn: the peers, of {','.join(PEERS)}, or none (default: %(default)s)",
    )
    parser.add_argument("--beside", type=Path, help="compile: the folder `bin` of another build")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--bin", type=Path, default=ROOT / "build/release/bin", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, default=ROOT / "build/bench", help=argparse.SUPPRESS)
    return parser


def main() -> None:
    """Runs the suite."""
    parser = make_parser()
    args = parser.parse_args()
    if args.models is None:
        args.models = ",".join(DEFAULTS.get(args.suite, SHORT))
    unknown = [name for name in args.models.split(",") if name not in MODELS]
    if unknown:
        parser.error(f"no model {', '.join(unknown)}; there are {', '.join(MODELS)}")
    for program in ("headrace-bench", "write_zoo"):
        if not (args.bin / program).is_file():
            sys.exit(f"bench: {args.bin / program} is missing: it is built with the tests; run ./dev check")
    os.environ.setdefault("HEADRACE_PYTHON", sys.executable)
    # torch-compile compiles for long: parts of the rounds and later calls find here what it has compiled.
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(args.folder.resolve() / "torch"))
    SUITES[args.suite](args)


if __name__ == "__main__":
    main()
