# What lissom_ple counts is what KVM's tracepoint tells.
. "$(dirname "$0")/lib.sh"
need_vm
build_module "$(kernel 6.12)"
build_guest
"$here/vm.sh" --files "$work/files" -- sh counts.sh
