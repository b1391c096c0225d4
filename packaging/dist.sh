#!/usr/bin/env bash
# Build all deliverables into target/dist: packages for Debian and Fedora, a wheel for pip, an
# archive, a container image, and their checksums. The same sources and tools make the same files.
set -euo pipefail
umask 022
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
triple=x86_64-unknown-linux-gnu
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y Cargo.toml)}
export SOURCE_DATE_EPOCH

# install_tree FOLDER PREFIX: install a tree for packages and archives
install_tree() {
    make --no-print-directory -s install DESTDIR="$1" PREFIX="$2" BINARY="$binary"
    local doc=$1$2/share/doc/lissom
    install -D -m 644 -t "$doc" README.md "$work/third-party.txt"
}

archive() {
    local name=lissom-$version-x86_64
    install_tree "$work/$name" ""
    install -m 644 LICENSE "$work/$name/share/doc/lissom/"
    # The service's own paths are unknown until the archive is unpacked.
    rm -r "$work/$name/lib/systemd" "$work/$name/share/lissom/lissom-manager-metrics.conf"
    tar --create --directory "$work" --sort=name --owner=0 --group=0 --numeric-owner \
        --mtime="@$SOURCE_DATE_EPOCH" --format=gnu "$name" | gzip -9n >"$out/$name.tar.gz"
}

scripts/release.sh
binary=$target/$triple/release/lissom
out=$target/dist
rm -rf "$out"
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 packaging/third-party.py "$triple" >"$work/third-party.txt"
archive
. packaging/deb/build.sh
. packaging/rpm/build.sh
python3 packaging/wheel/build.py "$binary" "$version" "$work/third-party.txt" "$out"
python3 packaging/oci/build.py "$work/lissom-$version-x86_64" "$version" "$out"
(cd "$out" && sha256sum -- *.* >SHA256SUMS)
echo "$out:"
cat "$out/SHA256SUMS"
