"""A folder that is a machine of its own: Debian's Python with its libraries, and no compiler, linker or LLVM."""

import os
import re
import shutil
import subprocess
from pathlib import Path

PYTHON = Path("/usr/bin/python3").resolve()
LIBRARY = Path("/usr/lib") / PYTHON.name  # /usr/lib/python3.11
WHEELS = Path("/usr/share/python-wheels")  # `python3 -m venv` installs pip from here
NOT_NEEDED = shutil.ignore_patterns("__pycache__", "test", "idlelib", "tkinter", "config-*", "pydoc_data")


def missing_for_chroot() -> str:
    """Why this machine cannot make one; "" where it can."""
    if os.geteuid() != 0:
        return "a chroot needs root"
    if not (LIBRARY / "ensurepip").is_dir() or not WHEELS.is_dir():
        return "python3-venv is not installed; apt-get install python3-venv"
    if shutil.which("unshare") is None or not Path("/usr/sbin/chroot").exists():
        return "unshare or /usr/sbin/chroot is missing; apt-get install util-linux coreutils"
    if subprocess.run(["unshare", "-m", "true"], check=False).returncode != 0:
        return "mount namespaces are not allowed here"
    return ""


def libraries_of(files: list[Path]) -> set[Path]:
    """The libraries that the loader finds for some ELF files, those of glibc, and those of every C++ program."""
    found: set[str] = set()
    for file in files:
        done = subprocess.run(["ldd", str(file)], capture_output=True, text=True, check=False)
        found |= set(re.findall(r"(/\S+) \(0x", done.stdout))
    folder = next(Path(path).parent for path in found if path.endswith("/libc.so.6"))
    glibc = ("libpthread.so.0", "libdl.so.2", "librt.so.1", "libutil.so.1", "libm.so.6", "libresolv.so.2")
    always = [folder / name for name in (*glibc, "libstdc++.so.6", "libgcc_s.so.1")]
    return {Path(path) for path in found} | set(always)


def copy_to(root: Path, path: Path) -> None:
    """Copies a file to its own place under `root`, what links point to in their place."""
    target = root / str(path).lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(path, target)


class Chroot:
    """The folder, and what runs in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for link, target in (("lib", "usr/lib"), ("lib64", "usr/lib64"), ("bin", "usr/bin")):
            (root / target).mkdir(parents=True, exist_ok=True)
            (root / link).symlink_to(target)
        for folder in ("tmp", "proc", "dev", "etc", "root"):
            (root / folder).mkdir()
        shutil.copytree(LIBRARY, root / str(LIBRARY).lstrip("/"), ignore=NOT_NEEDED, symlinks=False)
        shutil.copytree(WHEELS, root / str(WHEELS).lstrip("/"))
        copy_to(root, PYTHON)
        (root / "usr/bin/python3").symlink_to(PYTHON.name)
        copy_to(root, Path(shutil.which("sh")).resolve())
        (root / "usr/bin/sh").symlink_to(Path(shutil.which("sh")).resolve().name)
        extensions = list((LIBRARY / "lib-dynload").glob("*.so"))
        for library in libraries_of([PYTHON, Path(shutil.which("sh")), *extensions]):
            copy_to(root, library)
        os.mknod(root / "dev/null", 0o666 | 0o020000, os.makedev(1, 3))

    def run(self, *command: str, code: int = 0, cwd: str = "/root", **variables: str) -> str:
        """Runs a command with /proc mounted and nothing of the caller's environment; gives its output."""
        inner = 'mount -t proc proc "$1/proc" && cd / && root=$1 && shift && exec /usr/sbin/chroot "$root" "$@"'
        words = ["sh", "-c", 'cd "$0" && exec "$@"', cwd, *command]
        environment = {"PATH": "/usr/bin:/usr/sbin:/bin:/sbin", "HOME": "/root", "LANG": "C.UTF-8", **variables}
        done = subprocess.run(
            ["unshare", "-m", "sh", "-c", inner, "sh", str(self.root), *words],
            env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == code, f"{command}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def tools(self) -> list[str]:
        """The compilers, linkers and libraries of LLVM in it, which there must be none of."""
        pattern = re.compile(
            r"(?:.*-)?(?:gcc|g\+\+|cc|c\+\+|clang|ld|lld|as|llc)(?:-\d+)?$|ld\.|lib(?:LLVM|lld|clang).*\.(?:so|a)"
        )
        allowed = ("ld-linux", "ld.so")
        names = [path for path in self.root.rglob("*") if pattern.match(path.name) and path.is_file()]
        return [str(path) for path in names if not path.name.startswith(allowed)]
