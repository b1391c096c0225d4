"""Prints how many instructions of `trace` are in which function: by_function.py FOLDER"""

import bisect
import collections
import subprocess
import sys
from pathlib import Path


def mappings(path):
    for line in path.read_text().splitlines():
        span, _, offset, _, inode, *name = line.split()
        low, high = (int(part, 16) for part in span.split("-"))
        yield low, high, int(offset, 16), name[0] if name and inode != "0" else ""


def symbols(path):
    found = []
    for option in ([], ["-D"]):
        listed = subprocess.run(["nm", *option, path], capture_output=True, text=True, check=False)
        for line in listed.stdout.splitlines():
            words = line.split()
            if len(words) == 3 and words[1] in "tTwWi":
                found.append((int(words[0], 16), words[2]))
    return sorted(found)


def main(folder):
    maps = list(mappings(folder / "maps"))
    base, known = {}, {}
    for low, _, offset, name in maps:
        base.setdefault(name, low - offset)
    counts = collections.Counter()
    for line in (folder / "trace").read_text().split():
        address = int(line, 16)
        name = next((m[3] for m in maps if m[0] <= address < m[1]), "")
        if not name:
            counts["(stub)"] += 1
            continue
        if name not in known:
            known[name] = symbols(name)
        table = known[name]
        at = bisect.bisect(table, (address - base[name], "~")) - 1
        counts[f"{table[at][1] if at >= 0 else '?'} ({Path(name).name})"] += 1
    for function, n in counts.most_common():
        print(f"{n:6} {function}")


main(Path(sys.argv[1]))
