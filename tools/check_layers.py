#!/usr/bin/env python3
"""Checks that the sources keep the plan of the house (ARCHITECTURE.md).

    tools/check_layers.py [ROOT]

The truth is the list of headrace_room(NAME LEVEL n SIDE S|R|C) lines in ROOT/CMakeLists.txt (headrace_plugin for a room
that is a library of its own). Rules:

  level     a room includes only rooms on lower levels; on its own level only its own parent, sub-rooms,
            and the other sub-rooms of its parent, if that is a room
  side      S sees S; R sees S and R; C sees all
  cycle     no cycle between rooms, none between files
  plugin    src/codegen/llvm is included by no other room; LLVM and lld headers are included only there. A backend's
            plugin (headrace_backend_plugin) sees the headers of include/ alone and is included by no room
  json      <nlohmann/...> in at most seven .cc files, in no header
  top       tests/, bench/ and examples/ are included by nothing shipped
  path      includes name a room (`"room/file.h"`), never a relative path; what they name exists
  folder    a folder with sources under src/ is a declared room
  length    a file past 1,000 lines says why: a comment with the words "1,000 lines" in its first ten lines

The Python package has floors instead of rooms: python/floors.txt, whose rules are in tools/python_floors.py.

`*_test.cc` files and the folders of level 14 may include any room; the rules plugin, folder and length bind them too.
Prints one line per violation and exits 1, or a summary and 0.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from python_floors import check_python

ROOM_LINE = re.compile(r"^\s*headrace_(?:room|plugin)\(\s*([\w/]+)\s+LEVEL\s+(\d+)\s+SIDE\s+([SRC])\b")
BACKEND_PLUGIN_LINE = re.compile(r"^\s*headrace_backend_plugin\(\s*(\w+)")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.MULTILINE)
BLOCK_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
SOURCE_SUFFIXES = {".h", ".hpp", ".inc", ".c", ".cc", ".cpp", ".cu"}
HEADER_SUFFIXES = {".h", ".hpp", ".inc"}
OWN_FOLDERS = ["include", "src", "tools", "python", "tests", "bench", "examples"]
INCLUDE_FOLDERS = ["src", "include", "third_party", "tests", "."]  # the last two for what is not shipped
TOP_FOLDERS = ("tests/", "bench/", "examples/")
LLVM_PREFIXES = ("llvm/", "llvm-c/", "lld/", "clang/", "clang-c/")
LLVM_ROOM = "codegen/llvm"
SEES = {"S": "S", "R": "SR", "C": "SRC"}
MAX_JSON_FILES = 7
MAX_LINES = 1000
LONG_FILE_WORDS = "1,000 lines"


@dataclass(frozen=True)
class Room:
    name: str
    level: int
    side: str
    is_plugin: bool = False


# The installed headers: below every room, seen by all.
INSTALLED = Room("include/headrace", -1, "S")


@dataclass
class House:
    root: Path
    rooms: dict[str, Room] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)
    file_edges: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))  # from -> to -> place
    room_edges: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    module_edges: dict[str, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))  # in the Python package
    json_files: list[str] = field(default_factory=list)
    file_count: int = 0
    module_count: int = 0

    def report(self, place: str, rule: str, message: str) -> None:
        self.violations.append(f"{place}: {rule}: {message}")


def read_rooms(house: House) -> None:
    lines = (house.root / "CMakeLists.txt").read_text().splitlines()
    for number, line in enumerate(lines, 1):
        if plugin := BACKEND_PLUGIN_LINE.match(line):  # like a plugin of somebody else it sees include/ alone
            house.rooms[f"backends/{plugin[1]}"] = Room(f"backends/{plugin[1]}", 0, "S", is_plugin=True)
        if not line.lstrip().startswith(("headrace_room(", "headrace_plugin(")):
            continue
        match = ROOM_LINE.match(line)
        place = f"CMakeLists.txt:{number}"
        if not match:
            house.report(place, "folder", "cannot read this line: write headrace_room(NAME LEVEL n SIDE S|R|C)")
        elif match[1] in house.rooms:
            house.report(place, "folder", f"room {match[1]} is declared twice")
        else:
            house.rooms[match[1]] = Room(match[1], int(match[2]), match[3], is_plugin=match[1] == LLVM_ROOM)
    if not house.rooms:
        house.report("CMakeLists.txt:1", "folder", "declares no room")


def find_sources(root: Path) -> list[str]:
    paths = [p for folder in OWN_FOLDERS for p in (root / folder).rglob("*") if p.suffix in SOURCE_SUFFIXES]
    return sorted(str(p.relative_to(root)) for p in paths)


def room_of(house: House, path: str) -> Room | None:
    """The room of a file of the project, None for one outside src/ and include/ or in an undeclared folder."""
    if path.startswith("include/"):
        return INSTALLED
    if not path.startswith("src/"):
        return None
    folder = Path(path).parent
    # Golden files and tables of expectations live in a room's own folder tests/.
    if folder.name == "tests":
        folder = folder.parent
    return house.rooms.get(str(folder.relative_to("src")))


def resolve(house: House, path: str, name: str, quoted: bool) -> tuple[str | None, bool]:
    """The project's file that an include names (None: an outside header) and whether it was named by relative path."""
    beside = house.root / Path(path).parent / name
    for base in [*INCLUDE_FOLDERS, *(["tools"] if path.startswith("tools/") else [])]:
        if ".." not in Path(name).parts and (house.root / base / name).is_file():
            return str(Path(base) / name), False
    if quoted and beside.is_file():
        return str(beside.resolve().relative_to(house.root.resolve())), True
    return None, False


def is_related(house: House, a: str, b: str) -> bool:
    """Room and sub-room, or two sub-rooms of one room."""
    parent = a.rpartition("/")[0]
    siblings = parent in house.rooms and parent == b.rpartition("/")[0]
    return siblings or a.startswith(b + "/") or b.startswith(a + "/")


def check_rooms(house: House, place: str, user: Room, used: Room) -> None:
    if user == used:
        return
    house.room_edges[user.name].setdefault(used.name, place)
    says = f"{user.name} (level {user.level}, {user.side}) includes {used.name} (level {used.level}, {used.side})"
    if used.level > user.level:
        house.report(place, "level", f"{says}: only lower levels")
    elif used.level == user.level and not is_related(house, user.name, used.name):
        house.report(place, "level", f"{says}: other rooms of the same level are not visible")
    if used.side not in SEES[user.side]:
        house.report(place, "side", f"{says}: {user.side} sees {' and '.join(SEES[user.side])}")
    if used.is_plugin:
        house.report(place, "plugin", f"{says}: the plugin is loaded, never included")


def check_outside_header(house: House, place: str, path: str, name: str) -> None:
    if name.startswith(LLVM_PREFIXES) and not path.startswith(f"src/{LLVM_ROOM}/"):
        house.report(place, "plugin", f"<{name}>: LLVM and lld headers belong to src/{LLVM_ROOM}")
    if name.startswith("nlohmann/") and is_shipped(path):
        if Path(path).suffix in HEADER_SUFFIXES:
            house.report(place, "json", f"<{name}> in a header: include it in a .cc")
        elif path not in house.json_files:
            house.json_files.append(path)


def is_shipped(path: str) -> bool:
    is_test = Path(path).stem.endswith("_test") or "tests" in Path(path).parts
    return not path.startswith(TOP_FOLDERS) and not is_test


def check_include(house: House, place: str, path: str, name: str, quoted: bool) -> None:
    check_outside_header(house, place, path, name)
    target, is_relative = resolve(house, path, name, quoted)
    if target is None:
        if quoted:
            house.report(place, "path", f'"{name}" is not a file of the project')
        return
    if is_shipped(path) and target.startswith(TOP_FOLDERS):
        house.report(place, "top", f"{name}: nothing shipped includes {Path(target).parts[0]}/")
        return
    if is_relative and path.startswith(("src/", "include/")):
        house.report(place, "path", f'"{name}" is a relative path: name the room')
    house.file_edges[path].setdefault(target, place)
    user, used = room_of(house, path), room_of(house, target)
    if user and not used and target.startswith(("src/", "tools/", "python/")):
        house.report(place, "level", f"{user.name} includes {target}, which is in no room below it")
    if user and used and is_shipped(path):
        check_rooms(house, place, user, used)


def blank_comments(text: str) -> str:
    """The text without block comments, line numbers kept."""
    return BLOCK_COMMENT.sub(lambda match: "\n" * match[0].count("\n"), text)


def check_file(house: House, path: str) -> None:
    text = (house.root / path).read_text(errors="replace")
    line_count = text.count("\n")
    if line_count > MAX_LINES and LONG_FILE_WORDS not in "\n".join(text.splitlines()[:10]):
        house.report(f"{path}:{MAX_LINES}", "length", f"{line_count} lines: split, or say why at the top")
    code = blank_comments(text)
    for match in INCLUDE.finditer(code):
        line = code.count("\n", 0, match.start()) + 1
        check_include(house, f"{path}:{line}", path, match[2].strip(), match[1] == '"')


def check_folders(house: House, sources: list[str]) -> None:
    seen = set()
    for path in sources:
        folder = str(Path(path).parent)
        if path.startswith("src/") and is_shipped(path) and room_of(house, path) is None and folder not in seen:
            seen.add(folder)
            house.report(f"{path}:1", "folder", f"{folder} is no room: add its headrace_room line to CMakeLists.txt")


def find_cycles(edges: dict[str, dict[str, str]]) -> list[list[str]]:
    """One cycle per back edge of a depth-first walk, in name order; explicit stack, so depth has no limit."""
    cycles, done = [], set()
    for start in sorted(edges):
        if start in done:
            continue
        stack, chain, on_chain = [(start, iter(sorted(edges[start])))], [start], {start}
        while stack:
            node, targets = stack[-1]
            target = next(targets, None)
            if target is None:
                stack.pop()
                chain.pop()
                on_chain.discard(node)
                done.add(node)
            elif target in on_chain:
                cycles.append([*chain[chain.index(target) :], target])
            elif target not in done:
                stack.append((target, iter(sorted(edges.get(target, {})))))
                chain.append(target)
                on_chain.add(target)
    return cycles


def check_cycles(house: House) -> int:
    count = 0
    graphs = [
        ("rooms include", house.room_edges),
        ("files include", house.file_edges),
        ("modules import", house.module_edges),
    ]
    for what, edges in graphs:
        for cycle in find_cycles(edges):
            count += 1
            house.report(edges[cycle[0]][cycle[1]], "cycle", f"{what} each other: {' -> '.join(cycle)}")
    return count


def check_house(root: Path) -> tuple[House, int]:
    house = House(root)
    read_rooms(house)
    sources = find_sources(root)
    house.file_count = len(sources)
    check_folders(house, sources)
    for path in sources:
        check_file(house, path)
    if len(house.json_files) > MAX_JSON_FILES:
        extra = ", ".join(house.json_files)
        house.report(f"{house.json_files[-1]}:1", "json", f"more than {MAX_JSON_FILES} files read JSON: {extra}")
    house.module_count = check_python(house)
    return house, check_cycles(house)


def main() -> int:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    house, cycle_count = check_house(root)
    for violation in house.violations:
        print(violation)
    edge_count = sum(len(targets) for targets in house.room_edges.values())
    print(
        f"layers: {house.file_count} files, {len(house.rooms)} rooms, {edge_count} edges between rooms,"
        f" {house.module_count} Python modules: {len(house.violations)} violations, {cycle_count} cycles"
    )
    return 1 if house.violations else 0


if __name__ == "__main__":
    sys.exit(main())
