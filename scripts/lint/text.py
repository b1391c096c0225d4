#!/usr/bin/env python3
"""Every file of the tree is text: no built programs, no archives.

Help that is printed as it is written (verbatim_doc_comment) has at most 80 columns.
"""

import sys

from tree import ROOT, files

# Files that may be binary.
DATA = ()

HELP_COLUMNS = len("/// ") + 80


def wide_help(lines):
    """Numbers of the lines."""
    begin = None
    for number, line in enumerate(lines, 1):
        if line.startswith("///"):
            begin = begin or number
        elif not line.startswith("#["):
            begin = None
        elif "verbatim_doc_comment" in line and begin:
            yield from (n for n in range(begin, number) if len(lines[n - 1]) > HELP_COLUMNS)


def main():
    good = True
    for name in files():
        data = (ROOT / name).read_bytes()
        try:
            data.decode()
            is_text = b"\0" not in data
        except UnicodeDecodeError:
            is_text = False
        if not is_text and name not in DATA:
            good = False
            print(
                f"{name}:1: not text. Remove it (git rm --cached), or list it in scripts/lint/text.py."
            )
        elif name.endswith(".rs"):
            for number in wide_help(data.decode().splitlines()):
                good = False
                print(f"{name}:{number}: help of more than 80 columns. Wrap it.")
    sys.exit(not good)


main()
