# Sourced by tests/dist/test_*.sh. A test exits with 0 if it passed, with 77 if it was skipped (its
# last line is the reason), otherwise it failed. It prints the commands that it runs on the machine,
# with their output, as in docs/guide/install.md. Sets $work to a folder that is removed when the
# test ends, and $machine to a root file system in it. Sets $dist to the folder of the packages.
set -euo pipefail
umask 022

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
dist=$target/dist
cache=$target/dist-test
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$root/Cargo.toml" | head -n 1)
deb=lissom_${version}_amd64.deb
rpm=lissom-$version-1.x86_64.rpm
wheel=lissom-$version-py3-none-manylinux_2_28_x86_64.whl
archive=lissom-$version-x86_64
image=lissom-$version-oci.tar

. "$root/tests/vm/verdict.sh"

[ "$(id -u)" = 0 ] || skip "needs root, for file systems of its own"
[ -e "$dist/SHA256SUMS" ] || skip "no packages: make dist"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
machine=$work/machine

# debian SUITE [PACKAGE]...: put a bare Debian with these additional packages into $machine. It is
# made once and kept, packed.
debian() {
    local suite=$1 name mirror
    shift
    name=$cache/$(echo "$suite" "$@" | tr ' ' -).tar
    if [ ! -e "$name" ]; then
        command -v debootstrap >/dev/null || skip "no debootstrap: scripts/need.sh dist_test installs it"
        mirror=$(apt-get indextargets --format '$(REPO_URI) $(ORIGIN) $(CODENAME)' 'Created-By: Packages' |
            awk '$2 == "Debian" && $3 !~ /-/ { print $1; exit }')
        [ -n "$mirror" ] || skip "apt knows no Debian mirror"
        mkdir -p "$cache"
        local IFS=,
        debootstrap --variant=minbase ${1:+"--include=$*"} "$suite" "$machine" "$mirror" >"$cache/debootstrap.log" 2>&1 ||
            skip "Debian $suite cannot be had from $mirror: $(tail -n 1 "$cache/debootstrap.log")"
        rm -f "$machine"/var/cache/apt/archives/*.deb
        tar -C "$machine" --one-file-system -cf "$name.part" .
        mv "$name.part" "$name"
    else
        mkdir "$machine"
        tar -C "$machine" -xf "$name"
    fi
}

# enter COMMAND...: run it on the machine, with a /proc, but with its own /run and /dev/shm
enter() {
    mkdir -p "$machine"/{proc,sys,dev,run,tmp}
    chmod 1777 "$machine/tmp"
    unshare --mount bash -c '
        set -e
        mount -t proc proc "$0/proc"
        mount --rbind /sys "$0/sys"
        mount --rbind /dev "$0/dev"
        mount -t tmpfs -o mode=1777 tmpfs "$0/dev/shm"
        mount -t tmpfs -o mode=755 tmpfs "$0/run"
        exec chroot "$0" "$@"' "$machine" "$@"
}

# inside COMMAND...: run it on the machine, with an environment as after login
inside() {
    enter /usr/bin/env -i HOME="${inside_home:-/root}" LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}

# show COMMAND...: run it in the machine's shell; print it as a user would type it
show() {
    echo "# $*"
    inside "${inside_shell:-/bin/sh}" -c "$*" 2>&1
}

# files: list every file of the machine with mode, owner and kind, except package managers' records
# and caches
files() {
    (cd "$machine" && find . -xdev \( -path ./var/lib/dpkg -o -path ./var/lib/apt -o -path ./var/cache -o -path ./var/log -o -path ./tmp -o -path ./proc \
        -o -path ./sys -o -path ./dev -o -path ./run -o -path ./package \) -prune -o -printf '%P %M %u:%g %l\n' | LC_ALL=C sort)
}

# same_files BEFORE: fail unless the machine has the same files as in the list BEFORE
same_files() {
    files >"$work/files.now"
    diff "$1" "$work/files.now" || fail "files were left behind, or are missing (see above)"
    echo "(the same files as before)"
}

# decent BEFORE: check the files added since BEFORE: owned by root, not writable by others, no
# set-user-ID, set-group-ID or sticky bit
decent() {
    files >"$work/files.now"
    local bad
    bad=$(LC_ALL=C comm -13 "$1" "$work/files.now" | awk '$2 !~ /^l/ && ($2 ~ /^.....w/ || $2 ~ /^........w/ || $2 ~ /[sStT]/ || $3 != "root:root")')
    [ -z "$bad" ] || fail "modes or owners: $bad"
}

# programs LISSOM PROGRAM...: check that each real program does the same with and without lissom.
# The runtime must be active in it, or wait for a second thread in the shell.
programs() {
    local lissom=$1 name
    shift
    mkdir -p "$machine/tmp/t"
    cp "$here/threads.py" "$machine/tmp/t/"
    inside /bin/sh -c 'awk "BEGIN { srand(7); for (i = 0; i < 400000; i++) print rand() }" >/tmp/t/lines'
    for name in "$@"; do
        case $name in
        sort) same_output "$lissom" 'sort --parallel=8 --buffer-size=200M /tmp/t/lines' ;;
        xz) same_output "$lissom" 'xz --threads=8 --block-size=256KiB -1 --stdout /tmp/t/lines' ;;
        python3) same_output "$lissom" 'python3 /tmp/t/threads.py' ;;
        bash) same_output "$lissom" "bash -c 'for i in 1 2 3; do echo \$i | cat; done'" single ;;
        esac
    done
}

same_output() {
    local lissom=$1 command=$2 state=${3:-active}
    inside /bin/sh -c "$command" >"$work/native"
    echo "# $lissom run --stats -- $command"
    inside /bin/sh -c "$lissom run --stats=json --stats-file=/tmp/t/stats -- $command" >"$work/under"
    cmp "$work/native" "$work/under" || fail "$command: another output than natively"
    python3 - "$machine/tmp/t/stats" "$state" <<'END' || fail "$command: the runtime is not at work: $(cat "$machine/tmp/t/stats")"
import json, sys
report = json.load(open(sys.argv[1]))
process = report["processes"][0]
print("(the same output as natively;", process["state"] + ",", process["counters"]["threads"], "threads,",
      process["counters"]["sites_patched"], "system call sites redirected)")
sys.exit(process["state"] != sys.argv[2])
END
}
