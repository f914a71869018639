"""Tests the pictures that terminal_picture draws. Standard library only."""

import io
import sys
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))
import terminal_picture


def stdout_of(encoding):
    return mock.patch.object(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding=encoding))


class TerminalPictureTest(unittest.TestCase):
    def test_shades_fit_the_terminal(self):
        with stdout_of("utf-8"):
            self.assertEqual([terminal_picture.shade(x) for x in (-1, 0, 0.5, 1, 2)], [" ", " ", "▒", "█", "█"])
        with stdout_of("ascii"):
            self.assertEqual(terminal_picture.shade(1), "#")

    def test_pictures_stand_side_by_side(self):
        with stdout_of("ascii"):
            drawn = terminal_picture.draw_side_by_side([[[0, 1], [1, 0]], [[1, 1], [0, 0]]], ["a", "b"])
        self.assertEqual(drawn, "  ##  ####\n##\na     b")

    def test_areas_are_pixels_that_touch(self):
        marked = [(0, 0), (1, 1), (1, 2), (5, 0), (5, 4), (6, 3)]
        areas = terminal_picture.find_areas(marked)
        self.assertEqual([area.box for area in areas], [(0, 0, 2, 3), (5, 0, 6, 1), (5, 3, 7, 5)])
        self.assertEqual([area.pixels for area in areas], [3, 1, 2])
        self.assertEqual(terminal_picture.find_areas([]), [])

    def test_boxes_grow_inside_the_picture(self):
        area = terminal_picture.Area((2, 2, 6, 10), 32)  # 32 pixels, 24 around: by 1.5 * 32 / 24 = 2
        self.assertEqual(terminal_picture.grow(area, 100, 11, 1.5), (0, 0, 8, 11))

    def test_boxes_are_scaled_outwards(self):
        self.assertEqual(terminal_picture.scale_box((3, 3, 5, 9), 0.5, 0.25), (1, 0, 3, 3))

    def test_boxes_are_drawn_over_ink(self):
        with stdout_of("ascii"):
            drawn = terminal_picture.draw_boxes([[0] * 5, [0, 0, 1, 0, 1], [0] * 5], [(0, 1, 3, 4)])
        self.assertEqual(drawn, " +-+\n |#|#\n +-+")

    def test_a_box_past_the_edge_is_cut(self):
        with stdout_of("ascii"):
            self.assertEqual(terminal_picture.draw_boxes([[0, 0]], [(0, 1, 2, 4)]), " +")

    def test_table_columns_align(self):
        self.assertEqual(terminal_picture.draw_table([["a", "bb"], ["ccc", ""]]), "a    bb\n---  --\nccc")


if __name__ == "__main__":
    unittest.main()
