"""tests/conformance/known.txt: the differences that are expected, each with its reason."""

import os

from run import LEVELS
from suite import HERE

FILE = os.path.join(HERE, "known.txt")


def read() -> dict[tuple[str, str], str]:
    """Return SUITE/TEST and level -> reason."""
    known = {}
    with open(FILE, encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                test, level, reason = line.split(None, 2)
                for each in LEVELS if level == "all" else [level]:
                    known[test, each] = reason.strip()
    return known


def must_differ(reason: str) -> bool:
    """Whether the test may not give the native result. A reason says so with "sometimes"."""
    return not reason.startswith("sometimes")
