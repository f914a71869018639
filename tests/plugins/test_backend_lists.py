#!/usr/bin/env python3
"""Checks that each backend of src/backends is in all the lists that ARCHITECTURE.md names ("A backend's places")."""

from __future__ import annotations

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BACKENDS = ROOT / "src/backends"


def read(file: str) -> str:
    return (ROOT / file).read_text()


def option_of(name: str) -> str:
    """Returns the CMake option that the backend's row in all_backends.cc names; empty without a row."""
    row = re.search(rf'\{{"{name}",.*?"(USE_\w+)"', read("src/driver/all_backends.cc"), re.DOTALL)
    return row[1] if row else ""


def definition_of(option: str) -> str:
    """Returns the definition for C++ that says whether the option is on."""
    return "HEADRACE_" + option


def missing(name: str, has_run: bool, is_plugin: bool) -> list[str]:
    """Returns the lists that lack a backend."""
    cmake, option = read("CMakeLists.txt"), option_of(name)
    room = rf"headrace_backend_plugin\({name}\b" if is_plugin else rf"headrace_room\(backends/{name}/compile\b"
    runs = [rf"headrace_room\(backends/{name}/run\b"] if has_run else []
    loader = rf'register_own_loader\("{name}"\)|backends::{name}::register_loaders\(\)'
    places = {
        "src/driver/all_backends.cc": bool(option),
        "CMakeLists.txt: the option": bool(option) and f'option({option} "Build the backend {name}' in cmake,
        "CMakeLists.txt: the rooms": all(re.search(line, cmake) for line in [room, *runs]),
        "CMakeLists.txt: all_backends.cc": bool(option) and f"{definition_of(option)}=$<BOOL:${{{option}}}>" in cmake,
        "src/load/all_loaders.cc": not (has_run or is_plugin)
        or bool(re.search(loader, read("src/load/all_loaders.cc"))),
        "python/headrace/_compat/partition_for.py": bool(
            re.search(rf'^_BACKENDS = "[^"]*\b{name}\b', read("python/headrace/_compat/partition_for.py"), re.MULTILINE)
        ),
        "tests/porting/without_backends.cc": f'tells("{name}"' in read("tests/porting/without_backends.cc"),
        "tests/plugins/CMakeLists.txt": name == "null"  # it takes no op
        or (bool(option) and f"{name}:{option}" in read("tests/plugins/CMakeLists.txt")),
    }
    for file in ("cmake/HeadraceInstall.cmake", "python/CMakeLists.txt", "python/wheel.cmake", "tools/wheel.py"):
        places[file] = not is_plugin or f"headrace_{name}" in read(file)
    return [place for place, is_there in places.items() if not is_there]


class BackendLists(unittest.TestCase):
    def test_each_backend_is_in_all_lists(self) -> None:
        names = sorted(folder.name for folder in BACKENDS.iterdir() if folder.is_dir() and folder.name != "plugin")
        self.assertGreaterEqual(len(names), 4)
        for name in names:
            folder = BACKENDS / name
            has_run, is_plugin = (folder / "run").is_dir(), (folder / "entry.cc").exists()
            with self.subTest(name):
                self.assertEqual(missing(name, has_run, is_plugin), [])

    def test_a_backend_without_entries_lacks_them_all(self) -> None:
        self.assertEqual(len(missing("unlisted", True, False)), 8)
        self.assertEqual(len(missing("unlisted", False, False)), 7)

    def test_the_backends_in_python_are_the_same_in_both_languages(self) -> None:
        row = re.search(r"kInPython = [^;]*\(\{([^}]*)\}\);", read("src/driver/all_backends.cc"))
        table = re.search(r"^_OWN = \{(.*?)^\}", read("python/headrace/backend/__init__.py"), re.DOTALL | re.MULTILINE)
        names = [re.findall(r'"(\w+)"', row[1]) if row else [], re.findall(r'^    "(\w+)":', table[1], re.MULTILINE)]
        folder = ROOT / "python/headrace/backends"
        found = sorted(package.parent.name for package in folder.glob("*/__init__.py"))
        self.assertEqual([sorted(one) for one in names], [found, found])

    def test_the_page_names_the_lists(self) -> None:
        page = read("ARCHITECTURE.md")
        section = page[page.index("## A backend's places") :].split("\n## ")[0]
        for place in missing("unlisted", True, False):
            self.assertIn(place.split(":")[0], section)


if __name__ == "__main__":
    unittest.main()
