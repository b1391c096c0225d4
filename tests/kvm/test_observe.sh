# `lissom kvm observe` on a real KVM.
. "$(dirname "$0")/lib.sh"
need_vm kvm
[ -e "$here/observe.sh" ] || skip "tests/kvm/observe.sh is not there"
build_lissom
"$here/observe.sh" "$work/lissom"
