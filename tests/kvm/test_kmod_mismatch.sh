# lissom_ple refuses a KVM with an unknown layout, and logs a line with the reason.
. "$(dirname "$0")/lib.sh"
need_vm kvm
command -v python3 >/dev/null || skip "no python3: scripts/need.sh kvm installs it"
folder=$(kernel --kvm 6.12)
build_module "$folder"
build_guest
edit() {
    local out=$1
    shift
    python3 "$here/btf_edit.py" --base "$folder/headers/vmlinux" "$folder/modules/kvm-amd.ko" "$work/files/$out" "$@"
}
edit gone.ko none none gone
edit struct.ko vcpu_svm none name
edit member.ko vcpu_svm vmcb name
edit type.ko vcpu_svm vmcb like=asid
edit outside.ko vcpu_svm vmcb offset=65536
edit unaligned.ko vcpu_svm vmcb offset=6484
edit control.ko vmcb_control_area pause_filter_count offset=64
edit header.ko vcpu_svm vcpu like=nested
# Wrong offsets. The kernel rejects BTF whose members are not in order.
edit lie1.ko vcpu_svm vmcb offset=0
edit lie2.ko vcpu_svm vmcb offset=8
edit lie3.ko vcpu_svm vmcb offset=24
"$vm/vm.sh" --kvm --files "$work/files" -- sh mismatch.sh

# The kernel itself rejects a module built for another kernel.
other=$(kernel --kvm 6.18)
rm "$work"/files/*.ko
cp "$work/kmod/lissom_ple.ko" "$work/files/"
"$vm/vm.sh" --kvm --kernel 6.18 --files "$work/files" -- \
    sh -c 'insmod ./lissom_ple.ko 2>&1 && exit 1; dmesg | grep lissom_ple; ! lsmod | grep lissom_ple' || fail "${other##*/}"
