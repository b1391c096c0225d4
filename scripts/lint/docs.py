#!/usr/bin/env python3
"""Links of pages resolve, each page is reached from docs/index.md, and none is too long to read.

Pages of docs/ that other files mention exist.
"""

import posixpath
import re
import sys

from tree import ROOT, files, read

INDEX = "docs/index.md"
LINES = 250
# Written by `lissom study report`.
ANY_LENGTH = {"docs/results/study.md"}
# For developers of lissom; no page links there.
UNLINKED = {"docs/status.md"}
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
MENTION = re.compile(r"\bdocs/[\w/-]+\.(?:md|json|pml|sh)\b")
FENCE = re.compile(r"^ *(```|~~~).*?^ *\1", re.M | re.S)


def anchors(text):
    """Of the headings, as GitHub makes them."""
    found = set()
    for title in re.findall(r"^#+ +(.*?) *$", FENCE.sub("", text), re.M):
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
        name = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        number = 1
        unique = name
        while unique in found:
            unique = f"{name}-{number}"
            number += 1
        found.add(unique)
    return found


def links(page, text):
    """Line, target and anchor of links to files of the tree, as they are written."""
    blank = FENCE.sub(lambda m: "\n" * m[0].count("\n"), text)
    for number, line in enumerate(blank.splitlines(), 1):
        for match in LINK.finditer(line):
            target = match[1] or match[2]
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            folder = posixpath.dirname(page)
            yield number, posixpath.normpath(posixpath.join(folder, path)) if path else page, anchor


def main():
    good = True

    def wrong(place, message):
        nonlocal good
        good = False
        print(f"{place}: {message}")

    pages = {name: read(name) for name in files("*.md")}
    leads_to = {}
    for page, text in pages.items():
        for number, target, anchor in links(page, text):
            leads_to.setdefault(page, set()).add(target)
            if not (ROOT / target).exists():
                wrong(f"{page}:{number}", f"there is no {target}. Correct the link.")
            elif anchor and target in pages and anchor not in anchors(pages[target]):
                wrong(f"{page}:{number}", f"{target} has no heading #{anchor}. Correct the link.")
    reached, left = set(), [INDEX]
    while left:
        page = left.pop()
        if page not in reached:
            reached.add(page)
            left += leads_to.get(page, set()) & pages.keys()
    for page in sorted(pages):
        if page.startswith("docs/") and page not in reached | UNLINKED:
            wrong(f"{page}:1", f"no page leads here from {INDEX}. Link it.")
        lines = pages[page].count("\n")
        if page.startswith("docs/") and page not in ANY_LENGTH and lines > LINES:
            wrong(f"{page}:1", f"{lines} lines, {LINES} at most. Split it by subject.")
    for name in files():
        if name.startswith("docs/results/plots"):
            continue
        for number, line in enumerate(read(name).splitlines(), 1):
            for mention in MENTION.findall(line):
                if "://" not in line and not (ROOT / mention).exists():
                    wrong(f"{name}:{number}", f"there is no {mention}. Correct the name.")
    sys.exit(not good)


main()
