#!/usr/bin/env python3
"""Lines of code and prose end at column 100, and files at line 600."""

import re
import sys

from tree import compare_counts, files, is_shell, read

COLUMNS, LINES = 100, 600
KINDS = ("*.c", "*.h", "*.S", "*.cc", "*.cpp", "*.rs", "*.go", "*.py", "*.pml", "*.erl", "*.java")
PROSE = ("*.md", "tests/cases/*.txt", "Makefile", ".clang-format", "*.toml")
# Generated files, or data.
MADE = re.compile(r"docs/results/.*\.md")
LINK = re.compile(r"\S*(?:://|\]\()\S+")


def covered():
    shell = [f for f in files("*") if is_shell(f)]
    return sorted({f for f in files(*KINDS, *PROSE) + shell if not MADE.fullmatch(f)})


def long_lines(name):
    """Numbers of lines that are too long. Rows of Markdown tables and links cannot be broken."""
    found = []
    for number, line in enumerate(read(name).splitlines(), 1):
        line = line.expandtabs(8)
        if len(line) <= COLUMNS or (name.endswith(".md") and line.startswith("|")):
            continue
        if len(LINK.sub("", line)) > COLUMNS:
            found.append(number)
    return found


def main():
    columns, lines = {}, {}
    for name in covered():
        if found := long_lines(name):
            columns[name] = found
        if (length := len(read(name).splitlines())) > LINES:
            lines[name] = length
    good = compare_counts(
        "columns",
        {name: len(found) for name, found in columns.items()},
        lambda name: f"{name}:{','.join(map(str, columns[name][:9]))}",
        f"End lines at column {COLUMNS}.",
    )
    good &= compare_counts(
        "lines", lines, lambda name: f"{name}:{LINES}", f"Split it: {LINES} lines at most."
    )
    sys.exit(not good)


main()
