"""The container image: build.py TREE VERSION FOLDER, where TREE is the unpacked archive.

One layer on nothing. The file is an image layout of the Open Container Initiative (index.json) and, for tools that know that only, what
`docker save` writes (manifest.json), of the same blobs: https://github.com/opencontainers/image-spec
"""

import hashlib
import io
import json
import os
import sys
import tarfile
import time

EPOCH = int(os.environ["SOURCE_DATE_EPOCH"])
CREATED = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(EPOCH))
# The folders of use in an image, in which no user logs in.
KEPT = ("bin", "lib", "share/doc")


def main(tree, version, folder):
    layer = archive(sorted(walk(tree), key=lambda entry: entry[0]))
    config = encode(
        {
            "created": CREATED,
            "architecture": "amd64",
            "os": "linux",
            "config": {
                # An unprivileged user is enough for the command itself. Images that copy from this
                # one have users of their own.
                "User": "65534:65534",
                "Entrypoint": ["/usr/bin/lissom"],
                "Cmd": ["--help"],
                "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
                "Labels": {
                    "org.opencontainers.image.title": "lissom",
                    "org.opencontainers.image.version": version,
                    "org.opencontainers.image.licenses": "MIT",
                },
            },
            "rootfs": {"type": "layers", "diff_ids": ["sha256:" + sha256(layer)]},
            "history": [{"created": CREATED, "created_by": "make dist"}],
        }
    )
    manifest = encode(
        {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": descriptor("application/vnd.oci.image.config.v1+json", config),
            "layers": [descriptor("application/vnd.oci.image.layer.v1.tar", layer)],
        }
    )
    index = encode(
        {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": [
                {
                    **descriptor("application/vnd.oci.image.manifest.v1+json", manifest),
                    "platform": {"architecture": "amd64", "os": "linux"},
                    "annotations": {"org.opencontainers.image.ref.name": version},
                }
            ],
        }
    )
    docker = encode(
        [{"Config": blob(config), "RepoTags": [f"lissom:{version}"], "Layers": [blob(layer)]}]
    )
    files = [
        ("oci-layout", encode({"imageLayoutVersion": "1.0.0"})),
        ("index.json", index),
        ("manifest.json", docker),
    ]
    files += sorted((blob(data), data) for data in (layer, config, manifest))
    with open(os.path.join(folder, f"lissom-{version}-oci.tar"), "wb") as f:
        f.write(archive([(name, 0o644, data) for name, data in files]))


def walk(tree):
    """(path in the image, mode, content; None: a folder; a string: a link to it), below /usr."""
    for folder, _, files in os.walk(tree):
        inside = os.path.relpath(folder, tree)
        if inside == "." or any(
            k == inside or k.startswith(inside + "/") or inside.startswith(k + "/") for k in KEPT
        ):
            yield os.path.normpath(os.path.join("usr", inside)), 0o755, None
            for name in files:
                path = os.path.join(folder, name)
                if os.path.islink(path):
                    yield os.path.join("usr", inside, name), 0o777, os.readlink(path)
                    continue
                with open(path, "rb") as f:
                    yield os.path.join("usr", inside, name), os.stat(path).st_mode & 0o755, f.read()


def archive(entries):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, mode, data in entries:
            entry = tarfile.TarInfo(name)
            entry.mode, entry.mtime = mode, EPOCH
            if data is None:
                entry.type = tarfile.DIRTYPE
                tar.addfile(entry)
            elif isinstance(data, str):
                entry.type, entry.linkname = tarfile.SYMTYPE, data
                tar.addfile(entry)
            else:
                entry.size = len(data)
                tar.addfile(entry, io.BytesIO(data))
    return out.getvalue()


def encode(value):
    return json.dumps(value, indent=1).encode()


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def blob(data):
    return "blobs/sha256/" + sha256(data)


def descriptor(kind, data):
    return {"mediaType": kind, "digest": "sha256:" + sha256(data), "size": len(data)}


main(*sys.argv[1:])
