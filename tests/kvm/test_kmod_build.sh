# lissom_ple builds against Debian's headers without warnings, with the documented command.
. "$(dirname "$0")/lib.sh"
need_vm kvm
build_module "$(kernel --kvm 6.12)"
! grep -i warning "$work/kmod.log" || fail "warnings"
modinfo -F license "$work/files/lissom_ple.ko" 2>/dev/null | grep -qx GPL || grep -aq 'license=GPL' "$work/files/lissom_ple.ko"
