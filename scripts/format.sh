#!/usr/bin/env bash
# Format all files in place: comments and Markdown beyond column 100, then C, Go, Python and Rust.
#     scripts/format.sh
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/need.sh lint
. scripts/lint/files.sh

# Only the kernel module is indented with tabs.
c_files | grep -v '^kmod/' | while read -r file; do
    if grep -qP '^ *\t' "$file"; then
        expanded=$(expand -i -t 4 "$file" && echo .)
        printf %s "${expanded%.}" >"$file"
    fi
done
{
    c_files
    files '*.S' '*.rs' '*.go' '*.py' 'tests/cases/*.txt'
    shell_files
    files '*.md' | grep -v '^docs/results'
} | xargs python3 -B scripts/lint/wrap.py
c_files | xargs "$clang_format" -i
files '*.go' | xargs gofmt -w
files '*.py' | xargs "$ruff" format --quiet
PATH="$HOME/.cargo/bin:$PATH" cargo fmt --all
