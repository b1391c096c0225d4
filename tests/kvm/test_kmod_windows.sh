# Windows are in the VMCB while they should be, and KVM's own come back in all ways in which
# lissom_ple can be left.
. "$(dirname "$0")/lib.sh"
need_vm kvm
build_module "$(kernel --kvm 6.12)"
build_guest
"$vm/vm.sh" --kvm --files "$work/files" -- sh windows.sh
