#!/usr/bin/env python3
"""Lower layers of the runtime never include upward, nor do lower crates depend upward; verbs of the
tool never import verbs. docs/design/layers.md shows the layers; --update draws its graphs anew."""

import re
import sys

import tomllib
from tree import ROOT, compare_lines, files, read

# layer of the runtime: folders below runtime/, and the layers that it may include
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

# Crates from the lowest level to the highest. A crate depends on lower levels only.
CRATES = (
    ("build", "ui"),
    ("os", "judge", "study"),
    ("runtime",),
    ("watch", "scx", "kvm"),
    ("bench",),
    ("lissom",),
)

VERBS = {"doctor", "gdb", "man", "manager", "record", "run", "stat", "top"}
# These combine or test the verbs.
ABOVE_VERBS = {"main", "cli", "man", "fuzz", "help_test"}

PAGE = "docs/design/layers.md"


def layer_of(path):
    part = path.split("/")[1]
    return next((layer for layer, (parts, _) in LAYERS.items() if part in parts), "entry")


def includes(found):
    """Return which layers each layer includes."""
    edges = {layer: set() for layer in LAYERS}
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
            if layer_of(target) != layer:
                edges[layer].add(layer_of(target))
            if layer_of(target) not in allowed:
                found.setdefault(f"{path} -> {target}", f"{path}:{number}")
    return edges


def dependencies(found):
    """Return which crates each crate depends on."""
    level = {crate: at for at, crates in enumerate(CRATES) for crate in crates}
    edges = {}
    for path in files("crates/*/Cargo.toml"):
        crate, manifest = path.split("/")[1], tomllib.loads(read(path))
        tables = ("dependencies", "build-dependencies", "dev-dependencies")
        names = {name for table in tables for name in manifest.get(table, ())}
        edges[crate] = names & level.keys()
        for target in edges[crate]:
            if level[target] >= level.get(crate, 0):
                found.setdefault(f"{path} -> {target}", f"{path}:1")
    return edges


def imports(found):
    for path in files("crates/lissom/src/*.rs"):
        own = path.split("/")[3].removesuffix(".rs")
        if own in ABOVE_VERBS:
            continue
        text = read(path)
        for match in re.finditer(r"\bcrate::(?:(\w+)|\{)", text):
            names = [match.group(1)] if match.group(1) else names_in_braces(text, match.end())
            for name in names:
                if name in VERBS and name != own:
                    line = text.count("\n", 0, match.start()) + 1
                    found.setdefault(f"{path} -> {name}", f"{path}:{line}")


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


def graph(edges):
    """A graph in Mermaid's language, without the arrows that follow from others."""
    reached = {}

    def reach(node):
        if node not in reached:
            reached[node] = set(edges[node]).union(*(reach(n) for n in edges[node]))
        return reached[node]

    lines = ["```mermaid", "flowchart TD"]
    for node in sorted(edges):
        implied = set().union(*(reach(n) for n in edges[node]))
        lines += [f"    {node} --> {target}" for target in sorted(edges[node] - implied)]
    return "\n".join([*lines, "```"])


def drawn(page, graphs):
    for name, edges in graphs.items():
        begin, end = f"<!-- {name}: drawn by scripts/lint.sh --update -->\n", "\n<!-- end -->"
        head, rest = page.split(begin)
        page = head + begin + graph(edges) + end + rest.split(end, 1)[1]
    return page


def main():
    found = {}
    graphs = {"crates": dependencies(found), "runtime": includes(found)}
    imports(found)
    advice = (
        "An upper layer registers a hook in a lower one; what verbs share is a module of its own."
    )
    good = compare_lines("layers", found, advice)
    if not good:  # The graphs may have circles.
        sys.exit(1)
    page = read(PAGE)
    new = drawn(page, graphs)
    if new != page and "--update" in sys.argv:
        (ROOT / PAGE).write_text(new)
    elif new != page:
        print(f"{PAGE}:1: its graphs are old: scripts/lint.sh --update draws them")
        sys.exit(1)


main()
