"""The wheel: build.py BINARY VERSION FOLDER. `pip install` puts the program into bin, and the program unpacks its library by itself.

Written by hand, since it has five files: https://packaging.python.org/en/latest/specifications/binary-distribution-format/
"""

import base64
import hashlib
import os
import sys
import time
import zipfile

# Requirements of managed programs; the binary itself has none.
TAG = "py3-none-manylinux_2_31_x86_64"


def main(binary, version, folder):
    info = f"lissom-{version}.dist-info"
    with open("README.md") as f:
        readme = f.read()
    metadata = "\n".join(
        [
            "Metadata-Version: 2.1",
            "Name: lissom",
            f"Version: {version}",
            "Summary: Runs a program with any number of threads as if it had as many as there are cores",
            "License: MIT",
            "License-File: LICENSE",
            "Classifier: License :: OSI Approved :: MIT License",
            "Classifier: Operating System :: POSIX :: Linux",
            "Requires-Python: >=3",
            "Description-Content-Type: text/markdown",
            "",
            readme,
        ]
    )
    wheel = f"Wheel-Version: 1.0\nGenerator: lissom\nRoot-Is-Purelib: false\nTag: {TAG}\n"
    files = [
        (f"lissom-{version}.data/scripts/lissom", read(binary), 0o755),
        (f"{info}/LICENSE", read("LICENSE"), 0o644),
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
