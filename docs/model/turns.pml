/* Turns: processes that wait for each other in loops pass their CPU on (runtime/sched/turns.h). The
 * numbers of rules are those of that header.
 *
 * Checked:
 *   - While no process has died, the processes never all sleep. So no sleep ends by its timeout
 *     only (`timeout` is true if nothing else can happen).
 *   - Each death, at any step, costs at most two sleeps of full length, if that process was at no
 *     site during the first.
 *   - LIVE: process 1 does not sleep for ever.
 *
 * Memory is sequentially consistent, as are the code's accesses to words. futex(2)'s wait is one
 * step.
 *
 * -D N=processes, MOST=processes that should run at a time, KILL=processes that die,
 * EARLY=sleeps that end early, as by a signal, M=mutant. Each mutant breaks one thing; run.sh
 * expects an error.
 * LEAVE=1: the first process gives up its turn and ends.
 * PUSH=1: a thread of the first becomes ready while the second computes with its turn.
 * ANY=1: a turn goes to any process that wants one; otherwise to the next.
 */
#ifndef N
#define N 3
#endif
#ifndef MOST
#define MOST 2
#endif
#ifndef KILL
#define KILL 0
#endif
#ifndef LEAVE
#define LEAVE 0
#endif
#ifndef PUSH
#define PUSH 0
#endif
#ifndef EARLY
#define EARLY 0
#endif
#ifndef ANY
#define ANY 0
#endif
#ifndef M
#define M 0
#endif
#define M_GIVE_FIRST 1 /* gives before its own word is WANTED (rule 2) */
#define M_NO_COMPARE 2 /* futex(2) does not compare (rule 2) */
#define M_NO_LOOK    3 /* sleeps without searching for a word that is HELD (rule 3) */
#define M_KEEPS      4 /* a dead process keeps its turn (rule 4) */
#define M_NO_LEAVE   5 /* ends without giving up its turn */
#define M_READY_FIRST 6 /* checks for a ready thread before it publishes its sleep */

#define NONE 0
#define WANTED 1
#define HELD 2

byte word[N];
bit sleeps[N], dead[N];
byte kills, slept_out, early;
bit ready, napping;

inline cas(e, from, to, done) {
	atomic {
		if
		:: word[e] == from -> word[e] = to; done = 1
		:: else -> done = 0
		fi
	}
}

inline give(e, done) {
	cas(e, WANTED, HELD, done);
	if
	:: done -> sleeps[e] = 0
	:: else
	fi
}

/* Counts the other processes that hold turns in `held`, those with lower numbers in `before`. Sets
 * `wanting` to a process that wants a turn; N: none. */
inline look(me) {
	d_step { held = 0; before = 0; wanting = N; i = 1 };
	do
	:: i < N ->
		atomic {
			if
			:: word[(me + i) % N] == HELD ->
				held++;
				before = before + ((me + i) % N < me)
			:: word[(me + i) % N] == WANTED && wanting == N -> wanting = (me + i) % N
#if ANY
			:: word[(me + i) % N] == WANTED -> wanting = (me + i) % N
#endif
			:: else
			fi;
			i++
		}
	:: else -> break
	od
}

#if KILL
#define ALIVE provided (!dead[_pid])
#else
#define ALIVE
#endif
active [N] proctype Process() ALIVE {
	byte held, before, wanting = N, i;
	bit done, spare;
	do
	:: true ->
#if LEAVE
		if
		:: _pid == 0 ->
#if M != M_NO_LEAVE
			cas(_pid, HELD, NONE, done);
			if
			:: done -> look(_pid); if :: wanting < N -> give(wanting, done) :: else fi
			:: else
			fi;
#endif
			break
		:: true
		fi;
#endif
#if PUSH
		if
		:: _pid == 1 && word[1] == HELD -> break
		:: _pid == 0 && ready -> break
		:: else
		fi;
#endif
		cas(_pid, NONE, HELD, done);
		look(_pid);
		if
		:: wanting < N && held + 1 < MOST -> give(wanting, done)
		:: else ->
			spare = (before >= MOST);
			if
			:: !spare && wanting == N -> goto AGAIN
			:: else
			fi;
#if M == M_READY_FIRST
			if :: _pid == 0 && ready -> goto AGAIN :: else fi;
#endif
			if :: _pid == 0 -> napping = 1 :: else fi;
#if M != M_GIVE_FIRST
			word[_pid] = WANTED;
#endif
			if
			:: spare ->
#if M == M_NO_LOOK
				done = 1;
#else
				look(_pid);
				done = (held > 0);
#endif
			:: else ->
				done = 0;
				do
				:: wanting < N && !done ->
					give(wanting, done);
					if :: done :: else -> look(_pid) fi
				:: else -> break
				od
			fi;
#if M == M_GIVE_FIRST
			word[_pid] = WANTED;
#endif
			if
#if M != M_READY_FIRST
			:: done && !(_pid == 0 && ready) ->
#else
			:: done ->
#endif
				atomic {
					if
#if M != M_NO_COMPARE
					:: word[_pid] != WANTED
#endif
					:: else -> sleeps[_pid] = 1
					fi
				};
				if
				:: !sleeps[_pid]
				:: early < EARLY -> atomic { early++; sleeps[_pid] = 0 }
				:: timeout -> atomic {
						assert(PUSH || 2 * kills > slept_out);
						assert(!(_pid == 0 && ready));
						slept_out++;
						sleeps[_pid] = 0;
#if M != M_KEEPS
						i = 0;
						do
						:: i < N ->
							if
							:: word[i] == HELD -> word[i] = NONE
							:: else
							fi;
							i++
						:: else -> break
						od
#endif
					}
				fi
			:: else
			fi;
			cas(_pid, WANTED, HELD, done);
			if :: _pid == 0 -> napping = 0 :: else fi
		fi;
AGAIN:		atomic { held = 0; before = 0; wanting = N; i = 0; done = 0; spare = 0 }
	od
}

#if KILL
active proctype Killer() {
	byte v;
	do
	:: kills < KILL ->
		atomic {
			select(v : 0 .. N - 1);
			if
			:: !dead[v] -> dead[v] = 1; kills++
			:: else
			fi
		}
	:: break
	od
}
#endif

#if PUSH
active proctype Pusher() {
	bit done;
	ready = 1;
	if
	:: atomic { napping -> napping = 0 }; give(0, done)
	:: else
	fi
}
#endif

#ifdef LIVE
ltl turn { [] (sleeps[1] -> <> !sleeps[1]) }
#endif
