#!/usr/bin/env python3
"""Every file of the tree is text: no built programs, no archives."""

import sys

from tree import ROOT, files

# Files that may hold something else.
DATA = ()


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
    sys.exit(not good)


main()
