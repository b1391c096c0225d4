# Simulated KVM data for tests/cases. Sourced by their scripts.

# device "vendor=X default=N largest=N" refused=N: print the first line of the module lissom_ple
device() {
    echo "lissom_ple=1 $1 tsc_khz=2445425 $2 missed=0"
}

# vm PID NAME=VALUE...: print the module's line for a VM of two vCPUs, with these values
vm() {
    local counts='entries=42 applied=28 ple=40 spun=3 before=10 switches=19 guest=24'
    echo "vm=$1 id=1 vcpus=2 ${*:2} $counts"
}

# parameters NS: make the folder p of KVM's halt-polling parameters, with this halt_poll_ns
parameters() {
    mkdir p
    echo "$1" >p/halt_poll_ns
    echo 2 >p/halt_poll_ns_grow
    echo 10000 >p/halt_poll_ns_grow_start
    echo 0 >p/halt_poll_ns_shrink
}

# intervals COUNT HALTS: print COUNT lines of halts, for --replay
intervals() {
    for ((i = 0; i < $1; i++)); do
        echo "$2"
    done
}
