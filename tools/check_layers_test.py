#!/usr/bin/env python3
"""Plants one violation of each kind into a small house and sees check_layers.py catch exactly it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().parent / "check_layers.py"

SOUND_HOUSE = {
    "CMakeLists.txt": """
headrace_room(base         LEVEL 0 SIDE S)
headrace_room(artifact     LEVEL 3 SIDE S)
headrace_room(ir           LEVEL 3 SIDE C)
headrace_room(runtime      LEVEL 4 SIDE R)
headrace_room(codegen      LEVEL 8 SIDE C)
headrace_plugin(codegen/llvm LEVEL 9 SIDE C)
headrace_room(lower        LEVEL 9 SIDE C LINK m)
headrace_room(lower/tiles  LEVEL 9 SIDE C TESTS lower)
headrace_room(lower/rules  LEVEL 9 SIDE C)
headrace_room(frontend/one LEVEL 9 SIDE C)
headrace_room(frontend/two LEVEL 9 SIDE C)
""",
    "include/headrace/reason.h": "#include <stdint.h>\n",
    "src/base/error.h": "#include <string>\n\n#include <headrace/reason.h>\n",
    "src/base/error.cc": '#include "base/error.h"\n',
    "src/base/error_test.cc": '#include "lower/lower.h"\n#include "tests/kit/kit.h"\n',
    "src/artifact/manifest.h": '#include "base/error.h"\n',
    "src/artifact/manifest.cc": "#include <nlohmann/json.hpp>\n",
    "src/ir/expr.h": '#include "base/error.h"\n',
    "src/runtime/pool.h": '#include "artifact/manifest.h"\n',
    "src/codegen/c.h": '#include "ir/expr.h"\n',
    "src/codegen/llvm/emit.cc": '#include <llvm/IR/IRBuilder.h>\n#include "codegen/c.h"\n',
    "src/lower/lower.h": '#include "lower/tiles/tile.h"\n',
    "src/lower/tiles/tile.h": '/* a room and its sub-room share a level\n#include "no/such.h" */\n',
    "src/lower/tiles/tile_test.cc": '#include "frontend/one/read.h"\n#include "tests/kit/kit.h"\n',
    "src/lower/rules/rule.h": '#include "lower/tiles/tile.h"\n',
    "src/frontend/one/read.h": '#include "base/error.h"\n',
    "tests/kit/kit.h": '#include "lower/lower.h"\n#include <nlohmann/json.hpp>\n',
    "tools/main.cc": '#include "lower/lower.h"\n#include "program/verbs.h"\n',
    "tools/program/verbs.h": '#include "base/error.h"\n',
    "python/floors.txt": """
# A comment.
low: _core _node ir
high: relay._calls relay.nn*
    relay.op
facades: headrace relay
""",
    "python/headrace/__init__.py": "from headrace import _node\n",
    "python/headrace/_node.py": "from headrace import _core\n",
    "python/headrace/ir/__init__.py": "from headrace._node import make\n",
    "python/headrace/relay/__init__.py": (
        "from headrace import _node\n\n\ndef find():\n    from headrace.relay import op\n"
    ),
    "python/headrace/relay/_calls.py": "import typing\nfrom headrace import ir\nfrom headrace._node import make\n",
    "python/headrace/relay/op.py": "from headrace.relay import _calls, nn\n",
}


class CheckLayersTest(unittest.TestCase):
    def check(self, planted: dict[str, str]) -> tuple[int, list[str]]:
        """Exit status and the lines about violations for the sound house with `planted` files added to it."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in SOUND_HOUSE.items() | planted.items():
                path = Path(folder) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(planted.get(name, text))
            run = subprocess.run([sys.executable, TOOL, folder], capture_output=True, text=True, check=False)
            self.assertEqual(run.stderr, "")
            return run.returncode, run.stdout.splitlines()[:-1]

    def expect(self, planted: dict[str, str], *expected: str) -> None:
        """Exactly the violations that start with `expected` are reported, in any order."""
        status, lines = self.check(planted)
        self.assertEqual(status, 1)
        self.assertEqual(len(lines), len(expected), lines)
        for start in expected:
            self.assertTrue(any(line.startswith(start) for line in lines), f"no line starts with {start}: {lines}")

    def test_sound_house_passes(self) -> None:
        self.assertEqual(self.check({}), (0, []))

    def test_higher_level(self) -> None:
        planted = {"src/ir/bad.cc": '\n#include "lower/lower.h"\n'}
        self.expect(planted, "src/ir/bad.cc:2: level: ir (level 3, C) includes lower (level 9, C)")

    def test_same_level(self) -> None:
        self.expect({"src/ir/bad.cc": '#include "artifact/manifest.h"\n'}, "src/ir/bad.cc:1: level: ")

    def test_same_level_in_a_folder_that_is_no_room(self) -> None:
        planted = {"src/frontend/two/bad.cc": '#include "frontend/one/read.h"\n'}
        self.expect(planted, "src/frontend/two/bad.cc:1: level: ")

    def test_shared_side_sees_no_run_side(self) -> None:
        rooms = SOUND_HOUSE["CMakeLists.txt"] + "headrace_room(wire LEVEL 6 SIDE S)\n"
        self.expect(
            {"CMakeLists.txt": rooms, "src/wire/bad.cc": '#include "runtime/pool.h"\n'}, "src/wire/bad.cc:1: side: "
        )

    def test_run_side_sees_no_compile_side(self) -> None:
        self.expect({"src/runtime/bad.cc": '#include "ir/expr.h"\n'}, "src/runtime/bad.cc:1: side: ")

    def test_cycle_of_rooms(self) -> None:
        planted = {"src/lower/tiles/bad.cc": '#include "lower/other.h"\n', "src/lower/other.h": "\n"}
        self.expect(planted, "src/lower/lower.h:1: cycle: rooms include each other: lower -> lower/tiles -> lower")

    def test_cycle_of_files(self) -> None:
        planted = {"src/ir/a.h": '#include "ir/b.h"\n', "src/ir/b.h": '#include "ir/a.h"\n'}
        self.expect(planted, "src/ir/a.h:1: cycle: files include each other: src/ir/a.h -> src/ir/b.h -> src/ir/a.h")

    def test_llvm_header_outside_its_room(self) -> None:
        self.expect({"src/codegen/bad.cc": "#include <llvm/IR/Module.h>\n"}, "src/codegen/bad.cc:1: plugin: ")
        self.expect({"src/ir/bad_test.cc": "#include <lld/Common/Driver.h>\n"}, "src/ir/bad_test.cc:1: plugin: ")

    def test_llvm_room_is_included_by_none(self) -> None:
        rooms = SOUND_HOUSE["CMakeLists.txt"] + "headrace_room(driver LEVEL 11 SIDE C)\n"
        planted = {"src/codegen/llvm/emit.h": "", "src/driver/bad.cc": '#include "codegen/llvm/emit.h"\n'}
        self.expect({"CMakeLists.txt": rooms} | planted, "src/driver/bad.cc:1: plugin: ")

    def test_backend_plugin_sees_public_headers_alone(self) -> None:
        rooms = SOUND_HOUSE["CMakeLists.txt"] + "  headrace_backend_plugin(chip ${CHIP})\n"
        planted = {"src/backends/chip/bad.cc": '#include "base/error.h"\n', "src/base/error.h": "\n"}
        self.expect({"CMakeLists.txt": rooms} | planted, "src/backends/chip/bad.cc:1: level: ")
        planted = {"src/backends/chip/chip.h": "\n", "src/runtime/bad.cc": '#include "backends/chip/chip.h"\n'}
        self.expect({"CMakeLists.txt": rooms} | planted, "src/runtime/bad.cc:1: plugin: ")

    def test_json_in_a_header(self) -> None:
        self.expect({"src/ir/bad.h": "#include <nlohmann/json.hpp>\n"}, "src/ir/bad.h:1: json: ")

    def test_json_in_eight_files(self) -> None:
        planted = {f"src/ir/json{i}.cc": "#include <nlohmann/json.hpp>\n" for i in range(7)}
        self.expect(planted, "src/ir/json6.cc:1: json: more than 7 files")

    def test_tests_are_included_by_none(self) -> None:
        self.expect({"src/ir/bad.cc": '#include "tests/kit/kit.h"\n'}, "src/ir/bad.cc:1: top: ")
        self.expect({"tools/bad.cc": '#include "../tests/kit/kit.h"\n'}, "tools/bad.cc:1: top: ")

    def test_room_includes_a_tool(self) -> None:
        self.expect({"tools/kit.h": "", "src/ir/bad.cc": '#include "tools/kit.h"\n'}, "src/ir/bad.cc:1: level: ")

    def test_installed_header_includes_a_room(self) -> None:
        planted = {"include/headrace/bad.h": '#include "artifact/manifest.h"\n'}
        start = "src/artifact/manifest.h:1: cycle: rooms include each other: artifact -> base -> include/headrace"
        self.expect(planted, "include/headrace/bad.h:1: level: ", start)

    def test_relative_path(self) -> None:
        self.expect({"src/ir/bad.cc": '#include "expr.h"\n'}, "src/ir/bad.cc:1: path: ")

    def test_include_that_names_nothing(self) -> None:
        self.expect({"src/ir/bad.cc": '#include "ir/gone.h"\n'}, "src/ir/bad.cc:1: path: ")

    def test_unknown_folder(self) -> None:
        self.expect({"src/utils/bad.cc": "\n"}, "src/utils/bad.cc:1: folder: src/utils is no room")

    def test_room_lines(self) -> None:
        rooms = SOUND_HOUSE["CMakeLists.txt"]
        self.expect({"CMakeLists.txt": rooms + "headrace_room(odd SIDE S)\n"}, "CMakeLists.txt:13: folder: cannot read")
        self.expect({"CMakeLists.txt": rooms + "headrace_room(ir LEVEL 3 SIDE C)\n"}, "CMakeLists.txt:13: folder: room")

    def test_python_imports_a_higher_floor(self) -> None:
        node = "python/headrace/_node.py"
        above = "floor: headrace._node (floor low) imports headrace.relay._calls (floor high): only its own floor and"
        circle = (
            "python/headrace/_node.py:{}: cycle: modules import each other: headrace._node -> headrace.relay._calls"
        )
        for line, text in (
            (1, "from headrace.relay._calls import call\n"),
            (2, "def late():\n    from headrace.relay import _calls\n"),
            (3, "import importlib\n\nCALLS = importlib.import_module('headrace.relay._calls')\n"),
            (3, "import sys\n\nCALLS = sys.modules['headrace.relay._calls']\n"),
        ):
            status, lines = self.check({node: text})
            self.assertEqual(status, 1)
            self.assertEqual(len(lines), 3, lines)
            self.assertTrue(lines[0].startswith(f"{node}:{line}: {above}"), lines)
            # ir and _calls import _node.
            self.assertTrue(any(one.startswith(circle.format(line)) for one in lines[1:]), lines)

    def test_python_modules_import_each_other(self) -> None:
        floors = SOUND_HOUSE["python/floors.txt"].replace("low: ", "low: _one _two ")
        planted = {"python/floors.txt": floors, "python/headrace/_one.py": "import headrace._two\n"}
        start = "python/headrace/_one.py:1: cycle: modules import each other: headrace._one -> headrace._two -> "
        for text in ("from headrace import _one\n", "def f():\n    import headrace._one\n"):
            self.expect(planted | {"python/headrace/_two.py": text}, start)
        for_types = "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from headrace import _one\n"
        self.assertEqual(self.check(planted | {"python/headrace/_two.py": for_types}), (0, []))

    def test_python_module_imports_the_package_around_another(self) -> None:
        floors = SOUND_HOUSE["python/floors.txt"].replace("low: ", "low: ir._kinds ")
        planted = {"python/floors.txt": floors, "python/headrace/ir/_kinds.py": "from headrace import _core\n"}
        self.assertEqual(self.check(planted), (0, []))
        self.expect(
            planted | {"python/headrace/_node.py": "from headrace.ir._kinds import kind\n"},
            "python/headrace/_node.py:1: cycle: modules import each other: headrace._node -> headrace.ir -> ",
        )

    def test_python_name_of_a_facade(self) -> None:
        for text, name in (
            ("from headrace.relay import call", "call"),
            ("from headrace import UserError", "UserError"),
        ):
            start = f"python/headrace/relay/op.py:1: name: headrace.relay.op imports {name} from headrace"
            self.expect({"python/headrace/relay/op.py": text}, start)

    def test_python_imports_that_hide(self) -> None:
        calls = "python/headrace/relay/_calls.py"
        text = "import importlib\n\n\ndef get(name):\n    return importlib.import_module(name)\n"
        self.expect({calls: text}, f"{calls}:5: late: headrace.relay._calls imports a module by a computed name")
        self.assertEqual(self.check({"python/headrace/_node.py": text}), (0, []))
        text = "from headrace import _node\n\n_node.facade(__name__, {'headrace.relay.op': 'add'})\n"
        self.expect({calls: text}, f"{calls}:3: late: headrace.relay._calls lists names of other modules")
        self.assertEqual(self.check({"python/headrace/relay/__init__.py": text}), (0, []))

    def test_python_only_one_line_modules_show_the_compat_folder(self) -> None:
        floors = SOUND_HOUSE["python/floors.txt"].replace("low: ", "low: _foreign ")
        floors = floors.replace(
            "facades: ", "compat: _compat _compat.places _compat.old\nfacades: relay.old relay._old "
        )
        show = '"""Old names."""\n\nfrom headrace._compat import places\n\n__all__ = places.show(__name__)\n'
        old, private = "python/headrace/relay/old.py", "python/headrace/relay/_old.py"
        planted = {
            "python/floors.txt": floors,
            "python/headrace/_compat/__init__.py": "",
            "python/headrace/_compat/places.py": "def show(name):\n    return []\n",
            "python/headrace/_compat/old.py": "from headrace._compat import places\nfrom headrace import ir\n",
            "python/headrace/_foreign.py": "READERS = {'file': 'headrace._compat.old'}\n",
            old: show,
            private: "",
        }
        self.assertEqual(self.check(planted), (0, []))
        named = "compat: headrace.relay.old uses headrace._compat."
        for text, start in (
            (f"{show}X = 1\n", f"{old}:3: {named}places, which only users of Relay need"),
            (show.replace("(__name__)", "('headrace.te')"), f"{old}:3: {named}places"),
            ("from headrace._compat.old import thing\n", f"{old}:1: {named}old"),
            ("import headrace._compat.old\n", f"{old}:1: {named}old"),
            ("def late():\n    from headrace._compat import old\n", f"{old}:2: {named}old"),
            ("TABLE = {\n    'headrace._compat.old': 'name other',\n}\n", f"{old}:2: {named}old"),
            ("TABLE = 'headrace.ir headrace._compat.old'\n", f"{old}:1: {named}old"),
        ):
            self.expect(planted | {old: text}, start)
        self.expect(planted | {private: show}, f"{private}:3: compat: headrace.relay._old uses headrace._compat.places")
        self.expect(
            planted | {"python/headrace/_foreign.py": "import headrace._compat.old\n"},
            "python/headrace/_foreign.py:1: floor: headrace._foreign (floor low) imports headrace._compat.old",
            "python/headrace/_foreign.py:1: floor: headrace._foreign (floor low) imports headrace._compat (floor",
            "python/headrace/_foreign.py:1: compat: headrace._foreign uses headrace._compat.old",
        )
        for_types = "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from headrace._compat import old\n"
        text = '"""Not `headrace._compat.old`, but what is beside it."""\n'
        self.assertEqual(self.check(planted | {old: text + for_types}), (0, []))

    def test_python_module_on_no_floor(self) -> None:
        self.expect(
            {"python/headrace/new.py": ""}, "python/headrace/new.py:1: floor: headrace.new is on no floor: add it"
        )

    def test_python_floors(self) -> None:
        floors = SOUND_HOUSE["python/floors.txt"]
        self.expect(
            {"python/floors.txt": floors + "top: gone\n"}, "python/floors.txt:1: floor: headrace.gone has no file"
        )
        self.expect(
            {"python/floors.txt": floors + "top: ir\n"}, "python/floors.txt:7: floor: headrace.ir is on two floors"
        )
        self.expect({"python/floors.txt": floors + "ir\n"}, "python/floors.txt:7: floor: cannot read this line")

    def test_long_file(self) -> None:
        lines = "int x;\n" * 1001
        self.expect({"src/ir/bad.cc": lines}, "src/ir/bad.cc:1000: length: 1001 lines")
        self.assertEqual(self.check({"src/ir/bad.cc": "// Past 1,000 lines since it is one table.\n" + lines}), (0, []))


if __name__ == "__main__":
    unittest.main()
