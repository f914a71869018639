"""The table of Relay's tests about regions names tests that exist, and all of Relay's. So does the table of
onnxruntime's tests of its session class.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "src/partition/tests"
# How many test functions each file of Relay v0.18 has.
COUNTS = {
    "test_pass_annotate_target.py": 16,
    "test_pass_merge_compiler_regions.py": 3,
    "test_annotated_regions.py": 2,
    "test_pass_partition_graph.py": 23,
    "test_compiler_function_utils.py": 4,
    "test_target_hooks.py": 3,
}
FILES = {
    "python": "test_regions.py",
    "external": "test_external_codegen.py",
    "hooks": "test_target_hooks.py",
    "backends": "test_regions_on_backends.py",
}

SESSION_FILES = {
    "r": "test_session_runs.py",
    "o": "test_session_options.py",
    "b": "test_session_binding.py",
    "s": "test_session.py",
}


def rows():
    """(file of Relay's, its tests, the cell that names ours) of each row."""
    file = None
    for line in (FOLDER / "upstream_intents.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 2 or not line.startswith("|") or set(cells[0]) <= {"-", " "} or cells[0] == "Relay's test":
            continue
        if cells[0].startswith("**"):
            file = cells[0].strip("*")
        else:
            yield file, re.findall(r"\btest_\w+", cells[0]), cells[1]


def names_in_cpp():
    pattern = re.compile(r"TEST(?:_F|_P)?\((\w+), (\w+)\)")
    files = [*(ROOT / "src/partition").glob("*_test.cc"), *(ROOT / "src/graph").glob("*_test.cc")]
    return {f"{suite}.{name}" for file in files for suite, name in pattern.findall(file.read_text())}


def named(cell):
    """The kind and name of each test that a cell names: "golden", "cpp", or a key of FILES."""
    for part in cell.split(";"):
        prefix, _, names = part.strip().rpartition(": ")
        suite = ""
        for name in names.split(", "):
            if prefix:
                yield prefix, name.strip()
            elif "." in name:
                suite = name.split(".")[0].strip()
                yield "cpp", name.strip()
            elif suite:  # "Annotations.EncloseWhatIsBetweenThem, AreCompleted"
                yield "cpp", f"{suite}.{name.strip()}"
            else:
                yield "golden", name.removeprefix("golden ").strip()


def test_every_row_names_tests_that_exist():
    known = {"cpp": names_in_cpp(), "golden": {file.stem for file in FOLDER.glob("*.relay")}}
    for kind, file in FILES.items():
        known[kind] = set(re.findall(r"(?m)^def (test_\w+)", (Path(__file__).parent / file).read_text()))
    missing = [f"{kind} {name}" for _, _, cell in rows() for kind, name in named(cell) if name not in known[kind]]
    assert missing == []


@pytest.mark.parametrize("file", COUNTS)
def test_no_test_of_relay_is_left_out(file):
    tests = [name for of, names, _ in rows() for name in names if of == file]
    assert len(tests) == len(set(tests)) == COUNTS[file]


def session_answers():
    """The answers of the table of onnxruntime's tests: our tests, or why there is none."""
    for line in (Path(__file__).parent / "onnxruntime_sessions.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and cells[0] not in ("intent", "---"):
            yield cells[-1]


def test_intents_of_onnxruntimes_session_have_tests_or_reasons():
    known = {
        kind: set(re.findall(r"(?m)^def (test_\w+)", (Path(__file__).parent / file).read_text()))
        for kind, file in SESSION_FILES.items()
    }
    answers = list(session_answers())
    answered = [answer for answer in answers if not re.fullmatch("not there: .+", answer)]
    assert len(answered) >= 60
    for answer in answered:
        tests = re.findall(r"\b([robs]): (test_\w+(?:, test_\w+)*)", answer)
        assert tests, answer
        assert [
            f"{kind}: {name}" for kind, names in tests for name in names.split(", ") if name not in known[kind]
        ] == []
