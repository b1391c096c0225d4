# Sourced by tests/recipes/test_*.sh. Sets $work, a folder of the test and its working directory.
# Programs of $work/bin come first in PATH, among them lissom.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
. "$root/tests/vm/verdict.sh"
. "$root/tests/vm/until.sh"
. "$here/recipe.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir bin
ln -s "$lissom" bin/lissom
export PATH=$work/bin:$PATH PYTHONPATH=$here
unset LD_PRELOAD OMP_NUM_THREADS "${!LISSOM@}" 2>/dev/null || true

# use_python: use the environment of requirements.txt
use_python() {
    local venv=$root/target/venv-recipes
    [ -x "$venv/bin/python3" ] || skip "no $venv: make test-recipes"
    export PATH=$work/bin:$venv/bin:$PATH
}

# command_needed NAME PACKAGE: skip the test unless the command exists
command_needed() {
    command -v "$1" >/dev/null || skip "no $1: scripts/need.sh recipes installs $2"
}

# app FILE [FLAG]...: build app.c
app() {
    cc -O2 -Wall -Wextra -Werror -pthread "$here/app.c" -o "$1" "${@:2}"
}

# run_recipe NAME: run the block as a shell script that ends at the first failure. Leaves its output
# in `out` and its messages in `messages`.
run_recipe() {
    recipe "$1" >script
    cat script
    bash -e script >out 2>messages || fail "exit code $?: $(cat out messages)"
    cat out
}

# has FILE TEXT: fail unless the file contains the text
has() {
    grep -qF -e "$2" "$1" || fail "'$2' is not in $1: $(cat "$1")"
}

# count FILE TEXT N: fail unless N lines of the file contain the text
count() {
    [ "$(grep -cF -e "$2" "$1")" = "$3" ] || fail "not $3 lines '$2' in $1: $(cat "$1")"
}
