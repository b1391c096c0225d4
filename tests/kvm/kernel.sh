#!/usr/bin/env bash
# Unpacks a Debian kernel, and the headers to build modules against, without installing either:
#     tests/kvm/kernel.sh 6.12             the newest 6.12 that Debian packages; prints its folder
#     tests/kvm/kernel.sh 6.18.15+deb13    exactly this one
# The folder (target/kvm/kernel/RELEASE) then holds vmlinuz, modules/*.ko and, where Debian's headers for it run with
# this machine's libc, a build tree `headers`. Once unpacked, it is not looked for again.
set -euo pipefail

version=${1:?usage: kernel.sh VERSION}
root=$(cd "$(dirname "$0")/../.." && pwd)
store=${CARGO_TARGET_DIR:-$root/target}/kvm/kernel
mkdir -p "$store"

have=$(ls "$store" 2>/dev/null | grep -E "^${version//./\\.}[.+-].*-amd64\$" | sort -V | tail -n 1 || true)
if [ -n "$have" ] && [ -e "$store/$have/complete" ]; then
    echo "$store/$have"
    exit 0
fi

say() { echo "kernel.sh: $*" >&2; }

. "$root/scripts/apt.sh"

newest() {
    apt-cache "$@" pkgnames linux-image- 2>/dev/null |
        sed -n "s/^linux-image-\(${version//./\\.}[.+].*-amd64\)\$/\1/p; s/^linux-image-\(${version//./\\.}-amd64\)\$/\1/p" |
        { grep -Ev -- '-(rt|cloud)-amd64$' || true; } | sort -V | tail -n 1
}

own_apt=()
release=$(newest)
if [ -z "$release" ]; then
    configure_apt "$store/../apt"
    release=$(newest "${own_apt[@]}")
fi
[ -n "$release" ] || { say "Debian has no package linux-image-$version*-amd64; see apt-cache pkgnames linux-image-"; exit 1; }

short=${release%-amd64}
packages=("linux-image-$release")
for package in "linux-headers-$release" "linux-headers-$short-common" "linux-kbuild-$short"; do
    apt-cache "${own_apt[@]}" show "$package" >/dev/null 2>&1 && packages+=("$package")
done
say "downloading ${packages[*]}"
folder=$store/$release
rm -rf "$folder"
mkdir -p "$folder/debs" "$folder/root"
# apt's own user may not write here; it says so and goes on as root.
(cd "$folder/debs" && apt-get "${own_apt[@]}" download -qq "${packages[@]}" 2>&1 | grep -v unsandboxed >&2) || true
for deb in "$folder"/debs/*.deb; do
    dpkg-deb -x "$deb" "$folder/root"
done
rm -rf "$folder/debs"

mv "$folder/root/boot/vmlinuz-$release" "$folder/vmlinuz" || { say "the download failed"; exit 1; }
mkdir "$folder/modules"
for module in irqbypass ccp kvm kvm-amd kvm-intel; do
    packed=$(find "$folder/root" -name "$module.ko.xz" -o -name "$module.ko" | head -n 1)
    [ -n "$packed" ] || continue
    case $packed in
    *.xz) xz -dc "$packed" >"$folder/modules/$module.ko" ;;
    *) cp "$packed" "$folder/modules/" ;;
    esac
done
rm -rf "$folder/root/boot" "$folder/root/lib" "$folder/root/usr/lib/modules" "$folder/root/usr/share"

# Debian's build tree names its parts by the paths where they would be installed.
headers=$folder/root/usr/src/linux-headers-$release
if [ -d "$headers" ]; then
    sed -i "s|/usr/src/|$folder/root/usr/src/|" "$headers/Makefile"
    if ! "$folder"/root/usr/lib/linux-kbuild-*/scripts/mod/modpost --help 2>&1 | grep -q 'version .GLIBC'; then
        ln -s "root/usr/src/linux-headers-$release" "$folder/headers"
    else
        say "the headers' tools need a newer libc: no modules can be built for $release here"
    fi
fi
touch "$folder/complete"
echo "$folder"
