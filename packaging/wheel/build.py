"""The wheel: build.py BINARY VERSION THIRD_PARTY FOLDER.

`pip install` puts the program into bin and the package lissom beside others; the program unpacks
its library by itself. Written by hand, since it has few files:
https://packaging.python.org/en/latest/specifications/binary-distribution-format/
"""

import base64
import hashlib
import os
import re
import sys
import time
import zipfile

# Requirements of managed programs; the binary itself has none.
TAG = "py3-none-manylinux_2_28_x86_64"
SOURCES = "packaging/wheel/lissom"
# A link to a file of the source tree, which a page elsewhere lacks.
RELATIVE_LINK = re.compile(r"\[([^\]]*)\]\((?!\w+:)[^)]*\)")


def main(binary, version, third_party, folder):
    info = f"lissom-{version}.dist-info"
    metadata = "\n".join(
        [
            "Metadata-Version: 2.4",
            "Name: lissom",
            f"Version: {version}",
            "Summary: Run multithreaded programs fast, also when threads outnumber CPUs",
            # The programs for the kernel are under the GPL.
            "License-Expression: MIT AND GPL-2.0-only",
            "License-File: LICENSE",
            "License-File: GPL-2.0",
            "License-File: third-party.txt",
            "Keywords: threads,oversubscription,scheduling,OpenMP",
            "Classifier: Operating System :: POSIX :: Linux",
            "Classifier: Programming Language :: Python :: 3",
            "Classifier: Topic :: System :: Operating System Kernels :: Linux",
            "Classifier: Typing :: Typed",
            "Requires-Python: >=3.8",
            "Description-Content-Type: text/markdown",
            "",
            RELATIVE_LINK.sub(r"\1", read("README.md").decode()),
        ]
    )
    wheel = f"Wheel-Version: 1.0\nGenerator: lissom\nRoot-Is-Purelib: false\nTag: {TAG}\n"
    sources = sorted(n for n in os.listdir(SOURCES) if n.endswith((".py", ".typed")))
    files = [(f"lissom/{name}", read(f"{SOURCES}/{name}"), 0o644) for name in sources]
    files += [
        (f"lissom-{version}.data/scripts/lissom", read(binary), 0o755),
        (f"{info}/licenses/LICENSE", read("LICENSE"), 0o644),
        (f"{info}/licenses/GPL-2.0", read("LICENSES/GPL-2.0"), 0o644),
        (f"{info}/licenses/third-party.txt", read(third_party), 0o644),
        (f"{info}/METADATA", metadata.encode(), 0o644),
        (f"{info}/WHEEL", wheel.encode(), 0o644),
    ]
    record = "".join(f"{name},sha256={digest(data)},{len(data)}\n" for name, data, _ in files)
    record += f"{info}/RECORD,,\n"
    files.append((f"{info}/RECORD", record.encode(), 0o644))

    when = time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))[:6]
    with zipfile.ZipFile(os.path.join(folder, f"lissom-{version}-{TAG}.whl"), "w") as archive:
        for name, data, mode in files:
            entry = zipfile.ZipInfo(name, when)
            entry.create_system = 3  # Unix, or the mode means nothing
            entry.external_attr = (0o100000 | mode) << 16
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED, 9)


def read(path):
    with open(path, "rb") as f:
        return f.read()


def digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


main(*sys.argv[1:])
