# Sourced by tests/sched/test_*.sh and figures.sh. KERNEL is the kernel to test [default: 7.3].
. "$(dirname "${BASH_SOURCE[0]}")/../vm/lib.sh"

kernel=${KERNEL:-7.3}
programs=$target/vm/programs
mkdir -p "$programs"

# compile NAME SOURCE [OPTION]...: build $programs/NAME, unless it is newer than all its possible
# sources
compile() {
    local name=$1 source=$2
    shift 2
    [ -z "$(find "$root/workloads" "$here" "$source" -name '*.[ch]' -newer "$programs/$name" 2>&1 | head -n 1)" ] || {
        gcc -std=gnu11 -O2 -Wall -Wextra -Werror -pthread -I "$root/runtime" "$@" -o "$programs/$name.new" "$source" || fail "$source"
        mv "$programs/$name.new" "$programs/$name"
    }
}

# put NAME...: build programs into the machine's working directory: sync and spin of workloads/,
# guest of tests/kvm/, and those of this folder. They are statically linked, so that lissom cannot
# be preloaded into them.
put() {
    local name
    for name in "$@"; do
        case $name in
        sync | spin) compile "$name" "$root/workloads/$name.c" -static ;;
        guest) compile "$name" "$root/tests/kvm/$name.c" -static ;;
        *) compile "$name" "$here/$name.c" -static ;;
        esac
        cp "$programs/$name" "$work/files/"
    done
}

# Build sync-dynamic and spin-dynamic, for `lissom run`.
build_dynamic() {
    compile sync-dynamic "$root/workloads/sync.c"
    compile spin-dynamic "$root/workloads/spin.c"
}

# Build the binary under test, $work/lissom. Skip the test if it has no `sched`.
build_scheduler() {
    build_lissom
    "$work/lissom" help sched >/dev/null 2>&1 || skip "this lissom has no \`sched\`"
}

# inside [OPTION]... -- SCRIPT [ARG]...: run a script of the folder `inside` with these options of
# vm.sh
inside() {
    local options=()
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    "$vm/vm.sh" --kernel "$kernel" --timeout 170 --program "$work/lissom" --files "$here/inside" --files "$work/files" \
        "${options[@]}" -- sh "$@"
}

# medians WIDTH DECIMALS: read lines LABEL|WORKLOAD|us a round, and print median, minimum and
# maximum of each label and workload, in order of appearance. WIDTH: columns of the label
medians() {
    awk -F'|' -v width="$1" -v decimals="$2" '
        { key = $1 "|" $2; if (!(key in n)) order[++keys] = key; value[key, ++n[key]] = $3 }
        END {
            printf "%-*s %-9s %4s %12s %12s %12s\n", width, "us a round", "", "runs", "median", "least", "most"
            for (i = 1; i <= keys; i++) {
                key = order[i]; count = n[key]; split(key, part, "|")
                median = count % 2 ? value[key, (count + 1) / 2] : (value[key, count / 2] + value[key, count / 2 + 1]) / 2
                printf "%-*s %-9s %4d %12.*f %12.*f %12.*f\n", width, part[1], part[2], count, decimals, median, decimals, value[key, 1], decimals, value[key, count]
            }
        }'
}

need_vm vm
kernel "$kernel" >/dev/null
