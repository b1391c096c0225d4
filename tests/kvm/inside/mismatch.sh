# A KVM that differs from its BTF, or whose BTF is missing or does not match the module.
. ./lib.sh

# kvm_amd FILE [PARAMETER]...: replace the module kvm_amd
kvm_amd() {
    rmmod kvm_amd || fail "rmmod kvm_amd"
    insmod "$@" || fail "insmod $1"
}

# is_refused TEXT: loading fails at once, with this line in the log
is_refused() {
    dmesg -c >/dev/null
    insmod ./lissom_ple.ko 2>/dev/null && fail "loaded, instead of: $1"
    # BusyBox tries a second time with another system call.
    dmesg | sed -n 's/.*\(lissom_ple:.*\)/\1/p' | grep -v -e 'taints kernel' -e 'verification failed' | sort -u >/tmp/said
    cat /tmp/said
    [ "$(wc -l </tmp/said)" = 1 ] || fail "not one line, for: $1"
    grep -qF "$1" /tmp/said || fail "no word of: $1"
    [ ! -e $device ] || fail "$device is there"
    check_log
}

kvm_amd gone.ko
is_refused "has no BTF"
kvm_amd struct.ko
is_refused "has no struct vcpu_svm"
kvm_amd member.ko
is_refused "struct vcpu_svm has no member vmcb"
kvm_amd type.ko
is_refused "member vmcb of this kernel's struct vcpu_svm has another type"
# The kernel itself rejects such BTF.
kvm_amd outside.ko
is_refused "has no BTF"
kvm_amd unaligned.ko
is_refused "member vmcb of this kernel's struct vcpu_svm is where no such member can be"
kvm_amd control.ko
is_refused "struct vmcb_control_area is another one than this module was built with"
kvm_amd header.ko
is_refused "member vcpu of this kernel's struct vcpu_svm has another type"
kvm_amd /modules/kvm-amd.ko pause_filter_count=0
is_refused "no pause filter"

# Valid BTF with a wrong offset: the supposed pointer to the VMCB is none. The module must notice at
# the first vCPU, before it writes anything.
for lie in lie1.ko lie2.ko lie3.ko; do
    kvm_amd $lie
    load
    ./guest --vms 2 --vcpus 2 --seconds 0 >/tmp/guest &
    wait_for eval '[ "$(value refused)" = 1 ]'
    dmesg | grep 'No window is changed' || fail "no word in the log"
    [ "$(dmesg -c | grep -c 'No window is changed')" = 1 ] || fail "more than one word"
    has_vms 0 || fail "VMs are shown"
    sleep 1
    kill $!
    wait $!
    grep '^all: acquired [1-9]' /tmp/guest || fail "the guests do not run"
    rmmod lissom_ple
    check_log
done

# With the real KVM everything works again. kvm_amd may be replaced while the module is loaded.
kvm_amd /modules/kvm-amd.ko
load
kvm_amd /modules/kvm-amd.ko pause_filter_count=2000
[ "$(value default)" = 2000 ] || fail "another default is not seen"
./guest --seconds 0 >/dev/null &
wait_for has_vms 1
[ "$(value refused)" = 0 ] || fail "refused"
kill $!
wait $!
rmmod lissom_ple
check_log
