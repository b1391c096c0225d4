# A machine with musl instead of glibc, like Alpine: lissom runs as a command. Programs run
# natively, and it prints the reason.
. "$(dirname "$0")/lib.sh"
command -v musl-gcc >/dev/null || skip "no musl-gcc: scripts/need.sh dist_test installs it"
mkdir -p "$machine"/{bin,lib,usr/bin,etc}
cp "$(command -v busybox)" "$machine/bin/busybox"
for name in sh env ls echo cat kill sleep id; do ln -s busybox "$machine/bin/$name"; done
ln -s ../../bin/env "$machine/usr/bin/env"
cp -L /lib/ld-musl-x86_64.so.1 "$machine/lib/"
musl-gcc -std=gnu11 -O2 -Wall -Wextra -Werror -pthread -o "$machine/bin/program" "$here/program.c"
tar -xzf "$dist/$archive.tar.gz" -C "$machine/usr" --strip-components=1 "$archive/bin" "$archive/lib"

show 'lissom --version'
code=0
show 'lissom run -v -- /bin/program 42' >"$work/said" || code=$?
cat "$work/said"
[ "$code" = 42 ] || fail "exit code $code"
grep -q 'runs natively: /bin/program uses musl (/lib/ld-musl-x86_64.so.1)' "$work/said" || fail "it does not say why"
grep -qx '8 threads, 8000 turns' "$work/said" || fail "the program did not run"
grep -qx 'LD_PRELOAD is not set' "$work/said" || fail "something is preloaded that its loader would choke on"
code=0
show 'lissom run -- /bin/program signal' || code=$?
[ "$code" = 143 ] || fail "exit code $code for SIGTERM"
code=0
show 'lissom run --stats -- /bin/program 7' || code=$?
[ "$code" = 7 ] || fail "exit code $code under statistics"
code=0
show 'lissom doctor' >"$work/said" || code=$?
cat "$work/said"
[ "$code" = 1 ] || fail "doctor's exit code: $code"
grep -q 'off      glibc' "$work/said" || fail "doctor does not say that there is no glibc"

# Alpine's own shell is a musl program: doctor's trial must report that.
ln -sf program "$machine/bin/sh"
inside_shell=/bin/busybox
echo '# lissom doctor       (where /bin/sh is a program of musl)'
inside /usr/bin/lissom doctor | tee "$work/said" || true
grep -q 'off      glibc *.*uses musl' "$work/said" || fail "doctor does not say that the shell is musl's"
