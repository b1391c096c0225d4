"""Prints which code of others is in the binary, under what license, and the texts that go with it: third-party.py TARGET."""

import json
import os
import re
import subprocess
import sys

# C code bundled with crates, with its license files; and the libc, which is the build machine's.
BUNDLED = {
    "libbpf-sys": [
        "libbpf/LICENSE.BSD-2-Clause",
        "libbpf/LICENSE.LGPL-2.1",
        "elfutils/COPYING-LGPLV3",
        "zlib/LICENSE",
    ],
    "zydis": ["zydis-c/LICENSE", "zydis-c/dependencies/zycore/LICENSE"],
}
LIBC = "glibc, LGPL-2.1-or-later; linked statically. Its text is that of libbpf's LICENSE.LGPL-2.1 below; its sources are those of "
TEXT = re.compile(r"(LICEN[CS]E|COPYING|NOTICE|COPYRIGHT)([-.].*)?", re.IGNORECASE)


def main(target):
    command = [
        "cargo",
        "metadata",
        "--locked",
        "--format-version",
        "1",
        "--filter-platform",
        target,
    ]
    metadata = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    packages = {p["id"]: p for p in metadata["packages"]}

    def is_macro(i):
        return any("proc-macro" in t["kind"] for t in packages[i]["targets"])

    linked_packages = (packages[i] for i in linked(metadata, is_macro))
    used = sorted(
        # Crates of this workspace have no source.
        (p for p in linked_packages if p["source"]),
        key=lambda p: (p["name"], p["version"]),
    )

    print("The lissom binary contains, beside its own code:\n")
    for p in used:
        print(f"  {p['name']} {p['version']}: {p['license']}")
    print(
        "  of libbpf-sys: libbpf (BSD-2-Clause or LGPL-2.1), libelf (LGPL-3.0-or-later or GPL-2.0-or-later), zlib (Zlib)"
    )
    print("  of zydis: Zydis and Zycore (MIT)")
    print("  " + LIBC + system())
    seen = {}
    for p in used:
        folder = os.path.dirname(p["manifest_path"])
        names = [
            n
            for n in sorted(os.listdir(folder))
            if TEXT.fullmatch(n) and os.path.isfile(os.path.join(folder, n))
        ]
        for name in names + BUNDLED.get(p["name"], []):
            with open(os.path.join(folder, name), errors="replace") as f:
                seen.setdefault(f.read().strip(), []).append(f"{p['name']}: {name}")
    for text, places in seen.items():
        print("\n" + "-" * 80 + "\n" + "\n".join(places) + "\n\n" + text)


def linked(metadata, is_macro):
    """The packages that are linked, without those that only build or test, or run in the compiler."""
    nodes = {n["id"]: n for n in metadata["resolve"]["nodes"]}
    root = next(p["id"] for p in metadata["packages"] if p["name"] == "lissom")
    found, todo = set(), [root]
    while todo:
        for d in nodes[todo.pop()]["deps"]:
            if (
                d["pkg"] not in found
                and not is_macro(d["pkg"])
                and any(k["kind"] is None for k in d["dep_kinds"])
            ):
                found.add(d["pkg"])
                todo.append(d["pkg"])
    return found


def system():
    """Distribution and version of the libc, as its license wants it to be found again."""
    version = os.confstr("CS_GNU_LIBC_VERSION")
    package = subprocess.run(
        [
            "dpkg-query",
            "-W",
            "-f",
            "${source:Package} ${source:Version}, Debian",
            "libc6-dev:amd64",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    return package.stdout or version


main(sys.argv[1])
