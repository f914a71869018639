"""How much tests run: HEADRACE_TEST_SIZE, as `tests/kit/options.h` has it."""

import os

_SIZE = os.environ.get("HEADRACE_TEST_SIZE", "ci")
IS_FULL = _SIZE == "full"  # all cases, by hand
IS_FEW = _SIZE == "few"  # beside a sanitizer, with which each step takes far longer
