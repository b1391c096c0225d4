"""What every suite shares: its tests, where its files go, and how its programs are compiled.

A suite is a module with

    NAME            the word that SUITE= takes
    TITLE           what it is, for the reader
    HOW             how to get the sources
    RUNS_PER_CPU    runs at once for each CPU; above one if the tests mostly sleep
    PASSING_ONLY    compare only what passes natively, not every steady result
    find(suites)    the path of the sources below that folder, or None
    prepare(source, work, jobs, wanted)    build what is not built yet, of the tests for whose
                    name wanted(name) holds; return a Plan
"""

import concurrent.futures
import dataclasses
import glob
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TARGET = os.path.abspath(os.environ.get("CARGO_TARGET_DIR") or os.path.join(ROOT, "target"))
LISSOM = os.path.join(TARGET, "release/lissom")
HERE = os.path.join(ROOT, "tests/conformance")
WORK = os.path.join(TARGET, "conformance")
LIBC = "/lib/x86_64-linux-gnu/libc.so.6"
LONGEST_NATIVE = 20  # seconds
COMPLAINT = re.compile(r"((fatal )?[Ee]rror: |sorry, unimplemented: |undefined ).*")


def describe(code: int | None, _output: str) -> str:
    """Name the result of a program that ended with `code`; None if it was killed at its limit."""
    if code is None:
        return "timeout"
    if code == 0:
        return "pass"
    return f"signal {-code}" if code < 0 else f"exit {code}"


@dataclasses.dataclass(frozen=True)
class Test:
    """A test that is built. {folder} in its words is the folder of the run, the working directory.

    A test with a `script` runs that with bash instead of `command`; {lissom} in it is where the
    words of `lissom run` go.
    """

    name: str
    command: list[str] = dataclasses.field(default_factory=list)
    script: str | None = None
    environment: dict[str, str] = dataclasses.field(default_factory=dict)
    under_lissom: dict[str, str] = dataclasses.field(default_factory=dict)
    stdin: str = os.devnull
    files: list[str] = dataclasses.field(default_factory=list)  # links to them are made in {folder}
    longest: float = LONGEST_NATIVE  # seconds, natively; a test that takes longer is left out
    judge: Callable[[int | None, str], str] = describe


@dataclasses.dataclass
class Plan:
    """What of a suite can run here."""

    tests: list[Test] = dataclasses.field(default_factory=list)
    problems: dict[str, str] = dataclasses.field(default_factory=dict)  # name -> compiler's words
    left_out: dict[str, list[str]] = dataclasses.field(default_factory=dict)  # why -> names

    def leave_out(self, why: str, name: str) -> None:
        self.left_out.setdefault(why, []).append(name)


# --- what is built already -----------------------------------------------------------------------


def fingerprint(*parts: object, files: list[str] = ()) -> str:
    """Return a digest that changes with the parts, the files and the system's C library."""
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode())
    for name in [LIBC, *files]:
        status = os.stat(name)
        digest.update(f"{name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def files_below(folder: str) -> list[str]:
    """Return every file below the folder, but those of git."""
    found = []
    for path, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - {".git"})
        found += [os.path.join(path, name) for name in sorted(names)]
    return [name for name in found if os.path.isfile(name)]


def saved(work: str, stamp: str) -> dict | None:
    """Return what `save` kept in the folder under the same stamp, or None."""
    try:
        with open(os.path.join(work, "built.json"), encoding="utf-8") as f:
            kept = json.load(f)
    except (OSError, ValueError):
        return None
    return kept["problems"] if kept.get("stamp") == stamp else None


def save(work: str, stamp: str, problems: dict) -> None:
    with open(os.path.join(work, "built.json"), "w", encoding="utf-8") as f:
        json.dump({"stamp": stamp, "problems": problems}, f, indent=1)


def empty(folder: str) -> str:
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    return folder


# --- building ------------------------------------------------------------------------------------


def compile_(output: str, arguments: list[str], cwd: str | None = None) -> str | None:
    """Run a compiler that makes `output`. Return None, or its first complaint."""
    os.makedirs(os.path.dirname(output), exist_ok=True)
    done = subprocess.run(
        [*arguments, "-o", output],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
        cwd=cwd,
    )
    if done.returncode == 0:
        return None
    with open(output + ".log", "w", encoding="utf-8") as f:
        f.write(shlex.join(arguments) + "\n" + done.stdout)
    lines = done.stdout.strip().splitlines() or [f"{arguments[0]} ended with {done.returncode}"]
    complaints = (COMPLAINT.search(line) for line in lines)
    return next((match[0] for match in complaints if match), lines[-1])


@dataclasses.dataclass(frozen=True)
class Program:
    """A program to compile: the words of each compiler, in turn, and the file each makes."""

    name: str
    steps: list[tuple[str, list[str]]]
    cwd: str | None = None


def stamp_of(program: Program, cache: dict[str, str]) -> str:
    """Return a digest that changes with the words, the sources, and headers where -I points."""
    words = {word for _, arguments in program.steps for word in arguments}
    outputs = {output for output, _ in program.steps}
    parts = []
    for word in sorted(words - outputs):
        if word not in cache:
            files = [word] if os.path.isfile(word) else []
            if word.startswith("-I"):
                files = sorted(glob.glob(os.path.join(glob.escape(word[2:]), "*.[hF]*")))
            cache[word] = fingerprint(files=files) if files else ""
        parts.append(cache[word])
    return fingerprint(program.steps, parts)


def compile_programs(work: str, programs: list[Program], jobs: int) -> dict[str, str]:
    """Compile what changed since the last time. Return the name of each failure and why."""
    cache = {}
    stamps = {p.name: stamp_of(p, cache) for p in programs}
    kept = saved(work, "programs") or {}
    due = [p for p in programs if kept.get(p.name, [None])[0] != stamps[p.name]]
    if due:
        print(f"  compiling {len(due)} programs into {os.path.relpath(work, ROOT)}", flush=True)

    def one(program: Program) -> str | None:
        if program.cwd:
            os.makedirs(program.cwd, exist_ok=True)
        for output, arguments in program.steps:
            complaint = compile_(output, arguments, program.cwd)
            if complaint:
                return complaint
        return None

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for program, complaint in zip(due, pool.map(one, due), strict=True):
            kept[program.name] = [stamps[program.name], complaint]
    save(work, "programs", kept)
    return {p.name: kept[p.name][1] for p in programs if kept[p.name][1]}


def make(folder: str, log: str, *arguments: str, environment: dict | None = None) -> bool:
    """Run a command of an in-tree build; append its output to `log`. Return whether it worked."""
    with open(log, "ab") as output:
        done = subprocess.run(
            arguments,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=os.environ | (environment or {}),
            check=False,
        )
    return done.returncode == 0
