# Sourced by scripts that run inside the virtual machine, under BusyBox.
device=/dev/lissom_ple

fail() {
    echo "FAILED: $*"
    [ ! -e $device ] || cat $device
    dmesg | tail -n 20
    exit 1
}

# check_log: fail if the kernel's log contains a complaint
check_log() {
    if dmesg | grep -E 'BUG|WARNING|Oops|general protection|soft lockup|rcu:.*stall|unchecked MSR'; then
        fail "the kernel's log"
    fi
}

# wait_for COMMAND...: wait until it succeeds, for as long as software emulation may take
wait_for() {
    local tries=0
    while ! "$@"; do
        tries=$((tries + 1))
        [ $tries -lt 200 ] || fail "never: $*"
        sleep 0.1
    done
}

# value KEY [PID]: print a value of the device's line for this VM, or of its first line
value() {
    if [ $# = 2 ]; then
        sed -n "s/^vm=$2 .*\b$1=\([0-9]*\).*/\1/p" $device
    else
        sed -n "1s/.*\b$1=\([a-z0-9]*\).*/\1/p" $device
    fi
}

vm_count() {
    grep -c ^vm= $device
}

has_vms() {
    [ "$(vm_count)" = "$1" ]
}

# exits_of PID N: whether there were at least N PAUSE exits
exits_of() {
    is=$(value ple "$1")
    [ "${is:-0}" -ge "$2" ]
}

load() {
    insmod ./lissom_ple.ko "$@" || fail "insmod"
}
