"""A user's session (tests/install/user_session.py) from wheels in a fresh virtual environment, on this machine.

    HEADRACE_WHEELS=dist python3 tests/wheel/test_session.py --write-zoo build/release/bin/write_zoo

Run it after ./dev wheel.
Skipped where the wheels are not built, or PyPI, which numpy and nanobind-backend come from, cannot be reached.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "install"))
import user_session

SKIPPED = 77
NAMES = ("headrace", "headrace_runtime", "headrace_onednn")


def missing(folder: Path, wheels: Path | None) -> str:
    """Says why the session cannot run here; "" where it can."""
    if wheels is None:
        return "HEADRACE_WHEELS does not name a folder of wheels; ./dev wheel makes dist"
    absent = [name for name in NAMES if not list(wheels.glob(f"{name}-*.whl"))]
    if absent:
        return f"{wheels} has no wheel of {' and '.join(absent)}; ./dev wheel makes them"
    download = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--find-links",
        wheels,
        "--dest",
        folder,
        "headrace",
    ]
    done = subprocess.run([str(word) for word in download], capture_output=True, text=True, check=False)
    return f"PyPI cannot be reached: {done.stderr}" if done.returncode else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write-zoo", type=Path, required=True)
    options = parser.parse_args()
    named = os.environ.get("HEADRACE_WHEELS")
    wheels = Path(named).resolve() if named else None
    folder = Path(tempfile.mkdtemp(prefix="headrace_wheel_session_"))
    try:
        told = missing(folder / "needed", wheels)
        if told:
            print(f"skipped: {told}")
            return SKIPPED
        user_session.session_of_wheels(wheels, options.write_zoo, folder)
    finally:
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
