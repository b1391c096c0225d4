#!/usr/bin/env python3
"""Lower layers of the runtime never include upward, and verbs of the tool never import verbs."""

import re
import sys

from tree import compare_lines, files, read

# layer: folders and files below runtime/, and the layers that it may include
LAYERS = {
    "prim": (("prim",), ()),
    "policy": (("policy",), ("prim",)),  # pure functions
    "patch": (("patch",), ("prim",)),  # redirects calls; knows no thread
    "cpus": (("cpus",), ("prim",)),
    "core": (("sched",), ("prim", "policy", "patch", "cpus")),
    "wait": (("futex", "events"), ("prim", "policy", "patch", "cpus", "core")),
    "spin": (("spin",), ("prim", "policy", "patch", "cpus", "core", "wait")),
    "omp": (("omp",), ("prim", "patch", "cpus", "core", "wait")),
    # monitor/, and the files of runtime/ itself.
    "entry": ((), ("prim", "policy", "patch", "cpus", "core", "wait", "spin", "omp")),
}
# Outside of the layers: shared by runtime and tools.
EVERYBODYS = {"runtime/abi.h"}

VERBS = {"bench", "doctor", "gdb", "kvm", "load", "man", "manager", "run", "sched", "stat", "top"}
# These combine or test the verbs.
ABOVE_VERBS = {"src/main.rs", "src/cli.rs", "src/man.rs", "src/fuzz.rs"}


def layer_of(path):
    part = path.split("/")[1]
    return next((layer for layer, (parts, _) in LAYERS.items() if part in parts), "entry")


def includes(found):
    sources = set(files("runtime/*.c", "runtime/*.h", "runtime/*.S"))
    for path in sorted(sources):
        layer = layer_of(path)
        allowed = {layer, *LAYERS[layer][1]}
        for number, line in enumerate(read(path).splitlines(), 1):
            match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            if not match:
                continue
            beside = f"{path.rsplit('/', 1)[0]}/{match.group(1)}"
            target = beside if beside in sources else f"runtime/{match.group(1)}"
            if target in EVERYBODYS or target not in sources:
                continue
            if layer_of(target) not in allowed:
                found.setdefault(f"{path} -> {target}", f"{path}:{number}")


def imports(found):
    for path in files("src/*.rs"):
        own = path.split("/")[1].removesuffix(".rs")
        if path in ABOVE_VERBS:
            continue
        text = read(path)
        for match in re.finditer(r"\bcrate::(?:(\w+)|\{)", text):
            names = [match.group(1)] if match.group(1) else names_in_braces(text, match.end())
            for name in names:
                if name in VERBS and name != own:
                    line = text.count("\n", 0, match.start()) + 1
                    found.setdefault(f"{path} -> src/{name}", f"{path}:{line}")


def names_in_braces(text, at):
    """The first parts of the paths in `{a::b, c::{d, e}}`, which begins before `at`."""
    depth, names, word = 1, [], ""
    while depth:
        char = text[at]
        depth += (char == "{") - (char == "}")
        if depth == 1 and (char == "," or char == "}"):
            names.append(word)
            word = ""
        elif depth == 1:
            word += char
        at += 1
    names.append(word)
    return [re.match(r"\s*(\w*)", name).group(1) for name in names]


def main():
    found = {}
    includes(found)
    imports(found)
    advice = (
        "An upper layer registers a hook in a lower one; what verbs share is a module of its own."
    )
    sys.exit(not compare_lines("layers", found, advice))


main()
