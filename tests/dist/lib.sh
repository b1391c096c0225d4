# Sourced by tests/dist/test_*.sh. A test ends with 0, with 77 if it was skipped (the reason is its
# last line), or it failed. What it does on the machine that it makes is written out, with what that
# printed: docs/install.md shows it.
# Post: $work is a folder that goes when the test ends, $machine the root file system in it, $dist
# the folder of the packages.
set -euo pipefail
umask 022

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
dist=$target/dist
cache=$target/dist-test
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$root/Cargo.toml" | head -n 1)
deb=lissom_${version}_amd64.deb
wheel=lissom-$version-py3-none-manylinux_2_31_x86_64.whl
archive=lissom-$version-x86_64
image=lissom-$version-oci.tar

. "$root/tests/vm/verdict.sh"

[ "$(id -u)" = 0 ] || skip "needs root, for file systems of its own"
[ -e "$dist/SHA256SUMS" ] || skip "no packages: make dist"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
machine=$work/machine

# debian SUITE [PACKAGE]...: a bare Debian in $machine, with these packages besides. It is made once
# and kept, packed.
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

# enter COMMAND...: runs it on the machine, which has a /proc, and nothing of this one's /run and
# /dev/shm.
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

# inside COMMAND...: the same with an environment as after a login.
inside() {
    enter /usr/bin/env -i HOME="${inside_home:-/root}" LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}

# show COMMAND...: the same by the machine's shell, written out as a user would type it.
show() {
    echo "# $*"
    inside "${inside_shell:-/bin/sh}" -c "$*" 2>&1
}

# files: every file of the machine, its mode, owner and kind; not what package managers note for
# themselves, and what they cache.
files() {
    (cd "$machine" && find . -xdev \( -path ./var/lib/dpkg -o -path ./var/lib/apt -o -path ./var/cache -o -path ./var/log -o -path ./tmp -o -path ./proc \
        -o -path ./sys -o -path ./dev -o -path ./run -o -path ./package \) -prune -o -printf '%P %M %u:%g %l\n' | LC_ALL=C sort)
}

# same_files BEFORE: what is on the machine now is what was.
same_files() {
    files >"$work/files.now"
    diff "$1" "$work/files.now" || fail "files were left behind, or are missing (see above)"
    echo "(the same files as before)"
}

# decent: of all files that are there now and were not in BEFORE, nobody but their owner, root, may
# write one, and none gives its user rights.
decent() {
    files >"$work/files.now"
    local bad
    bad=$(LC_ALL=C comm -13 "$1" "$work/files.now" | awk '$2 !~ /^l/ && ($2 ~ /^.....w/ || $2 ~ /^........w/ || $2 ~ /[sStT]/ || $3 != "root:root")')
    [ -z "$bad" ] || fail "modes or owners: $bad"
}

# programs LISSOM PROGRAM...: each of the real programs does under lissom what it does without, and
# the runtime is at work in it, or waits for a second thread in the shell.
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
