# Invalid options are refused when a job is submitted, with a message that lists valid ones.
. "$(dirname "$0")/lib.sh"

printf '#!/bin/sh\ntouch "%s/ran"\n' "$work" >script
# refused TEXT PART...: check that srun, sbatch and salloc refuse TEXT with a message that contains
# all parts
refused() {
    local command part
    for command in "srun --lissom=$1 touch $work/ran" "sbatch --lissom=$1 script" "salloc --lissom=$1 touch $work/ran"; do
        if $command >out 2>&1; then
            fail "not refused: $command"
        fi
        has out "error: lissom: --lissom=$1: "
        for part in "${@:2}"; do
            has out "$part"
        done
    done
}

refused cpus=0 "invalid value '0'" "expected 1 to 1024" \
    "see \`lissom run --help\`; separate options by commas"
refused cpus "'--cpus <N>'"
refused switch=fast 'possible values: auto, user, kernel, off'
refused switch=auto,spin=maybe "'maybe'" 'possible values: auto, observe, off'
refused idle= 'possible values: haltpoll, sleep, poll'
refused verbose=yes '--verbose takes no value: omit =yes'
refused treads=8 "'--treads'"
refused yes "'--yes'"
refused stats "'--print-env[=<FOLDER>]' cannot be used with '--stats"
queue_is_empty || fail "something was submitted: $(squeue)"
[ ! -e ran ] || fail "something was run"

# A wrong variable is no mistake of the option. Without lissom here, the tasks check the option.
LISSOM_CPUS=0 srun --lissom=cpus=1 true 2>messages
lacks messages 'lissom run --help'
plugin "bin=$work/nothing-here"
srun --lissom=treads=8 true 2>messages
has messages "the program runs without it"
