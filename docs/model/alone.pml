/* The monitor ends by itself when the process has one thread (docs/slots.md, The monitor). What is
 * checked: what a thread has put on a list before it wakes the monitor, or has made busy, is looked
 * at (else: an invalid end state), and there is one monitor at most, since all of them have the
 * same stack.
 *
 * A sleep may time out at any time. The futex's wait is one step, as the kernel's is. Memory is
 * sequentially consistent; what would need a fence is a mutant.
 *
 * -D P=wakes of each thread, M=mutant: each breaks one thing, and run.sh wants an error for it.
 */
#ifndef P
#define P 2
#endif
#ifndef M
#define M 0
#endif
#define M_LOOK_FIRST 1 /* looks at the word before it says that there is none */
#define M_NO_LOCK    2 /* ends without the lock */
#define M_NO_JOIN    3 /* the next one does not wait until the stack is free */
#define M_NO_AGAIN   4 /* who finds one under the lock does not wake it: a wake may be undone */
#define M_NO_RECHECK 5 /* who stirs it does not look whether it has ended in between */

#define T 2
mtype = { DOZING, AWAKE, ASLEEP };
mtype word = DOZING;
bit started, lock;
byte stack;   /* monitors on it */
byte work;    /* things on lists that nobody has looked at */
bit busy;     /* two slots are: it is to know, but need not look at once */
byte done;    /* threads that have ended */

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
	:: true                                      /* it has slept for long enough */
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
			word = AWAKE;                        /* and wakes who sleeps on it */
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
				word = AWAKE                         /* as above */
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

/* All threads have ended, and nothing is left: waits for ever if something is. */
proctype Judge() {
	done == T;
	work == 0 && !busy
}

init {
	atomic { run Thread(); run Thread(); run Judge() }
}
