# Preemption of vCPU threads whose guest spins, if the processor reports that to KVM.
. "$(dirname "$0")/lib.sh"
kernel --kvm "$kernel" >/dev/null
build_scheduler
put sync guest
inside --kvm --append setcpuid=pausefilter,pfthreshold -- vcpus.sh
