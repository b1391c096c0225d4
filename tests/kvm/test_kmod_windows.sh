# Requested windows are in the VMCB as long as they should be. KVM's own windows return, in whatever
# way lissom_ple is left.
. "$(dirname "$0")/lib.sh"
need_vm kvm
build_module "$(kernel --kvm 6.12)"
build_guest
"$vm/vm.sh" --kvm --files "$work/files" -- sh windows.sh
