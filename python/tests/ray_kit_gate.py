"""A module of a stage that cannot be imported while a file is there."""

import os
from pathlib import Path

if Path(os.environ["HEADRACE_TEST_SWITCH"]).exists():
    raise RuntimeError("the switch is there")


def gate(x: int) -> int:
    return x
