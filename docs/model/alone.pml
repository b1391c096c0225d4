/* The monitor ends when the process has one thread (docs/design/slot-protocol.md, Start and end of
 * the monitor).
 *
 * Checked:
 *   - The monitor sees everything that a thread lists before it wakes the monitor, and each slot
 *     that becomes busy. Otherwise: an invalid end state.
 *   - At most one monitor exists at a time, since all monitors use the same stack.
 *
 * A sleep may time out at any time. The futex wait is one step, as in the kernel. Memory is
 * sequentially consistent; each place that needs a fence has a mutant.
 *
 * -D P=wakes of each thread, M=mutant. Each mutant breaks one thing; run.sh expects an error.
 */
#ifndef P
#define P 2
#endif
#ifndef M
#define M 0
#endif
#define M_LOOK_FIRST 1 /* end: reads the word before it clears `started` */
#define M_NO_LOCK    2 /* end: does not take the lock */
#define M_NO_JOIN    3 /* start: does not wait until the stack is free */
#define M_NO_AGAIN   4 /* wake: finds a monitor under the lock and does not wake it again */
#define M_NO_RECHECK 5 /* busy slot: does not check whether the monitor has ended meanwhile */

#define T 2
mtype = { DOZING, AWAKE, ASLEEP };
mtype word = DOZING;
bit started, lock;
byte stack;   /* number of monitors on it */
byte work;    /* listed items that no monitor has seen */
bit busy;     /* two slots are busy: the monitor has to notice, but not at once */
byte done;    /* number of threads that have ended */

proctype Monitor() {
	bit needed;
AWAKE_:	work = 0; busy = 0;
	word = DOZING;
	if
	:: work > 0 -> word = AWAKE; goto AWAKE_
	:: else
	fi;
	atomic {
		if
		:: word == DOZING -> word = ASLEEP
		:: else -> goto AWAKE_
		fi
	};
	if
	:: busy -> word = AWAKE; goto AWAKE_
	:: else
	fi;
	if
	:: word != ASLEEP -> goto AWAKE_
	:: true                                      /* the sleep times out */
	fi;
#if M != M_NO_LOCK
	atomic { if :: lock == 0 -> lock = 1 :: else -> goto SLEEP fi };
#endif
#if M == M_LOOK_FIRST
	needed = (word != ASLEEP);
	started = 0;
#else
	started = 0;
	needed = (word != ASLEEP);
#endif
	if
	:: needed ->
		started = 1; word = AWAKE;
#if M != M_NO_LOCK
		lock = 0;
#endif
		goto AWAKE_
	:: else
	fi;
#if M != M_NO_LOCK
	lock = 0;
#endif
	stack--;
	goto GONE;
SLEEP:
end_asleep: word != ASLEEP;
	goto AWAKE_;
GONE:	skip
}

/* monitor_kick */
inline wake() {
	if
	:: word == AWAKE
	:: else ->
		there = 0;
		if                                           /* kick_started */
		:: started ->
			word = AWAKE;                        /* and wake the sleeper */
			if
			:: started -> there = 1
			:: else ->
				atomic { if :: word == AWAKE -> word = DOZING :: else fi }
			fi
		:: else
		fi;
		if
		:: there
		:: else ->
			atomic { lock == 0 -> lock = 1 };
			if
			:: !started ->
#if M != M_NO_JOIN
				stack == 0;
#endif
				started = 1; word = AWAKE;
				stack++;
				assert(stack == 1);
				run Monitor()
			:: else ->
#if M != M_NO_AGAIN
				word = AWAKE /* again: a wake may be undone */
#else
				skip
#endif
			fi;
			lock = 0
		fi
	fi
}

proctype Thread() {
	byte n;
	bit there;
	do
	:: n == P -> break
	:: n < P ->
		n++;
		if
		:: work++; wake()
		:: busy = 1;                                 /* monitor_slot_busy */
			if
			:: started ->
				atomic { if :: word == ASLEEP -> word = DOZING :: else fi };
#if M != M_NO_RECHECK
				if
				:: started
				:: else -> wake()
				fi
#endif
			:: else -> wake()
			fi
		fi
	od;
	done++
}

/* Waits for ever, an invalid end state, if anything is left after all threads have ended. */
proctype Judge() {
	done == T;
	work == 0 && !busy
}

init {
	atomic { run Thread(); run Thread(); run Judge() }
}
