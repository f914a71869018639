"""The backends that a build leaves out (-DUSE_CODEGENC=OFF and others), for tests. Standard library only."""

from __future__ import annotations

import functools
import json
import subprocess


@functools.cache
def left_out(*program: str) -> dict[str, str]:
    """The backends that the build of a program leaves out, each with a sentence for the reason of a skip.

    Asks how the build was configured, so a backend that is lost by mistake is not among them and fails its tests.
    """
    command = [*program, "backend", "list", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return {
        row["name"]: f"the backend {row['name']} was {row['missing']}"
        for row in json.loads(done.stdout)["backends"]
        if row["missing"].startswith("left out of this build")
    }
