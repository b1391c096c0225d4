# Sourced by the run.sh of folders whose tests run in virtual machines or in file systems of their
# own.
set -uo pipefail

passed=0 failed=0 skipped=0

# run_tests FOLDER LOGS LABEL [NAME]...: run FOLDER/test_*.sh, or the named ones (NAME: the part
# between test_ and .sh). Prints for each: LABEL NAME: ok, skipped (why) or FAILED, with the end of
# its output. Keeps the output in the folder LOGS.
run_tests() {
    local folder=$1 logs=$2 label=$3 file name code tests
    shift 3
    tests=("$@")
    [ $# -gt 0 ] || for file in "$folder"/test_*.sh; do
        name=${file##*/test_}
        tests+=("${name%.sh}")
    done
    mkdir -p "$logs"
    for name in "${tests[@]}"; do
        [ ! -t 1 ] || printf '%s ...\r' "$label$name"
        code=0
        bash "$folder/test_$name.sh" >"$logs/$name" 2>&1 </dev/null || code=$?
        case $code in
        0) passed=$((passed + 1)) && echo "$label$name: ok  " ;;
        77) skipped=$((skipped + 1)) && echo "$label$name: skipped ($(tail -n 1 "$logs/$name"))" ;;
        *) failed=$((failed + 1)) && echo "$label$name: FAILED" && sed 's/^/    /' "$logs/$name" | tail -n 40 ;;
        esac
    done
}

# end_tests: print the last line of a run; return its exit code
end_tests() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" = 0 ]
}
