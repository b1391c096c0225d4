# lissom_ple's counts agree with KVM's tracepoint.
. "$(dirname "$0")/lib.sh"
need_vm kvm
build_module "$(kernel --kvm 6.12)"
build_guest
"$vm/vm.sh" --kvm --files "$work/files" -- sh counts.sh
