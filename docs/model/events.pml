/* SPDX-License-Identifier: MIT
 *
 * Waits for events (docs/design/event-loops.md), on top of the slot protocol. slots.pml checks that
 * protocol; so here granting a slot is one step, and so is making a thread ready: it gets an idle
 * slot or is listed.
 *
 * Checked, in any interleaving of waits, events, leaders and slots that become idle:
 *   - No thread stays blocked whose events are there. Each wake-up is the right thread's.
 *   - LIVE (which only selects the verifier's search): no idle slot attends for ever to watchers
 *     of which none runs. Two watchers may rouse each other for ever, if each checks while the
 *     other is ready. Both run then, and see all events.
 *
 * -D N=threads, S=slots, E=events from outside, M=mutant.
 * SIG=1: a signal ends one wait of thread 0. END: the last thread blocks for ever in another way
 * (1), or computes for ever (2; needs another slot).
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

bit there[N];      /* thread i's own epoll instance has events that i has not taken */
bit armed[N];      /* i's instance is armed in the runtime's instance */
bit word[N];       /* i.events_notified */
bit listed[N];     /* i is in its wait queue; its waker may take it out */
bit registered[N]; /* i is enrolled: it may be notified */
bit counted[N];    /* i is counted in `watchers` */
bit leads[N];      /* i is the leader: only the kernel can wake it */
bit ready[N], granted[N];
bit in_kernel[N];  /* i waits in the kernel on its own instance */
byte idle = 0;     /* number of idle slots */
byte watchers = 0;
bit leader = 0;
byte left = E;
bit signal = SIG;
byte running = 0;
bit gone = 0; /* the last thread has ended its part (END) */

inline make_ready(x) {
	atomic {
		if
		:: idle > 0 -> idle--; granted[x] = 1; running++
		:: else -> ready[x] = 1
		fi
	}
}

/* Passes the caller's slot to a ready thread. Post: none == 1: no thread was ready, the slot is
 * idle. */
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

/* Notifies x: sets its word and uncounts it, under the lock that x takes to withdraw. So both apply
 * to the wait that is notified, and not to the next one, to which nobody would attend. M == 7: the
 * lock does not cover the count. Pre: registered[x] */
inline mark(x) {
	word[x] = 1;
	if :: counted[x] && M != 6 && M != 7 -> counted[x] = 0; watchers-- :: else fi
}

/* Wakes x after mark(). x may be in its next wait by now: a spurious wake-up. Post: mine: x was
 * waiting, and is ready. */
inline wake(x) {
	if :: M == 7 -> uncount(x) :: else fi;
	atomic { if :: listed[x] -> listed[x] = 0; mine = 1 :: else -> mine = 0 fi }
	if :: mine -> make_ready(x) :: else fi
}

/* Notifies x. Pre: the caller has taken x's event out of the runtime's instance. */
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

/* Rouses a watcher, so that a thread waits in the kernel for all. Pre: the caller holds a slot,
 * which is about to be idle, or was idle and claimed by the caller. */
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

/* The rest of go_idle, after it has published IDLE. */
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
	:: signal && me == 0 -> signal = 0; goto again /* EINTR: the program waits again */
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
		:: word[me] && M != 5 -> break /* another poll took its event */
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
	/* Nothing can move: no events are left, no thread is ready, and no slot is lost. */
	timeout -> if :: gone -> there[N - 1] = 0 :: else fi;
	assert(!there[0] && !there[1 % N] && !there[2 % N] && !there[3 % N] && !signal);
	assert(!ready[0] && !ready[1 % N] && !ready[2 % N] && !ready[3 % N]);
	assert(idle + running == S && running == (END == 2 && gone))
}
