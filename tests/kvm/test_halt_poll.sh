# `lissom kvm halt-poll` on a real KVM.
. "$(dirname "$0")/lib.sh"
need_vm kvm
[ -e "$here/halt-poll.sh" ] || skip "tests/kvm/halt-poll.sh is not there"
build_lissom
"$here/halt-poll.sh" "$work/lissom"
