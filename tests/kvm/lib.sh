# Sourced by tests/kvm/test_*.sh.
. "$(dirname "${BASH_SOURCE[0]}")/../vm/lib.sh"

# build_module FOLDER: build lissom_ple.ko for the kernel in FOLDER (see kernel.sh), into the
# machine's files
build_module() {
    [ -e "$1/headers" ] || skip "no headers for ${1##*/} that run here"
    make -C "$root" kmod KDIR="$1/headers" KMOD="$work/kmod" >"$work/kmod.log" 2>&1 || fail "$(cat "$work/kmod.log")"
    cp "$work/kmod/lissom_ple.ko" "$work/files/"
}

build_guest() {
    [ -e "$here/guest.c" ] || skip "tests/kvm/guest.c is not there"
    gcc -std=gnu11 -O2 -Wall -Wextra -Werror -pthread -static -o "$work/files/guest" "$here/guest.c"
}

cp "$here"/inside/* "$work/files/"
