#!/usr/bin/env python3
"""Comments, help and pages are plain English.

No sentence begins with a relative clause that has no noun, and none uses a word that this project
had of its own where the field has one.
"""

import re
import sys

from tree import compare_counts, files, is_shell, read

CODE = ("*.c", "*.h", "*.S", "*.rs", "*.go", "*.pml", "*.py", "Makefile")
# Written by `lissom study report`, or the words themselves.
SKIPPED = {"docs/results/study.md", "scripts/lint/english.py"}
COMMENT = re.compile(r"\s*(///|//!|//|/\*+|\*(?!/))\s?(.*)")
HASH = re.compile(r"\s*(#)(?!!)\s?(.*)")
# "What to do" needs no noun, and neither does a question.
OPENING = re.compile(r"(?:^|[.:;!?]\s+)(Who|Whoever|Whatever|That which|What(?! to\b))\b")
OURS = "doorbell untold told deaf nudges? nudged pokes? poked homing go_home leave_closed fruitless"
WORDS = "|".join([*OURS.split(), "hopeless", "let_pass"])
WORD = re.compile(rf"\b({WORDS})\b", re.I)


def sentences(name):
    """Line number and text of what a person reads."""
    is_page = name.endswith(".md")
    comment = COMMENT if name.endswith((".c", ".h", ".S", ".rs", ".go", ".pml")) else HASH
    fenced = False
    for number, line in enumerate(read(name).splitlines(), 1):
        if is_page:
            fenced ^= line.lstrip().startswith("```")
            if not fenced:
                yield number, re.sub(r"`[^`]*`", "`", line.lstrip("#-*|> "))
        elif match := comment.match(line):
            yield number, match[2]


def wrong(name):
    """Numbers of lines."""
    found = []
    for number, text in sentences(name):
        question = "?" in text
        if WORD.search(text) or (OPENING.search(text) and not question):
            found.append(number)
    return found


def main():
    names = set(files("*.md", *CODE)) | {f for f in files("*") if is_shell(f)}
    places = {name: wrong(name) for name in sorted(names - SKIPPED)}
    good = compare_counts(
        "english",
        {name: len(lines) for name, lines in places.items() if lines},
        lambda name: f"{name}:{places[name][0] if places.get(name) else 1}",
        "Name the subject of the sentence, or use the field's word.",
    )
    sys.exit(not good)


main()
