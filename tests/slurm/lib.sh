# Sourced by test_*.sh. run.sh has installed lissom into $prefix and started Slurm.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/cluster.sh"

# A folder shared by the tests and the tasks.
work=$(mktemp -d "$scratch/test.XXXXXX")
chmod 755 "$work"
cd "$work"
runtime=$(realpath "$prefix/lib/lissom/liblissom.so")

. "$root/tests/vm/verdict.sh"

# plugin [ARGUMENT]...: set the plugin's arguments in plugstack.conf, from the next srun on
# shellcheck disable=SC2120 # by those that source this
plugin() {
    echo "optional $prefix/lib/lissom/lissom_spank.so $*" >"$scratch/plugstack.conf"
}

# has FILE TEXT, lacks FILE TEXT: fail unless the file contains, or lacks, the text
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

# build NAME [FLAG]...: compile tests/programs/NAME.c into this folder
build() {
    cc -O2 -pthread "$root/tests/programs/$1.c" -o "$1" "${@:2}"
}

plugin
