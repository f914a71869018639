"""Tests how examples/demo.py reads a page's map of probabilities. Needs numpy."""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
import demo


def page_map(share):
    found = np.zeros((1, 1, 200, 200), np.float32)
    found[0, 0, : round(200 * share)] = 0.9
    return found


def test_a_right_map_is_ok():
    rows = demo.judge_page(page_map(0.145), page_map(0.145), np, "peer 1")
    assert [row.ok for row in rows] == [True, True]
    assert rows[0].measured == "14.50% (peer 1: 14.50%)"


def test_another_share_or_another_map_is_off():
    assert [row.ok for row in demo.judge_page(page_map(0.2), page_map(0.2), np, "p")] == [False, True]
    other = page_map(0.145)
    other[0, 0, 50, 50] = 0.01
    assert [row.ok for row in demo.judge_page(other, page_map(0.145), np, "p")] == [True, False]


def test_nan_is_off():
    broken = page_map(0.145)
    broken[0, 0, 99, 99] = np.nan
    assert demo.judge_page(broken, page_map(0.145), np, "p")[1].ok is False


def test_text_is_what_is_marked_and_no_speck():
    found = page_map(0)[0, 0]
    found[20:30, 40:120] = 0.8
    found[60:63, 10:13] = 0.8
    # 800 pixels, 180 around: outwards by 1.5 * 800 / 180 = 7.
    assert demo.find_text(found, np) == [(13, 33, 37, 127)]


def test_ink_is_change_inside_a_cell():
    picture = np.zeros((4, 4), np.float32)
    picture[0, 0], picture[3, 3] = 2, 1
    assert demo.ink_of(picture, 2, 2) == [[1, 0], [0, 0.5]]
