# Threads that run a guest's CPU give way when the guest spins, where the processor tells KVM so.
. "$(dirname "$0")/lib.sh"
kernel --kvm "$kernel" >/dev/null
build_scheduler
put sync guest
inside --kvm --append setcpuid=pausefilter,pfthreshold -- vcpus.sh
