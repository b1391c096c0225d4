"""Splash-3: fourteen parallel programs, with 8 and with 32 threads.

The exit code has to be the same, and so do the results where they do not depend on the order of the
threads: lines of the output, and the images that two programs write beside their inputs.
"""

import dataclasses
import glob
import hashlib
import os
import re
import shutil

import suite
from suite import Plan, Test

NAME = "splash3"
TITLE = "Splash-3, with small inputs"
HOW = "clone SakalisC/Splash-3 from GitHub into SUITES/Splash-3"
RUNS_PER_CPU = 0.5  # each makes 8 or 32 threads
PASSING_ONLY = True

THREADS = (8, 32)


@dataclasses.dataclass(frozen=True)
class Program:
    """{p} in the command and in the name of the input is the number of threads."""

    folder: str  # below codes
    command: str  # a program in the folder, and its arguments
    stdin: str = os.devnull
    results: str | None = None  # of the output's lines, those that match are compared
    # Compare two digits of the sum of all numbers in the lines: natively it varies by 0.4 %, too.
    total: bool = False
    images: str | None = None  # what the program writes, as a pattern of the shell
    files: tuple[str, ...] = ()  # of the folder, that the program opens


PROGRAMS = {
    "barnes": Program("apps/barnes", "BARNES", "inputs/n16384-p{p}"),
    "cholesky": Program("kernels/cholesky", "CHOLESKY -p{p} -t", "inputs/tk15.O", "PASSED|FAILED"),
    "fft": Program("kernels/fft", "FFT -p{p} -m16 -t", results="TEST (PASSED|FAILED)|Checksum"),
    "fmm": Program("apps/fmm", "FMM -o", "inputs/input.{p}.16384", "Pos ", total=True),
    "lu-contiguous": Program(
        "kernels/lu/contiguous_blocks", "LU -p{p} -n512 -t", results="TEST (PASSED|FAILED)"
    ),
    "lu-non-contiguous": Program(
        "kernels/lu/non_contiguous_blocks", "LU -p{p} -n512 -t", results="TEST (PASSED|FAILED)"
    ),
    "ocean-contiguous": Program(
        "apps/ocean/contiguous_partitions", "OCEAN -p{p} -n258 -o", results="iteration|residual"
    ),
    "ocean-non-contiguous": Program(
        "apps/ocean/non_contiguous_partitions", "OCEAN -p{p} -n258 -o", results="iteration|residual"
    ),
    "radiosity": Program(
        "apps/radiosity", "RADIOSITY -p {p} -ae 5000 -bf 0.1 -en 0.05 -room -batch"
    ),
    "radix": Program("kernels/radix", "RADIX -p{p} -n1048576 -t", results="(PASSED|FAILED):"),
    "raytrace": Program(
        "apps/raytrace", "RAYTRACE -p{p} -m64 inputs/teapot.env", images="inputs/*.rl"
    ),
    "volrend": Program(
        "apps/volrend", "VOLREND {p} inputs/head-scaleddown2 8", images="inputs/*_[0-9]*"
    ),
    "water-nsquared": Program(
        "apps/water-nsquared",
        "WATER-NSQUARED",
        "inputs/n512-p{p}",
        r"^ *\d+ +\d+\.|Exited",
        files=("random.in",),
    ),
    "water-spatial": Program(
        "apps/water-spatial",
        "WATER-SPATIAL",
        "inputs/n512-p{p}",
        r"^ *\d+ +\d+\.|Exited",
        files=("random.in",),
    ),
}


def find(suites):
    path = os.path.join(suites or "", "Splash-3")
    return path if suites and os.path.exists(os.path.join(path, "codes/Makefile")) else None


def summary(lines, total):
    """Return few words that stand for the lines."""
    if total:
        numbers = re.findall(r"-?\d+\.\d+", " ".join(lines))
        return f"{len(lines)} lines, total {sum(abs(float(n)) for n in numbers):.2g}"
    text = " | ".join(" ".join(line.split()) for line in lines)
    if len(text) < 100:
        return text
    return f"{len(lines)} lines {hashlib.sha256(text.encode()).hexdigest()[:12]}"


def judge(results, total):
    """Return a judge that adds what the output has of results to the exit code."""

    def with_results(code, output):
        if code != 0:
            return suite.describe(code, output)
        lines = [line for line in output.splitlines() if re.search(results, line)]
        return "pass, " + summary(lines, total)

    return with_results


def prepare(source, work, jobs, _wanted):
    copy, log = os.path.join(work, "codes"), os.path.join(work, "log")
    folders = sorted({program.folder for program in PROGRAMS.values()})
    inputs = [name for name in suite.files_below(os.path.join(source, "codes"))]
    stamp = suite.fingerprint(folders, files=inputs)
    problems = suite.saved(work, stamp)
    if problems is None:
        print(f"  compiling {len(folders)} programs", flush=True)
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(os.path.join(source, "codes"), copy)
        problems = {}
        for name, program in PROGRAMS.items():
            # Makefiles do not name all headers that a file needs: use one job.
            if not suite.make(os.path.join(copy, program.folder), log, "make"):
                problems[name] = f"`make` failed in {program.folder}: see {log}"
        suite.save(work, stamp, problems)
    plan = Plan(problems=problems)
    for name, program in PROGRAMS.items():
        folder = os.path.join(copy, program.folder)
        for threads in THREADS:
            test = f"{name}-{threads}"
            stdin = program.stdin.replace("{p}", str(threads))
            command = program.command.replace("{p}", str(threads))
            needed = [stdin, *re.findall(r"inputs/\S+", command)]
            missing = [n for n in needed if not any_file(os.path.join(folder, n))]
            if name in problems:
                plan.leave_out(problems[name], test)
            elif missing:
                plan.leave_out(f"the sources lack {missing[0]}", test)
            else:
                plan.tests.append(test_of(test, program, folder, command, stdin))
    return plan


def any_file(path):
    return bool(glob.glob(path + "*"))


def test_of(name, program, folder, command, stdin):
    script = "{lissom} " + os.path.join(folder, command)
    results = program.results
    if program.images:
        results = "^[0-9a-f]{64} "
        script = (
            f"cp -r {folder}/inputs . && rm -f {program.images} && {script} && "
            f"sha256sum {program.images}"
        )
    return Test(
        name,
        script=script,
        stdin=os.path.join(folder, stdin),
        files=[os.path.join(folder, name) for name in program.files],
        judge=judge(results, program.total) if results else suite.describe,
    )
