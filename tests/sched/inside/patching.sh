# patching.sh always|never PROGRAM...: run programs of tests/programs. The kernel always or never
# forces writes to /proc/self/mem.
. ./lib.sh
force=$1
shift

# says PATTERN: whether the report of `lissom doctor` contains PATTERN. Doctor must exit with 0:
# programs would not run natively here.
says() {
    lissom doctor >/tmp/doctor 2>&1 || fail "doctor: $(cat /tmp/doctor)"
    grep -q "$1" /tmp/doctor
}

case $force in
always) says 'ok  *code patching  through /proc/self/mem' || fail "no force: $(cat /tmp/doctor)" ;;
never) says 'ok  *code patching  pages of code are made writable by mprotect' || fail "mprotect is not used: $(cat /tmp/doctor)" ;;
esac
for program in "$@"; do
    LISSOM_SPIN=auto THREADS=8 timeout -s KILL 60 lissom run -v -- "/bin/$program" >/tmp/out 2>&1 || fail "$program: $(cat /tmp/out)"
    grep -q '^lissom: active' /tmp/out || fail "$program runs natively: $(cat /tmp/out)"
    used=never
    grep -q 'this kernel refuses forced writes' /tmp/out || used=always
    [ $used = $force ] || fail "$program: the other way: $(cat /tmp/out)"
done
# The emulated CPUs have no XSAVEC, one of them no fsgsbase. Doctor's report has to match the
# runtime's behaviour.
pinned=
lissom run --switch=user --stats=json -- "/bin/$1" 2>&1 | grep -q '"no_fsgsbase": [1-9]' && pinned=yes
if says 'ok  *user switch'; then
    [ -z "$pinned" ] || fail "threads are pinned: $(cat /tmp/doctor)"
else
    [ -n "$pinned" ] || fail "threads are not pinned: $(cat /tmp/doctor)"
fi
