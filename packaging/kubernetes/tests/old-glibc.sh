#!/usr/bin/env bash
# Make FOLDER the root file system of Debian 11 (glibc 2.31), with programs/show.c at /show:
# old-glibc.sh FOLDER. The packages are only unpacked. Fails if the machine is no Debian 12, or its
# mirror has no Debian 11 any more.
set -euo pipefail
cd "$(dirname "$0")"
root=$1
packages=$root.packages

. ../../../scripts/apt.sh
configure_apt "$packages" bullseye
(cd "$packages" && apt-get "${own_apt[@]}" -qq download {libc6,libc6-dev,linux-libc-dev}/bullseye)
rm -rf "$root"
mkdir -p "$root"
for package in "$packages"/*.deb; do
    dpkg-deb -x "$package" "$root"
done
# Links that begin at the root would lead out of the folder.
find "$root" -type l -lname '/*' | while read -r link; do
    ln -sfn "$(realpath -m --relative-to="$(dirname "$link")" "$root$(readlink "$link")")" "$link"
done
libraries=$root/usr/lib/x86_64-linux-gnu
gcc -O2 -pthread --sysroot="$root" -B"$libraries/" -L"$libraries" -o "$root/show" programs/show.c
rm -rf "${root:?}/usr"
