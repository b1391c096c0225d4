#!/usr/bin/env bash
# Unpack a Debian kernel without installing it:
#     tests/vm/kernel.sh 6.18              the newest 6.18 that Debian packages; prints its folder
#     tests/vm/kernel.sh 6.18.15+deb13     exactly this one
#     tests/vm/kernel.sh --kvm 6.12        also KVM's modules, and headers to build modules
# The folder (target/vm/kernel/RELEASE) then holds vmlinuz. With --kvm it also holds modules/*.ko
# and, if Debian's headers work with this machine's libc, a build tree `headers`. A kernel that is
# already unpacked is not fetched again.
set -euo pipefail

kvm=
[ "${1:-}" != --kvm ] || { kvm=1; shift; }
version=${1:?usage: kernel.sh [--kvm] VERSION}
root=$(cd "$(dirname "$0")/../.." && pwd)
store=${CARGO_TARGET_DIR:-$root/target}/vm/kernel
mkdir -p "$store"
complete=complete${kvm:+-kvm}

say() { echo "kernel.sh: $*" >&2; }

unpacked() {
    local have
    # shellcheck disable=SC2010 # these names are ours
    have=$(ls "$store" 2>/dev/null | grep -E "^${version//./\\.}([.+-].*)?-amd64\$" | sort -V | tail -n 1 || true)
    [ -n "$have" ] && [ -e "$store/$have/$complete" ] && echo "$store/$have"
}

unpacked && exit 0
# Tests may run concurrently.
exec 9>"$store/lock"
flock 9
unpacked && exit 0

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

is_package() {
    apt-cache "${own_apt[@]}" show "$1" >/dev/null 2>&1
}

short=${release%-amd64}
folder=$store/$release
packages=()
# Newer kernels are split: linux-image only depends on the others. Older ones have an empty
# linux-binary.
if is_package "linux-modules-$release"; then
    image=linux-binary-$release modules=linux-modules-$release
else
    image=linux-image-$release modules=
fi
[ -e "$folder/vmlinuz" ] && [ -n "$modules" ] || packages+=("$image")
if [ -n "$kvm" ]; then
    for package in $modules "linux-headers-$release" "linux-headers-$short-common" "linux-kbuild-$short"; do
        ! is_package "$package" || packages+=("$package")
    done
fi

say "downloading ${packages[*]}"
rm -rf "$folder/root" "$folder/debs"
mkdir -p "$folder/debs" "$folder/root" "$folder/modules"
# apt's sandbox user may not write here; apt says so and continues as root.
(cd "$folder/debs" && apt-get "${own_apt[@]}" download -qq "${packages[@]}" 2>&1 | grep -v unsandboxed >&2) || true
for deb in "$folder"/debs/*.deb; do
    dpkg-deb -x "$deb" "$folder/root"
done
rm -rf "$folder/debs"

vmlinuz=$(find "$folder/root" -name "vmlinuz-$release" -o -path "*/$release/vmlinuz" | head -n 1)
[ -z "$vmlinuz" ] || mv "$vmlinuz" "$folder/vmlinuz"
[ -e "$folder/vmlinuz" ] || { say "the download failed"; exit 1; }
if [ -z "$kvm" ]; then
    rm -rf "$folder/root"
    touch "$folder/$complete"
    echo "$folder"
    exit 0
fi

for module in irqbypass ccp kvm kvm-amd kvm-intel; do
    packed=$(find "$folder/root" -name "$module.ko.xz" -o -name "$module.ko" | head -n 1)
    [ -n "$packed" ] || continue
    case $packed in
    *.xz) xz -dc "$packed" >"$folder/modules/$module.ko" ;;
    *) cp "$packed" "$folder/modules/" ;;
    esac
done
rm -rf "$folder/root/boot" "$folder/root/lib" "$folder/root/usr/lib/modules" "$folder/root/usr/share"

# Debian's build tree refers to the paths where its parts would be installed.
headers=$folder/root/usr/src/linux-headers-$release
if [ -d "$headers" ]; then
    sed -i "s|/usr/src/|$folder/root/usr/src/|" "$headers/Makefile"
    # shellcheck disable=SC2211 # there is one
    if ! "$folder"/root/usr/lib/linux-kbuild-*/scripts/mod/modpost --help 2>&1 | grep -q 'version .GLIBC'; then
        ln -sfn "root/usr/src/linux-headers-$release" "$folder/headers"
    else
        say "the headers' tools need a newer libc: no modules can be built for $release here"
    fi
fi
touch "$folder/complete" "$folder/$complete"
echo "$folder"
