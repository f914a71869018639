"""op_case_file.py writes the whole file, and keeps numbers whose last bits alone differ."""

import pytest

pytest.importorskip("numpy")
import op_case_file


def block(name: str, tolerance: str, out: str, program: str = "fn () { x }") -> list[str]:
    return [f"case {name}", f"program {program}", f"tolerance {tolerance}", f"out {out}", "end"]


@pytest.mark.parametrize(
    ("new", "old", "kept"),
    [
        ("float64 1 2 0.5 1.0471975511965976", "float64 1 2 0.5 1.0471975511965979", True),
        ("float32 0  0.1", "float32 0  0.10000001", True),
        ("float64 1 1 0.5", "float64 1 1 0.50000001", False),  # another number
        ("float32 1 1 nan", "float32 1 1 inf", False),
        ("float64 1 2 0.5 0.5", "float64 2 1 2 0.5 0.5", False),  # another shape
        ("int32 1 1 3", "int32 1 1 4", False),
    ],
)
def test_which_numbers_are_kept(new, old, kept):
    expected = block("a", "1e-6", old if kept else new)
    assert op_case_file.merged(block("a", "1e-6", new), block("a", "1e-6", old)) == expected


def test_a_changed_case_and_one_without_tolerance_are_written_anew():
    new, old = "float32 0  0.1", "float32 0  0.10000001"
    exact = block("a", "0", new)
    assert op_case_file.merged(exact, block("a", "0", old)) == exact
    other = block("a", "1e-6", new, "fn () { y }")
    assert op_case_file.merged(other, block("a", "1e-6", old)) == other


def test_the_file_has_the_new_cases_alone(tmp_path):
    file = tmp_path / "cases.txt"
    op_case_file.write(block("a", "0", "int32 0 1"), file)
    op_case_file.write(block("b", "0", "int32 0 2"), file)
    head, *lines = file.read_text(encoding="utf-8").splitlines()
    assert head.startswith("# Written by ")
    assert lines == block("b", "0", "int32 0 2")
    assert list(tmp_path.iterdir()) == [file]
