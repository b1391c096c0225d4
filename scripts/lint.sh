#!/usr/bin/env bash
# Checks of `make lint` beside cargo's own lints. Prints only problems; all checks run.
#     scripts/lint.sh [CHECK]...    NAME of a check_NAME below [default: all]
#     scripts/lint.sh --update      lower the lists of scripts/lint/*.txt to the remaining problems
#     scripts/lint.sh --accept      rewrite these lists, with higher numbers, too, after files were
#     moved or reformatted
set -uo pipefail
cd "$(dirname "$0")/.." || exit
. scripts/lint/files.sh

check_c() {
    c_files | xargs "$clang_format" --dry-run --Werror --ferror-limit=3 2>&1 |
        grep -E ': (error|warning): ' | sed 's/$/: scripts\/format.sh mends it/' | grep . && return 1
    return 0
}

check_go() {
    local unformatted
    unformatted=$(files '*.go' | xargs gofmt -l) || return 1
    [ -z "$unformatted" ] || sed 's/$/:1: not as gofmt writes it: scripts\/format.sh mends it/' <<<"$unformatted"
    [ -z "$unformatted" ]
}

check_python() {
    local good=0
    files '*.py' | xargs "$ruff" check --quiet --output-format concise || good=1
    files '*.py' | xargs "$ruff" format --check --quiet || {
        files '*.py' | xargs "$ruff" format --check 2>/dev/null |
            sed -n 's/^Would reformat: \(.*\)/\1:1: not formatted: scripts\/format.sh mends it/p'
        good=1
    }
    return $good
}

# Scripts without a shebang line are sourced: by BusyBox inside of virtual machines, otherwise by
# bash.
check_shell() {
    local file good=0
    while read -r file; do
        case $file in
        */inside/*) [ "$(head -c 2 "$file")" = '#!' ] || echo "$file" >>"$work/ash" ;;
        *) [ "$(head -c 2 "$file")" = '#!' ] || echo "$file" >>"$work/bash" ;;
        esac
        [ "$(head -c 2 "$file")" != '#!' ] || echo "$file" >>"$work/own"
    done < <(shell_files)
    xargs shellcheck -f gcc <"$work/own" || good=1
    xargs shellcheck -s bash -f gcc <"$work/bash" || good=1
    # BusyBox's shell has `local`.
    xargs shellcheck -s dash -e SC3043 -f gcc <"$work/ash" || good=1
    return $good
}

# Where systemd-analyze knows the options: since systemd 250. tests/dist/test_systemd.sh does the
# same with the drop-in.
check_units() {
    local unit good=0
    systemd-analyze --help 2>/dev/null | grep -q -- --threshold || return 0
    while read -r unit; do
        systemd-analyze security --offline=true --no-pager --threshold=30 "$unit" \
            >"$work/exposure" || {
            sed -n "s|.*Overall exposure level for .*: |$unit:1: above 3.0: |p" "$work/exposure"
            good=1
        }
    done < <(files '*.service')
    return $good
}

# Also the shell scripts in the workflows, by shellcheck.
check_workflows() { [ ! -x "$actionlint" ] || "$actionlint" -oneline; }
check_text() { python3 -B scripts/lint/text.py; }
check_english() { python3 -B scripts/lint/english.py "$@"; }
check_docs() { python3 -B scripts/lint/docs.py; }
check_size() { python3 -B scripts/lint/size.py "$@"; }
check_layers() { python3 -B scripts/lint/layers.py "$@"; }
check_specification() { python3 -B scripts/lint/specification.py; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
checks=(c go python shell units workflows text english docs size layers specification)
case ${1:-} in
--update | --accept) checks=(english size layers) option=$1 ;;
?*) checks=("$@") ;;
esac
failed=()
for check in "${checks[@]}"; do
    "check_$check" ${option:-} || failed+=("$check")
done
[ ${#failed[@]} = 0 ] || {
    echo "lint: failed: ${failed[*]} (scripts/lint.sh CHECK runs one of them)"
    exit 1
}
