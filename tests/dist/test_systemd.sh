# The package under systemd: Debian 12 is booted in namespaces of its own. It starts, confines,
# restarts and stops the manager, and the service that only serves metrics.
. "$(dirname "$0")/lib.sh"
. "$root/tests/vm/until.sh"
. "$root/tests/recipes/recipe.sh"
mountpoint -q /sys/fs/cgroup/unified && unified=/sys/fs/cgroup/unified || unified=/sys/fs/cgroup
[ -e "$unified/cgroup.procs" ] || skip "no cgroups of version 2"
debian bookworm python3 xz-utils systemd man-db bash-completion zsh fish

# Its groups are below this one, the root of its cgroup namespace.
group=$unified/lissom-test-$$
booted= # unshare, whose child is process 1 of the machine
clean_up() {
    if [ -n "$booted" ]; then
        kill -KILL "$booted" 2>/dev/null || true # with it process 1, and with that all others of its PID namespace
        wait 2>/dev/null || true
    fi
    find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || true
    rm -rf "$work"
}
trap clean_up EXIT
mkdir "$group"

# Start none of a machine's usual services that access hardware.
ln -sf /lib/systemd/system/multi-user.target "$machine/etc/systemd/system/default.target"
mkdir -p "$machine"/{proc,sys,dev,run,tmp}
ln -sf /dev/null "$machine/etc/systemd/system/console-getty.service"
rm -f "$machine/etc/machine-id"
touch "$machine/etc/machine-id"

# Writes to /proc/sys and /sys would affect this machine, too, so only the cgroups are writable.
bash -c 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"' enter-group "$group" \
    unshare --mount --pid --uts --ipc --cgroup --fork --kill-child bash -c '
        set -e
        hostname machine
        mount --bind "$0" "$0"
        mount -t proc proc "$0/proc"
        mount --bind "$0/proc/sys" "$0/proc/sys"
        mount -o remount,bind,ro "$0/proc/sys"
        mount -t sysfs -o ro sysfs "$0/sys"
        mount -t cgroup2 cgroup2 "$0/sys/fs/cgroup"
        mount -t tmpfs -o mode=755 tmpfs "$0/dev"
        for device in null zero full random urandom tty; do
            touch "$0/dev/$device"
            mount --bind "/dev/$device" "$0/dev/$device"
        done
        ln -s /proc/self/fd "$0/dev/fd"
        mkdir "$0/dev/shm" "$0/dev/pts"
        mount -t devpts -o newinstance,ptmxmode=0666 devpts "$0/dev/pts"
        ln -s pts/ptmx "$0/dev/ptmx"
        mount -t tmpfs -o mode=1777 tmpfs "$0/dev/shm"
        mount -t tmpfs -o mode=755 tmpfs "$0/run"
        cd "$0"
        mkdir -p .old
        pivot_root . .old
        umount -l .old
        rmdir .old
        exec env -i container=lissom-test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --show-status=no
    ' "$machine" </dev/null >"$work/console" 2>&1 &
booted=$!

# is_there: whether unshare's child has become systemd
is_there() {
    first=$(pgrep -P "$booted" || true)
    [ -n "$first" ] && [ "$(cat "/proc/$first/comm")" = systemd ]
}
until_true 30 is_there || fail "systemd does not start: $(cat "$work/console")"

inside() {
    nsenter --target "$first" --mount --pid --uts --ipc --cgroup --root /usr/bin/env -i --chdir=/ HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}

answers() { inside systemctl is-system-running 2>/dev/null | grep -qxE 'running|degraded'; }
until_true 60 answers || fail "Debian does not start: $(inside systemctl list-jobs; cat "$work/console")"
show 'systemctl is-system-running; systemctl --failed --no-legend --plain'

mkdir "$machine/package"
cp "$dist/$deb" "$machine/package/"
show "apt-get install -qq -o Dpkg::Use-Pty=0 ./package/$deb 2>&1 | grep -v '^debconf:'"
show 'systemctl is-enabled lissom-manager; systemctl is-active lissom-manager' | tee "$work/said" || true
[ "$(sed 1d "$work/said" | tr '\n' ' ')" = "disabled inactive " ] || fail "it is switched on by being installed"

# state WANTED: whether the unit is in this state
state() { [ "$(inside systemctl show --property=ActiveState,SubState --value lissom-manager | tr '\n' ' ')" = "$1 " ]; }
log() { inside journalctl --no-pager --output=cat --unit=lissom-manager; }
listens() { inside test -S /run/lissom/manager.sock; }
manager() { inside systemctl show --property=MainPID --value lissom-manager; }
# connected N: whether the manager has N connections. They belong to the programs' network
# namespace, which is this machine's.
connected() {
    inside sh -c "find /proc/$(manager)/fd -type l -printf '%l\\n' | sed -n 's/^socket:.\\([0-9]*\\).$/\\1/p'" >"$work/sockets" 2>/dev/null
    [ "$(awk 'NR == FNR { its[$1]; next } $7 in its && $8 == "/run/lissom/manager.sock" { n++ } END { print n + 0 }' "$work/sockets" /proc/net/unix)" = "$1" ]
}

show 'systemctl enable --now lissom-manager'
until_true 20 listens || fail "no socket: $(log)"
state 'active running' || fail "$(inside systemctl status lissom-manager)"
show 'systemctl status --no-pager lissom-manager | head -n 9'

# The manager must run with the privileges of its unit.
inside sh -c "grep -E '^(CapBnd|NoNewPrivs|Seccomp):' /proc/$(manager)/status"

# Programs of root and of other users find the manager. When it is killed, systemd restarts it, and
# the programs find the new one.
cat >"$machine/usr/local/share/busy.py" <<'PYTHON'
import threading, time
end = time.monotonic() + 300
def work():
    while time.monotonic() < end:
        time.sleep(0.001)
for i in range(8):
    threading.Thread(target=work).start()
PYTHON
inside lissom run -- python3 /usr/local/share/busy.py &
inside setpriv --reuid 65534 --regid 65534 --clear-groups lissom run -- python3 /usr/local/share/busy.py &
until_true 30 connected 2 || fail "the programs do not find it: $(log)"
echo "(connected: a program of root's, and one of nobody's)"
before=$(manager)
inside kill -KILL "$before"
again() { state 'active running' && [ "$(manager)" != "$before" ] && listens; }
until_true 30 again || fail "it was not started again: $(log)"
until_true 30 connected 2 || fail "the programs do not find the new one: $(log)"
echo "(killed, started again, and found again)"
inside pgrep -c -f '^python3 /usr/local/share/busy.py' | grep -qx 2 || fail "the programs are not there any more"

# read_metrics LINE: put the metrics into $work/metrics, and return whether LINE is among them
read_metrics() {
    local get='import urllib.request as u; print(u.urlopen("http://127.0.0.1:9754/metrics").read().decode(), end="")'
    inside python3 -c "$get" >"$work/metrics" 2>"$work/metrics.error" &&
        grep -qx "$1" "$work/metrics"
}
no_metrics() {
    inside journalctl --no-pager --output=cat --unit=lissom-metrics --unit=lissom-manager
    fail "no metrics: $(cat "$work/metrics.error" "$work/metrics")"
}

# Metrics without a manager: all programs, and nothing about targets.
show 'systemctl stop lissom-manager; systemctl enable --now lissom-metrics'
until_true 30 read_metrics 'lissom_programs 2' || no_metrics
[ "$(grep -c '^lissom_program_slots{' "$work/metrics")" = 2 ] ||
    fail "their statistics are missing: $(cat "$work/metrics")"
! grep -E 'lissom_manager|_target_' "$work/metrics" || fail "there is no manager"
show 'systemctl disable --now lissom-metrics; systemctl start lissom-manager'

# The configuration for Prometheus.
show 'install -D -m 644 /usr/share/lissom/lissom-manager-metrics.conf /etc/systemd/system/lissom-manager.service.d/metrics.conf
systemctl daemon-reload; systemctl restart lissom-manager'
until_true 30 read_metrics 'lissom_manager_programs_connected 2' || no_metrics
grep -E '^lissom_manager_[a-z_]* ' "$work/metrics"

# As loaded, with the drop-in.
inside systemd-analyze security --no-pager --threshold=30 lissom-manager lissom-metrics \
    >"$work/said" || fail "exposure above 3.0: $(cat "$work/said")"
grep Overall "$work/said"

# The drop-in of docs/guide/recipes-services.md, for a service that would run natively otherwise.
cc -O2 -pthread "$root/tests/recipes/app.c" -o "$machine/usr/bin/app"
mkdir -p "$machine/etc/systemd/system/app.service.d"
cat >"$machine/etc/systemd/system/app.service" <<'UNIT'
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/bin/app --threads 32
Environment=LISSOM_VERBOSE=1
MemoryDenyWriteExecute=yes
UNIT
app_log() { inside journalctl --no-pager --output=cat --unit=app; }
show 'systemctl daemon-reload; systemctl start app'
finished() { app_log >"$work/said" && grep -qx 'ok: 32 threads' "$work/said"; }
until_true 30 finished || fail "the service: $(cat "$work/said")"
! grep 'lissom: ' "$work/said" || fail "it runs under lissom without the drop-in"
recipe systemd >"$machine/etc/systemd/system/app.service.d/override.conf"
show 'systemctl daemon-reload; systemctl restart app'
managed() { app_log >"$work/said" && grep -q '^lissom: active, ' "$work/said"; }
until_true 30 managed || fail "not under lissom: $(cat "$work/said")"
ran_twice() { app_log >"$work/said" && [ "$(grep -cx 'ok: 32 threads' "$work/said")" = 2 ]; }
until_true 30 ran_twice || fail "the service: $(cat "$work/said")"
show 'systemctl stop app; rm -r /etc/systemd/system/app.service* /usr/bin/app
systemctl daemon-reload'

# Removal stops the manager and leaves nothing behind; the programs continue.
show 'apt-get purge -qq -o Dpkg::Use-Pty=0 lissom 2>&1; systemctl is-active lissom-manager; ls /run/lissom' | tee "$work/said" || true
grep -qx inactive "$work/said" || fail "it is still there, or it failed: $(log)"
! inside test -e /run/lissom/manager.sock || fail "its socket is still there"
! inside pgrep -x lissom || fail "it still runs"
[ "$(inside pgrep -c -f '^python3 /usr/local/share/busy.py')" = 2 ] || fail "the programs are not there any more"
log
