# `lissom kvm apple` from end to end, on the event path: in QEMU every PAUSE exits, independently of
# the window.
. "$(dirname "$0")/lib.sh"
need_vm kvm
build_module "$(kernel --kvm 6.12)"
build_guest
build_lissom
command -v setpriv >/dev/null || skip "no setpriv (package util-linux)"
"$vm/vm.sh" --kvm --program "$work/lissom" --program "$(command -v setpriv)" --files "$work/files" -- sh apple.sh
