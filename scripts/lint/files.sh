# Sourced by scripts/lint.sh and scripts/format.sh, in the top folder.
clang_format=clang-format-19
ruff=target/venv-lint/bin/ruff
actionlint=target/venv-lint/bin/actionlint

# files PATTERN...: print tracked and new files, one a line; * matches across folders
files() {
    if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
        git ls-files --cached --others --exclude-standard -- "$@" | sort -u | existing
    else
        local pattern
        for pattern; do
            find . -path ./target -prune -o -type f -path "./$pattern" -print
        done | sed 's|^\./||' | sort -u
    fi
}

# existing: copy those lines of standard input that name existing files
existing() {
    local file
    while read -r file; do
        [ ! -f "$file" ] || echo "$file"
    done
}

c_files() { files '*.c' '*.h' '*.cpp' '*.cc'; }

# shell_files: print shell scripts, found by their names or first lines
shell_files() {
    {
        files '*.sh'
        files '*' | xargs grep -lIE -m 1 '^#!.*sh( |$)' | while read -r file; do
            head -n 1 "$file" | grep -qE '^#!.*sh( |$)' && echo "$file"
        done
    } | sort -u
}
