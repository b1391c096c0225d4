#!/bin/sh
# Checks the models of this folder with spin.
#     run.sh [changed|small|large|mutants] [MODEL: slots|signals|events|omp|park|giveup|timers|
#                                           alone|chains|masks|turns]
# One line per configuration: result, states, seconds. Last line: N passed, M failed. Exit 1 if
# anything failed. changed: small, of the models that are not as they were when `small` last passed
# (the file `checked` has their hashes). small: all exhaustive, with the mutants, under three
# minutes on one core. A model that passes is noted in `checked`. large: under 20 minutes, < 6 GB;
# the one that says bitstate is not exhaustive (a hashed state table: an error found is real, some
# states may be missed).
# A mutant passes if the verifier finds an error in it.
set -u
here=$(cd "$(dirname "$0")" && pwd)
what=${1:-small}
models=${2:-slots signals events omp park giveup timers alone chains masks turns}
model=
for tool in spin gcc; do
	command -v $tool >/dev/null || { echo "$tool is needed (apt-get install spin gcc)"; exit 2; }
done
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
cd "$dir" || exit 2
passed=0
failed=0

# check ok|error NAME OPTIMIZE PAN-CFLAGS TABLE-BITS MACRO...
check() {
	want=$1 name=$2 opt=$3 cflags=$4 bits=$5
	shift 5
	defs=
	for d; do defs="$defs -D$d"; done
	rm -f pan pan.* ./*.trail
	case $defs in
	*LIVE*) kind=-DNFAIR=3 search='-a -f' ;;
	*) kind=-DSAFETY search= ;;
	esac
	# signals.pml ends by itself, with carriers that have nothing to do; and in it nothing may
	# go on for ever. Its provided clauses forbid the reduction.
	if [ $model = signals ]; then
		case $defs in
		*LIVE*) kind='-DNP -DNOREDUCE' search='-l -E' ;;
		*) kind='-DSAFETY -DNOREDUCE' search=-E ;;
		esac
	fi
	# events.pml says itself what is to be true when nothing can move.
	if [ $model = events ]; then
		case $defs in
		*LIVE*) kind='-DNP -DNFAIR=4' search='-l -f -E' ;;
		*) search=-E ;;
		esac
	fi
	# shellcheck disable=SC2086
	if spin -a $defs "$here/$model.pml" >spin.out 2>&1 && gcc $opt -w $kind -DMEMLIM=6000 $cflags -o pan pan.c 2>>spin.out; then
		timeout 900 ./pan -m1000000 -w"$bits" $search >pan.out 2>&1
	else
		cat spin.out; : >pan.out
	fi
	errors=$(sed -n 's/.*errors: //p' pan.out)
	states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' pan.out)
	secs=$(sed -n 's/.*elapsed time \([0-9.]*\).*/\1/p' pan.out)
	why=$(sed -n 's/^pan:1: \(.*\) (at depth.*/\1/p' pan.out)
	got=unfinished
	if grep -q -e 'max search depth too small' -e 'out of memory' -e 'reached -DMEMLIM' -e 'Search not completed' pan.out && [ "${errors:-0}" = 0 ]; then got=truncated
	elif [ "${errors:-}" = 0 ]; then got=ok
	elif [ -n "${errors:-}" ]; then got=error
	fi
	if [ $got = "$want" ]; then passed=$((passed + 1)); verdict=PASS; else failed=$((failed + 1)); verdict=FAIL; fi
	printf '%s  %-28s %-10s %11s states %6s s  %s %s\n' $verdict "$name" $got "${states:--}" "${secs:--}" "$*" "${why:+[$why]}"
	if [ $verdict = FAIL ] && [ "$want" = ok ] && [ $got = error ] && [ -n "${KEEP:-}" ]; then cp pan* ./*.trail "$KEEP"; fi
}
ok()  { n=$1; shift; check ok "$n" -O0 -DCOLLAPSE 22 "$@"; }
ok1() { n=$1; shift; check ok "$n" -O1 -DCOLLAPSE 22 "$@"; }
big() { n=$1; shift; check ok "$n" -O2 -DCOLLAPSE 25 "$@"; }
bit() { n=$1; shift; check ok "$n, bitstate" -O2 -DBITSTATE 33 "$@"; }
mut() { n=$1; shift; check error "mutant: $n" -O0 -DCOLLAPSE 18 "$@"; }

slots_mutants() {
	mut 'detached before free'  M=1  N=3 S=1
	mut 'go_idle no recheck'    M=2  N=3 S=2
	mut 'make_ready no fence'   M=3  N=3 S=2
	mut 'finish no GRANTED'     M=4  N=3 S=2
	mut 'compared before the lock' M=5 N=2 S=2
	mut 'wake no fence'         M=6  N=2 S=2
	mut 'ASLEEP without cas'    M=7  N=2 S=2 PIN=3
	mut 'signal without cas'    M=8  N=2 S=2 PIN=3 SIG=1
	mut 'sleep not ASLEEP'      M=9  N=2 S=2 PIN=3 SIG=1
	mut 'timeout not queued'    M=10 N=2 S=2 PIN=3 TIM=3 TMO=1
	mut 'go_home not reserved'  M=11 N=3 S=2 EXIT=1
	mut 'go_idle overcommit'    M=12 N=3 S=1 OC=1
	mut 'grant not undone'      M=13 N=3 S=1
	mut 'reserve before free'   M=14 N=3 S=2 EXIT=1
	mut 'go_idle own list'      M=15 N=3 S=2
	mut 'wake before order'     M=16 N=3 S=1
	mut 'overcommit not paid'   M=17 N=3 S=1 OC=1
	mut 'stale ASLEEP'          M=18 N=2 S=1 PIN=3 TIM=3 TMO=1
	mut 'kernel_waiters++ late' M=19 N=2 S=1 PIN=3 KW=3
	mut 'rest not reserved'     M=20 N=3 S=2 R=2 EXIT=1
	mut 'yield not make_ready'  M=21 N=3 S=2 R=2 EXIT=1 WORK=1 TOK=2 YLD=1
	mut 'extra ends and hands on' M=22 N=3 S=1 R=2 EXIT=1 SYS=7 CON=1
	mut 'extra on an idle slot' M=23 N=2 S=1 EXIT=1 SYS=3 CON=1
	mut 'signal not looked for' M=24 N=3 S=2 EXIT=1 FWD=1
	mut 'go_idle no look: waiting' M=25 N=3 S=2 EXIT=1 SPN=3
	mut 'go_idle own waiting'   M=26 N=3 S=1 EXIT=1 SPN=1 SYS=5 CON=1
	mut 'park no look'          M=27 N=3 S=2 EXIT=1 SPN=3
	mut 'parked extra unpaid'   M=28 N=3 S=1 EXIT=1 SPN=3 OC=1
	mut 'parked taken for saved' M=29 N=3 S=2 EXIT=1 SPN=3
	mut 'over not removed'      M=30 N=3 S=1 EXIT=1 SPN=3
	mut 'park no fence'         M=31 N=3 S=2 EXIT=1 SPN=3
	mut 'parked extra no look'  M=32 N=3 S=2 EXIT=1 SPN=1 CON=1
	mut 'park without successor' M=33 N=3 S=1 EXIT=1 SPN=3
	mut 'park not reserved'     M=34 N=3 S=2 R=2 EXIT=1 WORK=1 SPN=5 SYS=2
	mut 'only over ones taken'  M=35 N=3 S=2 EXIT=1 SPN=3
	mut 'closed list stays'     M=37 N=3 S=2 EXIT=1 RSZ=1
	mut 'push to a closed slot' M=38 N=3 S=2 EXIT=1 RSZ=1
	mut 'closed slot goes idle' M=39 N=3 S=2 EXIT=1 RSZ=1
	mut 'open does not look'    M=40 N=3 S=2 EXIT=1 RSZ=2
	mut 'closed, last not gone' M=41 N=3 S=2 EXIT=1 RSZ=1
	mut 'park on a closed slot' M=42 N=3 S=2 EXIT=1 RSZ=1 SPN=3
	mut 'closed while idle'     M=43 N=3 S=2 EXIT=1 RSZ=1
	mut 'step back unpaid'      M=44 N=3 S=1 EXIT=1 OC=1 YLD=1
	mut 'wake: count, then lock' M=45 N=2 S=2
	mut 'kept, no look'         M=46 N=3 S=2 KEEP=2 KEEPER=1
	mut 'over before ready'     M=36 N=3 S=1 EXIT=1 WORK=2 SPN=3 LIVE=1
}

slots_small() {
	ok 'core, 1 slot'        N=3 S=1 R=2
	ok 'core, 2 slots'       N=3 S=2
	ok 'go_home, exit'       N=3 S=2 EXIT=1
	ok1 'semaphores'         N=3 S=2 R=2 EXIT=1 WORK=1 TOK=2
	ok 'one pinned'          N=3 S=2 EXIT=1 PIN=1
	ok 'all pinned'          N=3 S=2 EXIT=1 PIN=7
	ok 'timed waits'         N=3 S=1 R=2 EXIT=1 TIM=1 TMO=1
	ok 'timed waits, pinned' N=3 S=2 EXIT=1 PIN=2 TIM=3 TMO=1
	ok 'signal'              N=3 S=2 EXIT=1 PIN=1 SIG=1
	ok 'kernel wait'         N=3 S=2 EXIT=1 KW=2
	ok 'system call'         N=3 S=2 EXIT=1 SYS=1
	ok 'yield'               N=3 S=1 R=2 EXIT=1 YLD=1
	ok 'overcommit'          N=3 S=1 EXIT=1 OC=1
	ok 'overcommit, yield'   N=3 S=1 EXIT=1 OC=1 YLD=1
	ok 'contended'           N=3 S=1 EXIT=1 SYS=5 CON=1
	ok 'any list'            N=3 S=2 PLACE=1
	ok 'forwarded signal'    N=3 S=2 FWD=1
	ok1 'kept'               N=3 S=2 KEEP=1 KEEPER=1
	ok1 'kept, nobody looks' N=3 S=2 KEEP=2
	ok 'slot closed, opened' N=3 S=2 EXIT=1 RSZ=2
	ok 'closed, yield'       N=3 S=2 EXIT=1 RSZ=1 YLD=1
	ok 'closed, spinners'    N=3 S=2 EXIT=1 RSZ=1 SPN=3
	ok 'spinners'            N=3 S=2 EXIT=1 SPN=3
	ok 'spinner pinned, late' N=3 S=2 EXIT=1 SPN=3 PIN=1 TOV=1
	ok 'spinners, contended' N=3 S=1 EXIT=1 SPN=1 SYS=5 CON=1
	ok1 'spinners, go_home'  N=3 S=2 R=2 EXIT=1 WORK=1 TOK=2 SPN=5 SYS=2
	ok1 'spinners, overcommit' N=3 S=1 EXIT=1 SPN=3 OC=1
	ok 'spinners end'        N=3 S=1 EXIT=1 SPN=3 LIVE=1
	ok 'ready beside spinners' N=3 S=1 EXIT=1 WORK=2 SPN=3 LIVE=1
}

slots_large() {
	big 'core, 2 rounds'        N=3 S=2 R=2
	big 'go_home, exit'         N=3 S=2 R=2 EXIT=1
	big '4 threads, semaphores' N=4 S=2 EXIT=1 WORK=1 TOK=2
	big 'pinned, 2 rounds'      N=3 S=2 R=2 EXIT=1 PIN=1
	big 'timed, pinned, signal' N=3 S=2 EXIT=1 PIN=1 TIM=3 TMO=1 SIG=2
	big 'timed, call, signal'   N=3 S=2 R=2 EXIT=1 WORK=1 TOK=2 TIM=1 TMO=1 SYS=2 SIG=1
	big 'all at once'           N=3 S=2 EXIT=1 PIN=1 TIM=2 TMO=1 YLD=4 SYS=1
	big 'kernel wait, call'     N=3 S=2 R=2 EXIT=1 WORK=1 TOK=2 KW=2 SYS=1
	big 'yield, semaphores'     N=3 S=2 R=2 EXIT=1 WORK=1 TOK=1 YLD=7
	big 'yield, barrier'        N=3 S=2 EXIT=1 YLD=3
	big 'overcommit, 2 slots'   N=3 S=2 EXIT=1 OC=1
	big 'kept, exit'            N=3 S=2 EXIT=1 KEEP=2 KEEPER=1
	big 'kept, overcommit'      N=3 S=2 KEEP=1 KEEPER=1 OC=1
	big 'overcommit, yield'     N=3 S=2 EXIT=1 OC=1 YLD=3
	big 'overcommit twice, yield' N=3 S=1 R=2 EXIT=1 WORK=1 TOK=2 OC=2 YLD=3
	big 'closed, overcommit, yield' N=3 S=2 EXIT=1 RSZ=1 OC=1 YLD=1
	big 'overcommit twice'      N=3 S=1 R=2 EXIT=1 WORK=1 TOK=2 OC=2
	big '3 slots'               N=3 S=3 EXIT=1
	big 'contended, waits'      N=3 S=2 EXIT=1 PIN=3 KW=3 CON=2
	big 'contended, call'       N=3 S=2 EXIT=1 SYS=6 CON=2 OC=1
	big 'any list, call'        N=3 S=2 EXIT=1 SYS=2 PLACE=1
	big 'forwarded, semaphores' N=3 S=2 EXIT=1 WORK=1 TOK=2 FWD=2
	big 'forwarded, pinned'     N=3 S=2 EXIT=1 PIN=1 FWD=1 YLD=2
	big 'closed, overcommit'    N=3 S=2 EXIT=1 RSZ=2 OC=1
	big 'closed, pinned, calls' N=3 S=2 EXIT=1 RSZ=2 PIN=1 SYS=6 YLD=1
	big 'closed, contended'     N=3 S=2 EXIT=1 RSZ=2 SYS=6 CON=1
	big 'closed, spinners'      N=3 S=2 EXIT=1 RSZ=2 SPN=3 PIN=1 TOV=1
	big 'closed, spinners, oc'  N=3 S=2 EXIT=1 RSZ=1 SPN=3 OC=1
	big 'closed, 3 slots'       N=3 S=3 EXIT=1 RSZ=2
	big 'closed, semaphores'    N=3 S=2 R=2 EXIT=1 WORK=1 TOK=2 RSZ=2 TIM=1 TMO=1
	big 'spinners, ring'        N=3 S=2 R=2 EXIT=1 WORK=1 TOK=2 SPN=3 TOV=1
	big 'spinners, 1 token'     N=3 S=2 R=2 EXIT=1 WORK=1 SPN=3
	big 'spinners, overcommit'  N=3 S=2 EXIT=1 SPN=3 OC=1
	big 'spinners, all pays'    N=3 S=2 EXIT=1 SPN=3 PIN=1 OC=1 TOV=1
	big 'spinners, contended'   N=3 S=2 EXIT=1 SPN=3 SYS=5 CON=2
	big 'spinners go home'      N=3 S=2 R=2 EXIT=1 SPN=3 SYS=2
	big 'spinners, 3 slots'     N=3 S=3 EXIT=1 SPN=7 YLD=1 SYS=2
	big 'spinners, signals'     N=3 S=2 SPN=3 PIN=1 SIG=1 FWD=1
	big 'spinners end'          N=3 S=2 EXIT=1 SPN=3 LIVE=1
	bit '4 threads, spinners'   N=4 S=2 EXIT=1 WORK=1 TOK=2 SPN=3
	bit '4 threads, barrier'    N=4 S=2 EXIT=1
	big 'overcommit, timed'     N=3 S=2 EXIT=1 WORK=1 TOK=2 OC=1 TIM=1 TMO=1
}

events_mutants() {
	mut 'idle slot does not attend' M=1 N=3 S=2 END=1 E=1
	mut 'watchers++ late'       M=2 N=3 S=2 END=2 E=1
	mut 'told before listed'    M=3 N=3 S=2 END=2 E=1
	mut 'leader leaves nobody'  M=4 N=3 S=2 END=2 E=1
	mut 'leader sleeps, told'   M=5 N=3 S=2 END=2 E=1
	mut 'counted until it runs' M=6 N=3 S=2 END=1 E=0 LIVE
	mut 'told without a lock'   M=7 N=3 S=2 END=1 E=1
}

events_small() {
	ok 'events, signal'         N=2 S=1 END=1 SIG=1
	ok 'events, 1 slot'         N=3 S=1 END=1 E=2
	big 'events, one computes'  N=3 S=2 END=2 E=1
	ok 'events, signal'         N=2 S=1 END=1 SIG=1 E=2 LIVE
	ok 'events, 1 slot'         N=3 S=1 END=1 E=1 LIVE
	ok1 'events, 2 slots'       N=3 S=2 END=1 E=0 LIVE
}

events_large() {
	big 'events, one blocks'    N=3 S=2 END=1 E=1
	big 'events, 2 slots'       N=2 S=2 E=6 SIG=1
	bit 'events, 2 slots'       N=3 S=2 END=1 E=1 LIVE
	big 'events, 1 slot'        N=3 S=1 END=1 E=4
	bit 'events, 4 threads'     N=4 S=2 END=2 E=2
}

signals_mutants() {
	mut 'preemption signal blocked'      M=1
	mut 'told before kept'      M=2
	mut 'wait no look'          M=3 SIGS=1 YLD=1
	mut 'frame keeps its mask'  M=4
	mut 'next one blind'        M=5
	mut 'idle carrier blind'    M=6
	mut 'no rotation'           M=8
	mut 'emptied unblocked'     M=9 CAP=2
	mut 'stays closed'          M=10
	mut 'exit window'           M=11 CAP=2
	mut 'again behind'          M=12
	mut 'tell no fence'         M=13 SIGS=1 YLD=1
	mut 'unnotified stays'          M=14
	mut 'thread tells anywhere' M=15
	mut 'idle one not woken'    M=16
	mut 'no preemption signal'           M=17
	mut 'H itself interrupted'  M=18
	mut 'attention is enough'   M=19 SIGS=1 BELLS=1
	mut 'attention cleared late' M=20 SIGS=1 BELLS=1
	mut 'unnotified, no attention'  M=21
	mut 'unmarked not moved'    M=22
	mut 'tell inside'           M=23
	mut 'H mounted blind'       M=24
	mut 'mask first, unlisted'  M=25 MSK=2
	mut 'mask first, sigwait'   M=26 MSK=2 SIGW=1 CALLS=1
}

signals_small() {
	ok 'queue of 1'           SIGS=2
	ok1 'queue of 2'          SIGS=3 CAP=2
	ok 'wait twice'           WAITS=2
	ok 'preemption signals'            SIGS=1 BELLS=1
	ok 'mask, sigwait'        SIGS=3 MSK=2 SIGW=1 CALLS=1
	ok 'mask, yields'         SIGS=2 MSK=2 YLD=2
	ok 'unnotified cleared late'  SIGS=2 M=7                    # either order will do: H cannot come home in between
	ok 'ends'                 SIGS=2 LIVE=1
}

signals_large() {
	big 'queue of 1'          SIGS=4
	big 'queue of 2'          SIGS=4 CAP=2
	big 'wait twice'          SIGS=3 CAP=2 WAITS=2
	big 'yield'               SIGS=3 CAP=2 YLD=1
	big 'queue of 3'          SIGS=4 CAP=3
	big 'preemption signals'           SIGS=2 BELLS=1
	big 'preemption signals, yield'    SIGS=2 CAP=2 YLD=1 BELLS=1
	big '3 calls'             SIGS=2 CALLS=3
	big 'mask, sigwait'       SIGS=3 CAP=2 MSK=2 SIGW=1
	big 'unnotified cleared late' SIGS=2 M=7 WAITS=2 YLD=1
	big 'ends'                SIGS=3 CAP=2 LIVE=1
	big 'ends, preemption signals'     SIGS=2 BELLS=1 LIVE=1
}

omp_mutants() {
	mut 'waiters++ late'        M=1 N=2 TARGET=1 CHUNKS=2
	mut 'word stays'            M=2 N=2 TARGET=1 CHUNKS=2
	mut 'loop is over, unnotified'  M=3 N=3 TARGET=1 CHUNKS=2
	mut 'blocked, unnotified'       M=4 N=3 TARGET=1 CHUNKS=3 BLK=1
	mut 'ended, unnotified'         M=5 N=3 TARGET=1 CHUNKS=3 END=1
}

omp_small() {
	ok 'loop, 1 works'          N=3 TARGET=1 CHUNKS=3
	ok 'loop, 2 work'           N=3 TARGET=2 CHUNKS=4
	ok 'two loops'              N=3 TARGET=1 CHUNKS=2 TWICE=1
	ok 'one blocks'             N=3 TARGET=1 CHUNKS=3 BLK=1
	ok 'one blocks, two loops'  N=3 TARGET=2 CHUNKS=2 BLK=1 TWICE=1
	ok 'one ends'               N=3 TARGET=1 CHUNKS=3 END=1
	ok 'more are to work'       N=3 TARGET=1 CHUNKS=3 CHG=1 BLK=1
	ok 'fewer are to work'      N=3 TARGET=2 CHUNKS=4 CHG=2
}

omp_large() {
	big 'loop of 4'             N=4 TARGET=2 CHUNKS=5 BLK=1
	big 'two loops of 4'        N=4 TARGET=2 CHUNKS=3 TWICE=1 END=1
	big 'fewer, of 4'           N=4 TARGET=3 CHUNKS=5 CHG=2 BLK=1
}

park_mutants() {
	mut 'park: nobody is told'     M=1
	mut 'park: woken, then granted' M=2
	mut 'park: inserted too soon' M=3
	mut 'park: one look'          M=4
	mut 'park: told for nothing'  M=5
	mut 'park: a new scheduler'   M=6
}

park_small() {
	ok 'park'                   ROUNDS=3
	ok 'park, bounds'           ROUNDS=3 AGES=1
}

park_large() {
	ok 'park'                   ROUNDS=8 AGES=1
}

giveup_mutants() {
	mut 'give up: counted late'   M=1
	mut 'give up: no look'        M=2
	mut 'give up: looks too soon' M=3
	mut 'give up: empties first'  M=4
	mut 'give up: fast path'      M=5
}

giveup_small() {
	ok 'give up'                  W=2 ROUNDS=2
	ok 'give up, one waits'       W=1 ROUNDS=3
}

giveup_large() {
	big 'give up'                 W=3 ROUNDS=3
}

alone_mutants() {
	mut 'alone: looks too early'   M=1
	mut 'alone: without the lock'  M=2
	mut 'alone: two on one stack'  M=3
	mut 'alone: wake is undone'    M=4
	mut 'alone: stirs the dead'    M=5
}

alone_small() {
	ok 'alone'                    P=2
}

alone_large() {
	big 'alone'                   P=4
}

timers_mutants() {
	mut 'timers: reads too early'  M=1
	mut 'timers: looks too early'  M=2
	mut 'timers: disarms unlocked' M=3
	mut 'timers: monitor has gone' M=4
	mut 'timers: kick is lost'     M=5
}

timers_small() {
	ok 'timers'                   R=2 W=1 E=1
}

timers_large() {
	big 'timers'                  R=3 W=2 E=2
}

turns_mutants() {
	mut 'turns: gives first'       M=1 N=3 MOST=1
	mut 'turns: no compare'        M=2 N=3 MOST=1
	mut 'turns: no look'           M=3 N=3 MOST=1
	mut 'turns: the dead keep'     M=4 N=3 MOST=1 KILL=1
	mut 'turns: leaves with it'    M=5 N=3 MOST=1 LEAVE=1
	mut 'turns: looks too early'   M=6 N=2 MOST=1 PUSH=1
}

turns_small() {
	ok 'turns, one CPU'            N=3 MOST=1
	ok 'turns, two CPUs'           N=3 MOST=2
	ok 'turns, one leaves'         N=3 MOST=1 LEAVE=1
	ok 'turns, one dies'           N=2 MOST=1 KILL=1
	ok 'turns, ready thread'       N=2 MOST=1 PUSH=1
	ok 'turns, early'              N=3 MOST=1 EARLY=1
	ok 'turns, fair'               N=3 MOST=1 LIVE=1
	ok 'turns, in any order'       N=3 MOST=2 ANY=1
}

turns_large() {
	big 'turns, four'              N=4 MOST=2 EARLY=1
	big 'turns, four, any order'   N=4 MOST=2 ANY=1
	big 'turns, one of three dies' N=3 MOST=1 KILL=1
	big 'turns, two CPUs, one dies' N=3 MOST=2 KILL=1
	big 'turns, four leave'        N=4 MOST=2 LEAVE=1
	big 'turns, fair'              N=4 MOST=1 LIVE=1
}

chains_mutants() {
	mut 'chains: compares first'   M=1 ALL=1
	mut 'chains: wakes too early'  M=2 ALL=1
	mut 'chains: no epoch'         M=3 ALL=1 SIG=1
	mut 'chains: clears late'      M=4 ALL=2 R=2
	mut 'chains: clears always'    M=5 ALL=1
	mut 'chains: one, no fold'     M=6 ONE=1
	mut 'chains: queue first'      M=7 ALL=1 ONCE=1
	mut 'chains: fold names late'  M=8 ONE=1 SIG=1
	mut 'chains: another word'     M=10 ALL=1 SIG=1
	mut 'chains: signal, no look'  M=11 ALL=1 SIG=1
}

chains_small() {
	ok 'chains'                   ALL=2 R=2
	ok 'chains, once'             ALL=1 ONCE=1
	ok 'chains, requeue'          ALL=1 MOVE=1
	ok 'chains, three'            ALL=1 N=3
	ok1 'chains, signal'          ALL=1 SIG=1
	ok1 'chains, one by one'      ONE=1 SIG=1
}

chains_large() {
	big 'chains, two signals'     ALL=1 SIG=2
	big 'chains, all'             ALL=1 ONCE=1 MOVE=1 SIG=1
	check error 'mutant: chains: one look' -O2 -DCOLLAPSE 25 M=9 ALL=2 SIG=1 R=2
}

masks_mutants() {
	mut 'masks: scans first'       M=1
	mut 'masks: looks too early'   M=2
	mut 'masks: waits too late'    M=3
	mut 'masks: without the lock'  M=4 R=3
	mut 'masks: does not scan'     M=5
	mut 'masks: forgets'           M=6
}

masks_small() {
	ok 'masks'                    R=3
	ok 'masks, three'             N=3
}

masks_large() {
	big 'masks'                   N=3 R=4
}

# Of all that decides what a check of the model says.
hash() { cat "$here/$1"*.pml "$here/run.sh" | sha256sum | cut -d' ' -f1; }
is_checked() { grep -qx "$1 $(hash "$1")" "$here/checked"; }
note_checked() {
	is_checked "$1" || sed -i "/^$1 /d; \$a$1 $(hash "$1")" "$here/checked"
}

case $what in changed | small | large | mutants) ;; *) models=usage ;; esac
for model in $models; do
	before=$failed
	case $model in
	slots | signals | events | omp | park | giveup | timers | alone | chains | masks | turns) ;;
	*) echo "usage: $0 [changed|small|large|mutants] [MODEL]"; exit 2 ;;
	esac
	if [ $what = changed ] && is_checked $model; then
		echo "unchanged since it was checked: $model"
		continue
	fi
	case $what in
	changed | small) ${model}_small; ${model}_mutants; [ $failed != $before ] || note_checked $model ;;
	large) ${model}_large ;;
	mutants) ${model}_mutants ;;
	esac
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
