"""A module of a stage that cannot be imported while a file is there, and ends its process if the file says "exit"."""

import os
from pathlib import Path

SWITCH = Path(os.environ["HEADRACE_TEST_SWITCH"])
if SWITCH.exists():
    if SWITCH.read_text() == "exit":
        os._exit(1)
    raise RuntimeError("the switch is there")


def gate(x: int) -> int:
    return x
