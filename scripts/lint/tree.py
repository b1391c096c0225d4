"""The files of the tree, and lists of what is wrong today, which may only become shorter."""

import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
LISTS = ROOT / "scripts/lint"


def files(*patterns):
    """Paths of the tracked and new files that match one of `patterns` (* goes through folders), or all."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True)
    if done.returncode == 0:
        names = sorted({n for n in done.stdout.decode().split("\0") if n})
    else:
        skipped = {"target", ".git", "__pycache__"}
        paths = (p.relative_to(ROOT) for p in sorted(ROOT.rglob("*")) if p.is_file())
        names = [str(p) for p in paths if not skipped & set(p.parts)]
    names = [n for n in names if (ROOT / n).is_file()]
    return [n for n in names if not patterns or any(fnmatch(n, p) for p in patterns)]


def read(name):
    return (ROOT / name).read_text(errors="replace")


def is_shell(name):
    """A shell script, by its name or its first line."""
    if name.endswith(".sh"):
        return True
    with open(ROOT / name, "rb") as file:
        first = file.readline(80)
    return first.startswith(b"#!") and first.rstrip().endswith(b"sh")


def compare_counts(title, now, places, advice):
    """now: FILE -> how much of it is wrong; places: FILE -> `FILE:LINE` of it, for messages.
    True if it is what the list `title`.txt says. --update lowers the list, --accept replaces it."""
    path = LISTS / f"{title}.txt"
    listed = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        name, count = line.rsplit(" ", 1)
        listed[name] = int(count)
    if "--accept" in sys.argv or "--update" in sys.argv:
        if "--accept" in sys.argv:
            kept = now
        else:
            kept = {n: min(c, now.get(n, 0)) for n, c in listed.items()}
        path.write_text("".join(f"{n} {c}\n" for n, c in sorted(kept.items()) if c))
        listed = kept
    good = True
    for name in sorted(now.keys() | listed.keys()):
        is_now, was = now.get(name, 0), listed.get(name, 0)
        if is_now > was:
            good = False
            print(
                f"{places(name)}: {title}: {is_now}, but {was} in scripts/lint/{title}.txt. {advice}"
            )
        elif is_now < was:
            good = False
            print(
                f"{name}: {title}: {is_now}, but {was} in scripts/lint/{title}.txt. "
                "Lower the list: scripts/lint.sh --update"
            )
    return good


def compare_lines(title, now, advice):
    """now: text -> `FILE:LINE`. True if it is what the list `title`.txt says."""
    path = LISTS / f"{title}.txt"
    listed = set(path.read_text().splitlines()) if path.exists() else set()
    if "--accept" in sys.argv or "--update" in sys.argv:
        listed = set(now) if "--accept" in sys.argv else listed & set(now)
        path.write_text("".join(f"{line}\n" for line in sorted(listed)))
    for line in sorted(set(now) - listed):
        print(f"{now[line]}: {title}: {line}. {advice}")
    for line in sorted(listed - set(now)):
        print(
            f"scripts/lint/{title}.txt: {line}: no longer so. Lower the list: scripts/lint.sh --update"
        )
    return listed == set(now)
