# Sourced by tests/sched/test_*.sh and figures.sh. KERNEL is the kernel to test [default: 7.3].
. "$(dirname "${BASH_SOURCE[0]}")/../vm/lib.sh"

kernel=${KERNEL:-7.3}
programs=$target/vm/programs
mkdir -p "$programs"

# compile NAME SOURCE [OPTION]...: $programs/NAME, unless it is newer than all that it may be made
# of
compile() {
    local name=$1 source=$2
    shift 2
    [ -z "$(find "$root/workloads" "$here" "$source" -name '*.[ch]' -newer "$programs/$name" 2>&1 | head -n 1)" ] || {
        gcc -std=gnu11 -O2 -Wall -Wextra -Werror -pthread -I "$root/runtime" "$@" -o "$programs/$name.new" "$source" || fail "$source"
        mv "$programs/$name.new" "$programs/$name"
    }
}

# put NAME...: programs for the machine, in its working directory: sync and spin of workloads/,
# guest of tests/kvm/, and those of this folder. Statically linked, because such are what lissom
# cannot be preloaded into.
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

# sync-dynamic and spin-dynamic, for `lissom run`.
build_dynamic() {
    compile sync-dynamic "$root/workloads/sync.c"
    compile spin-dynamic "$root/workloads/spin.c"
}

# Post: $work/lissom
build_scheduler() {
    build_lissom
    "$work/lissom" help sched >/dev/null 2>&1 || skip "this lissom has no \`sched\`"
}

# inside [OPTION]... -- SCRIPT [ARG]...: of vm.sh, and a script of the folder `inside`
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

# medians WIDTH DECIMALS: of lines LABEL|WORKLOAD|us a round that are in the order of these, with
# the least and the most. WIDTH: of the labels
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
