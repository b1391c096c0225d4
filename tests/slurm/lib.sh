# Sourced by test_*.sh. run.sh has installed lissom into $prefix and started Slurm.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/cluster.sh"

# The folder that the tests share with the tasks.
work=$(mktemp -d "$scratch/test.XXXXXX")
chmod 755 "$work"
cd "$work"
runtime=$(realpath "$prefix/lib/lissom/liblissom.so")

. "$root/tests/vm/verdict.sh"

# plugin [ARGUMENT]...: the plugin's arguments in plugstack.conf, from the next srun on.
# shellcheck disable=SC2120 # by those that source this
plugin() {
    echo "optional $prefix/lib/lissom/lissom_spank.so $*" >"$scratch/plugstack.conf"
}

# has FILE TEXT, lacks FILE TEXT
has() {
    grep -qF -e "$2" "$1" && return
    echo "'$2' is not in $1:"
    cat "$1"
    exit 1
}

lacks() {
    grep -qF -e "$2" "$1" || return 0
    echo "'$2' is in $1:"
    cat "$1"
    exit 1
}

# build NAME [FLAG]...: tests/programs/NAME.c here
build() {
    cc -O2 -pthread "$root/tests/programs/$1.c" -o "$1" "${@:2}"
}

plugin
