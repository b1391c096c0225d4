#!/usr/bin/env python3
"""Every name in the right columns of SPECIFICATION.md exists. The page itself says how they are written."""

import re
import sys
from fnmatch import fnmatchcase

from tree import ROOT, files, read

PAGE = "SPECIFICATION.md"
# Folder of the scripts that `make TARGET`: `NAME` refers to.
SCRIPTS = {
    "test-dist": "dist",
    "test-kvm": "kvm",
    "test-recipes": "recipes",
    "test-slurm": "slurm",
    "test-vm": "sched",
}
TOKEN = re.compile(r"`([^`]+)`|\b(unit tests?)\b|(?<![`\w])(docs/[\w/.-]+\w)|(;)")
RUST_PATH = re.compile(r"[a-z_]\w*(::(\w+|\*))*")


def module_path(path):
    """A library's modules are named after it, those of the binary are not: os::elf, but manager."""
    crate, module = re.fullmatch(r"crates/(\w+)/(.*)", path).groups()
    module = module.removeprefix("src/").replace("lib.rs", "mod.rs")
    return f"src/{module}" if crate == "lissom" else f"src/{crate}/{module}"


class Names:
    """What there is to be named."""

    def __init__(self):
        self.cases = {}
        for path in files("tests/cases/*.txt"):
            found = re.findall(r"^NAME (.*?)\s*$", read(path), re.M)
            self.cases[path.split("/")[-1].removesuffix(".txt")] = found
        self.targets = set(re.findall(r"^([a-z-]+):", read("Makefile"), re.M))
        self.rust = {module_path(path): read(path) for path in files("crates/*.rs")}
        go = "".join(read(path) for path in files("packaging/kubernetes/tests/*_test.go"))
        self.go = (
            set(re.findall(r"^func (Test\w+)\(", go, re.M)),
            set(re.findall(r'"([\w-]+)"', go)),
        )

    def case(self, file, name):
        if file not in self.cases:
            return f"there is no tests/cases/{file}.txt"
        if not any(matches(n, name) for n in self.cases[file]):
            return f"no case of this name in tests/cases/{file}.txt"
        return None

    def cases_between(self, file, first, last):
        names = self.cases[file]
        if first in names and last in names and names.index(first) >= names.index(last):
            return f"`{first}` does not come before it in tests/cases/{file}.txt"
        return None

    def unit(self, name):
        """A module with tests, or a test in one."""
        parts = name.split("::")
        if parts[-1] == "*":
            parts.pop()
        function = parts.pop() if "tests" in parts else None
        if "tests" in parts:
            parts.remove("tests")
        base = "src/" + "/".join(parts)
        # A module's tests may be in a file of their own.
        own = (f"{base}.rs", f"{base}/mod.rs", f"{base}_test.rs", f"{base}/tests.rs")
        texts = [
            text for path, text in self.rust.items() if path in own or path.startswith(f"{base}/")
        ]
        if not any(path in self.rust for path in own[:2]):
            return f"there is no module {base}"
        if function and not any(re.search(rf"\bfn {function}\b", text) for text in texts):
            return f"no fn {function} in {base}"
        if not any("#[test]" in text for text in texts):
            return f"no #[test] in {base}"
        return None

    def is_module(self, name):
        """A word that is none, and no file of cases either, is meant to be one."""
        return name not in self.cases or any(p.startswith(f"src/{name}") for p in self.rust)

    def made(self, target):
        return None if target in self.targets else f"the Makefile has no target {target}"

    def script(self, target, name):
        """A test of `make TARGET`."""
        path = f"tests/{SCRIPTS[target]}/test_{name}.sh"
        return None if (ROOT / path).exists() else f"there is no {path}"

    def file(self, text):
        path, *arguments = text.split()
        if not (ROOT / path).exists():
            return f"there is no {path}"
        missing = [a for a in arguments if a not in read(path)]
        return f"{path} does not know `{missing[0]}`" if missing else None

    def step(self, path, name):
        return None if f'"{name}' in read(path) else f"no step of this name in {path}"

    def bench(self, text):
        verb, *options = text.split()[2:]
        folder = "".join(read(p) for p in files("crates/bench/src/*.rs"))
        if not any((ROOT / f"crates/bench/src/{verb}{end}").exists() for end in (".rs", "/mod.rs")):
            if not re.search(rf'"{verb}"', folder):
                return f"`lissom bench` does not know `{verb}`"
        for option in options:
            name = option.removeprefix("--").replace("-", "_")
            if not re.search(rf"\b{name}\b", folder):
                return f"`lissom bench` does not know `{option}`"
        return None

    def go_test(self, text):
        name, _, part = text.partition("/")
        if not any(matches(n, name) for n in self.go[0]):
            return "no Go test of this name in packaging/kubernetes/tests"
        if part and part not in self.go[1]:
            return f"no part of this name in {name}"
        return None


def matches(name, pattern):
    return fnmatchcase(name, pattern.replace("[", "[[]"))


def check_cell(names, cell):
    """What is wrong with the names of a cell: (name, why)."""
    file = target = path = last = None
    is_unit, at = False, 0
    for token in TOKEN.finditer(cell):
        name, unit, page, end = token.groups()
        between = cell[at : token.start()]
        at = token.end()
        why = None
        if unit:
            is_unit, target, path = True, None, None
            continue
        if end:
            is_unit, target, path = False, None, None
            continue
        if page:
            why, name = names.file(page), page
        elif name.startswith("make "):
            is_unit, path, target = False, None, name.removeprefix("make ")
            why = names.made(target)
        elif name.startswith("lissom bench "):
            is_unit, why = False, names.bench(name)
        elif re.fullmatch(r"Test\w*\*?(/\w+)?", name):
            why = names.go_test(name)
        elif is_unit and RUST_PATH.fullmatch(name) and names.is_module(name.split("::")[0]):
            why = names.unit(name)
        elif "::" in name and " " not in name.split("::")[0]:
            is_unit, target, path = False, None, None
            file, last = name.split("::", 1)
            why = names.case(file, last)
        elif "/" in name and " " not in name.split("/")[0]:
            is_unit, target, path = False, None, name.split()[0]
            why = names.file(name)
        elif target in SCRIPTS:
            why = names.script(target, name)
        elif path:
            why = names.step(path, name)
        elif file in names.cases:
            why = names.case(file, name)
            if not why and between.strip() == "to":
                why = names.cases_between(file, last, name)
            last = name
        else:
            why = "nothing says what this is the name of"
        if why:
            yield name, why


def main():
    names, good = Names(), True
    for number, line in enumerate(read(PAGE).splitlines(), 1):
        cells = line.strip().strip("|").split(" | ")
        if not line.startswith("| ") or len(cells) != 2 or "held by" in cells[1]:
            continue
        problems = list(check_cell(names, cells[1]))
        if not re.search(r"`|docs/", cells[1]):
            problems.append((cells[1].strip(), "names no test"))
        for name, why in problems:
            good = False
            print(f"{PAGE}:{number}: `{name}`: {why}. Correct the name, here or there.")
    sys.exit(not good)


main()
