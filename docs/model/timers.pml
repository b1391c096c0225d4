/* SPDX-License-Identifier: MIT
 *
 * Timed waits of carried threads (docs/design/slot-protocol.md, Timers). A waiting thread has no
 * kernel thread of its own that could keep its timeout, so the monitor keeps it. Checked:
 *
 *   1. A wait that only its timer can end does end (otherwise: an invalid end state). So the
 *      monitor never sleeps for long beside an armed timer.
 *   2. A timer ends the wait that it was armed for, and no later one.
 *
 * Time is not counted. A monitor that sleeps for a tick wakes by itself, one that sleeps for long
 * does not. An armed timer may be due at any scan. A bucket's critical section is one atomic step.
 * The lock of a timer shard is a real lock, since a bucket's is taken within it. Memory is
 * sequentially consistent; a missing fence is a mutant.
 *
 * -D R=rounds of each thread, W=maximum number of waits that a wake ends, E=times that the monitor
 * ends and is started again, M=mutant. Each mutant breaks one thing; run.sh expects an error.
 */
#ifndef R
#define R 2
#endif
#ifndef W
#define W 1
#endif
#ifndef E
#define E 1
#endif
#ifndef M
#define M 0
#endif
#define M_READ_EARLY  1 /* arm: reads `until` before the timer is visible */
#define M_SCAN_EARLY  2 /* sleep: scans timers before it publishes its long sleep */
#define M_NO_LOCK     3 /* disarm: does not take the lock */
#define M_STALE_UNTIL 4 /* end: leaves `until` unchanged; nobody checks for armed timers */
#define M_CUT_LOST    5 /* cut_sleep: does not change the word that the monitor sleeps on */

#define T 2
bit long_sleep; /* until: 0: the monitor scans again in a tick; 1: not before cut_sleep */
bit gone;       /* no monitor exists */
byte word;      /* the futex word that the monitor sleeps on; cut_sleep changes it */
bit lock;       /* of the timer shard */
bit armed[T], queued[T], by_time[T];
byte wait_of[T], timer_of[T], ended_by[T];
byte ended_threads, monitor_ends;

inline cut_sleep() {
#if M != M_CUT_LOST
	word++
#else
	skip
#endif
}

proctype Thread(byte t) {
	byte round;
	bit seen;
	do
	:: round == R -> break
	:: round < R ->
		round++;
		if
		:: long_sleep || gone                        /* its kernel thread keeps time */
		:: !long_sleep && !gone ->
			atomic { wait_of[t]++; queued[t] = 1; by_time[t] = 0 };
#if M == M_READ_EARLY
			seen = long_sleep;
#endif
			atomic { lock == 0 -> armed[t] = 1; timer_of[t] = wait_of[t] };
#if M != M_READ_EARLY
			seen = long_sleep;
#endif
			atomic { if :: seen -> cut_sleep() :: else fi };
			queued[t] == 0;
#if M == M_NO_LOCK
			armed[t] = 0;
#else
			atomic { lock == 0 -> armed[t] = 0 };
#endif
			assert(!by_time[t] || ended_by[t] == wait_of[t])
		fi
	od;
	ended_threads++
}

proctype Waker() {
	byte n;
	do
	:: n < W ->
end:		atomic { if :: queued[0] -> queued[0] = 0 :: queued[1] -> queued[1] = 0 fi; n++ }
	:: n == W -> break
	od
}

proctype Monitor() {
	byte i, seen;
	bit due;
AWAKE:	i = 0;
	do
	:: i == T -> break
	:: i < T ->
		atomic { lock == 0 -> lock = 1 };
		due = armed[i];              /* if it has expired; otherwise at a later scan */
		if
		:: due ->
			atomic {
				if
				:: queued[i] ->
					queued[i] = 0; by_time[i] = 1; ended_by[i] = timer_of[i]
				:: else
				fi
			};
			armed[i] = 0
		:: due
		:: !due
		fi;
		lock = 0; i++
	od;
	if
	:: goto AWAKE                                        /* sleeps for a tick */
	:: monitor_ends < E -> goto END
	:: skip
	fi;
#if M == M_SCAN_EARLY
	due = armed[0] || armed[1];
#endif
	seen = word;
	long_sleep = 1;
#if M != M_SCAN_EARLY
	due = armed[0]; due = due || armed[1];
#endif
	if
	:: due -> long_sleep = 0; goto AWAKE                 /* sleeps until the first is due */
	:: else
	fi;
end_asleep: word != seen;
	long_sleep = 0;
	goto AWAKE;
END:	monitor_ends++;
#if M == M_STALE_UNTIL
	gone = 1;
end_gone: ended_threads == T;
	goto STOP;
#else
	long_sleep = 1;              /* monitor_restart, which then scans timers */
	if
	:: armed[0] || armed[1] -> long_sleep = 0; goto AWAKE
	:: else
	fi;
end_ended: word != seen;                                     /* cut_sleep starts a new monitor */
	long_sleep = 0;
	goto AWAKE;
#endif
STOP:	skip
}

init {
	atomic { run Thread(0); run Thread(1); run Waker(); run Monitor() }
}
