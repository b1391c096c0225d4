/* SPDX-License-Identifier: MIT
 *
 * Waits for events (docs/events.md), on top of the slot protocol: here a thread is granted a slot in one step, and a waker that makes a thread
 * ready gives it an idle slot or lists it in one step, since slots.pml checks that. What is checked: no thread is left blocked whose
 * events are there, in any interleaving of waits, events, leaders and slots that become idle; each wake-up is the right thread's. And (with
 * LIVE, which only says how the verifier is to look) that no slot that becomes idle goes on for ever to look after watchers of whom none runs. (Two that
 * rouse each other may do so for ever, if each looks just while the other is ready: both are at work then, and see all events.)
 *
 * N threads, S slots, E events that come from outside; SIG: a signal ends one wait of thread 0; END: the last thread blocks for
 * good in some other way (1), or computes for good (2; with another slot). M: a mutant.
 */
#ifndef N
#define N 3
#endif
#ifndef S
#define S 1
#endif
#ifndef E
#define E 3
#endif
#ifndef SIG
#define SIG 0
#endif
#ifndef END
#define END 0
#endif
#ifndef M
#define M 0
#endif

bit there[N];      /* events of thread i that it has not taken: what its own epoll instance says */
bit armed[N];      /* i's instance is in the process's one, and would be told of */
bit word[N];       /* i has been told */
bit listed[N];     /* i is in its wait queue, and its waker's to take */
bit registered[N]; /* i may be told */
bit counted[N];    /* i is one of the watchers */
bit leads[N];      /* i is the leader: only the kernel wakes it */
bit ready[N], granted[N];
bit in_kernel[N];  /* i sleeps there, for itself */
byte idle = 0;     /* slots */
byte watchers = 0;
bit leader = 0;
byte left = E;
bit signal = SIG;
byte running = 0;
bit gone = 0; /* the last one */

inline make_ready(x) {
	atomic {
		if
		:: idle > 0 -> idle--; granted[x] = 1; running++
		:: else -> ready[x] = 1
		fi
	}
}

/* of the caller's slot: to a ready thread, or to nobody. Post: none == 1: it is idle */
inline pass_on() {
	atomic {
		running--;
		none = 0;
		if
		:: ready[0] -> ready[0] = 0; granted[0] = 1; running++
		:: N > 1 && ready[1 % N] -> ready[1 % N] = 0; granted[1 % N] = 1; running++
		:: N > 2 && ready[2 % N] -> ready[2 % N] = 0; granted[2 % N] = 1; running++
		:: N > 3 && ready[3 % N] -> ready[3 % N] = 0; granted[3 % N] = 1; running++
		:: !ready[0] && !ready[1 % N] && !ready[2 % N] && !ready[3 % N] -> idle++; none = 1
		fi
	}
}

inline uncount(x) { atomic { if :: counted[x] -> counted[x] = 0; watchers-- :: else fi } }

/* What x has to see, under the lock that x takes to withdraw: of the wait that is told, and not of its next one, after which nobody would look. M == 7:
 * not under one lock. Pre: registered[x] */
inline mark(x) {
	word[x] = 1;
	if :: counted[x] && M != 6 && M != 7 -> counted[x] = 0; watchers-- :: else fi
}

/* After that. It may be in its next wait by now, and is woken for nothing. Post: mine: x was waiting, and is ready. */
inline wake(x) {
	if :: M == 7 -> uncount(x) :: else fi;
	atomic { if :: listed[x] -> listed[x] = 0; mine = 1 :: else -> mine = 0 fi }
	if :: mine -> make_ready(x) :: else fi
}

/* Whoever has taken x's event out of the process's instance. */
inline tell(x) {
	atomic { mine = registered[x]; if :: mine -> mark(x) :: else fi }
	if :: mine -> wake(x) :: else fi
}

inline poll() {
	k = 0;
	do
	:: atomic {
		do
		:: k < N && !(armed[k] && there[k]) -> k++
		:: else -> break
		od;
		if :: k < N -> armed[k] = 0 :: else fi
	   }
	   if
	   :: k < N -> tell(k)
	   :: else -> break
	   fi
	od
}

/* A slot that is about to be idle, or an idle one that the caller has claimed: somebody is to wait for the others. Pre: the caller holds a slot. */
inline rouse() {
	k = 0;
	do
	:: atomic {
		do
		:: k < N && (!registered[k] || leads[k]) -> k++
		:: else -> break
		od;
		if :: k < N -> mark(k) :: else fi
	   }
	   if
	   :: k == N -> break
	   :: else ->
		wake(k);
		if :: mine -> break :: else -> k++ fi
	   fi
	od
}

/* go_idle, from where IDLE has been published */
inline attend() {
	do
	:: none && watchers > 0 && !leader && M != 1 ->
		atomic { if :: idle > 0 -> idle--; running++; mine = 1 :: else -> mine = 0 fi }
		if
		:: !mine -> break
		:: else
		fi;
		poll();
		atomic {
			if
			:: ready[0] || ready[1 % N] || ready[2 % N] || ready[3 % N] -> mine = 1
			:: else -> mine = 0
			fi
		}
		if
		:: mine
		:: else -> rouse()
		fi;
		pass_on()
	:: else -> break
	od
}

inline release() { pass_on(); attend() }

inline acquire() {
	atomic {
		if
		:: idle > 0 -> idle--; running++
		:: else -> ready[me] = 1; blocked = 1
		fi
	}
	if
	:: blocked -> atomic { granted[me] -> granted[me] = 0; blocked = 0 }
	:: else
	fi
}

proctype thread(byte me) {
	byte k;
	bit mine, none, blocked = 1, virtually, led;
	granted[me] -> granted[me] = 0; blocked = 0;
again:
	/* holds a slot */
	if
	:: END == 1 && me == N - 1 && !there[me] -> gone = 1; release(); goto end
	:: END == 2 && me == N - 1 && !there[me] -> gone = 1; goto end
	:: signal && me == 0 -> signal = 0; goto again /* the wait ends, the program comes back */
	:: atomic { there[me] -> there[me] = 0; goto again }
	:: !there[me] && !(signal && me == 0)
	fi;
	atomic { virtually = leader || ready[0] || ready[1 % N] || ready[2 % N] || ready[3 % N] }
	if
	:: virtually ->
		word[me] = 0;
		registered[me] = 1;
		armed[me] = 1;
		if :: M != 2 -> watchers++; counted[me] = 1 :: else fi;
		atomic {
			if
			:: word[me] && M != 3 -> mine = 1
			:: else -> listed[me] = 1; mine = 0
			fi
		}
		if
		:: mine -> uncount(me); registered[me] = 0; goto again
		:: else
		fi;
		release();
		if :: M == 2 -> watchers++; counted[me] = 1 :: else fi;
		if
		:: atomic { granted[me] -> granted[me] = 0 }
		:: atomic { me == 0 && signal && listed[me] -> listed[me] = 0 } acquire()
		fi;
progress_woken:
		uncount(me);
		registered[me] = 0;
		goto again
	:: else
	fi;
in_the_kernel:
	atomic {
		led = 0;
		if
		:: watchers > 0 && !leader -> leader = 1; led = 1
		:: else
		fi
	}
	if
	:: led ->
		word[me] = 0;
		leads[me] = 1;
		registered[me] = 1;
		armed[me] = 1;
		release();
		do
		:: word[me] && M != 5 -> break /* its event was taken by another, who puts it back */
		:: me == 0 && signal -> break
		:: (armed[0] && there[0]) || (armed[1 % N] && there[1 % N]) || (armed[2 % N] && there[2 % N]) || (armed[3 % N] && there[3 % N]) -> poll(); break
		od;
		registered[me] = 0;
		leads[me] = 0;
		acquire();
		leader = 0;
		if
		:: watchers > 0 && idle > 0 && M != 4 ->
			atomic { if :: idle > 0 -> idle--; running++; mine = 1 :: else -> mine = 0 fi }
			if :: mine -> release() :: else fi
		:: else
		fi
	:: else ->
		in_kernel[me] = 1;
		release();
		if
		:: there[me]
		:: me == 0 && signal
		fi;
		in_kernel[me] = 0;
		acquire()
	fi;
	goto again;
end:
	skip
}

proctype outside() {
	byte i;
	do
	:: left > 0 ->
		left--;
		if
		:: i = 0
		:: i = 1 % N
		:: i = 2 % N
		:: i = 3 % N
		fi;
		there[i] = 1
	:: else -> break
	od
}

init {
	byte i = 0;
	atomic {
		do
		:: i < N -> run thread(i); i++
		:: else -> break
		od;
		i = 0;
		do
		:: i < N && i < S -> granted[i] = 1; running++; i++
		:: i < N && i >= S -> ready[i] = 1; i++
		:: else -> break
		od;
		run outside()
	}
	/* Nothing can move: nobody's events wait, no slot is idle beside a ready thread, and none has been lost. */
	timeout -> if :: gone -> there[N - 1] = 0 :: else fi;
	assert(!there[0] && !there[1 % N] && !there[2 % N] && !there[3 % N] && !signal);
	assert(!ready[0] && !ready[1 % N] && !ready[2 % N] && !ready[3 % N]);
	assert(idle + running == S && running == (END == 2 && gone))
}
