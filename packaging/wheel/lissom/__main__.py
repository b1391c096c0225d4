"""Run a Python script under `lissom run`: python -m lissom [OPTION]... SCRIPT [ARGUMENT]..."""

from __future__ import annotations

import os
import sys

from lissom import program

USAGE = """\
Run a Python program under lissom

Usage: python -m lissom [OPTION]... SCRIPT [ARGUMENT]...
       python -m lissom [OPTION]... -m MODULE [ARGUMENT]...
       python -m lissom [OPTION]... -c CODE [ARGUMENT]...

OPTIONs are those of `lissom run`. Write their values with "=":
  python -m lissom --switch=kernel --stats train.py --epochs 3

The process becomes Python again, with the same options of Python.
"""


def main() -> None:
    options, rest = split(sys.argv[1:])
    if {"-h", "--help"} & set(options):
        print(USAGE, end="")
        return
    if not rest:
        fail("a script is missing: pass its path, or -m MODULE")
    if not rest[0].startswith("-") and not os.path.exists(rest[0]):
        fail(
            f"there is no script {rest[0]}: pass its path, "
            'and write values of options with "=", as in --cpus=4'
        )
    if not sys.executable:
        fail("the path of Python is unknown: start Python by its full path")
    try:
        path = program()
        command = ["lissom", "run", *options, "--", sys.executable, *python_options(), *rest]
        sys.stdout.flush()
        os.execv(path, command)
    except OSError as error:
        fail(str(error))


def split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Split into the options of lissom and the arguments of Python."""
    for number, argument in enumerate(arguments):
        if argument == "--":
            return arguments[:number], arguments[number + 1 :]
        if not argument.startswith("-") or argument in ("-", "-m", "-c"):
            return arguments[:number], arguments[number:]
    return arguments, []


def python_options() -> list[str]:
    """Return the options of Python before `-m lissom`, such as -u."""
    # sys.orig_argv is the same, but needs Python 3.10.
    with open("/proc/self/cmdline", "rb") as file:
        words = [os.fsdecode(word) for word in file.read().split(b"\0")[1:-1]]
    words = words[: len(words) - len(sys.argv) + 1]
    if words[-1:] == ["lissom"]:
        words.pop()
        rest = "m"
    else:
        rest = "mlissom"
    # Letters may precede the m, as in -um.
    if not words or not words[-1].endswith(rest):
        return []
    last = words.pop()[: -len(rest)]
    return words + ([last] if last != "-" else [])


def fail(message: str) -> None:
    print(f"lissom: {message}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
