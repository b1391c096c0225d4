/*
 * The deferred-signal queue of docs/design/signals.md.  docs/model/run.sh builds and runs this
 * model in several configurations.
 *
 * Names
 *   Carrier (pid 0, 1)    kernel threads: K, the home of H, to which all signals are sent; and K2.
 *                         t is the thread carried.
 *   Interrupt (pid 2, 3)  our handler, when it interrupts the runtime or an idle carrier.  The
 *                         Carrier makes no steps meanwhile (inh).  When the handler interrupts a
 *                         thread outside of the runtime it is part of Carrier (labels from APP on),
 *                         since that thread may continue on another carrier.
 *   APP                   a thread outside of the runtime.  Without calls left it spins for ever,
 *                         so only the preemption signal makes its carrier act.
 *   look[t]               t is in the exit window, before it reads pending_work.
 *   fr[t]                 t was interrupted outside of the runtime: its save area has that state,
 *                         and t answers the preemption in the runtime.
 *   Outside               the sender of signals 1, 2, ... (all of one queued number); the monitor.
 *
 * Abstractions, and why they are sound
 *   - Memory is sequentially consistent.  Where signals.md says "fence" a mutant swaps the two
 *     accesses.
 *   - Slots do not matter here: a carrier takes any ready thread or idles, and an idle carrier
 *     wakes for a ready thread.  That allows more behaviours than slot-protocol.md.  As there, a
 *     reserved thread goes first.
 *   - Merged steps access only data of this kernel thread.  Others see of the queue only whether
 *     it is empty.
 *   - The program's handler is one step: it makes no calls.
 *
 * Checked
 *   1. Each signal is handled once, in the order sent (handle), by H on K.
 *   2. The deferred queue is not empty when H is notified, or ends a wait with EINTR.  No thread
 *      notifies H while H empties the queue.
 *   3. Outside of the runtime a kernel thread's mask is CLOSED if and only if it is K and K is
 *      closed, or H has blocked the signal itself.  The queue never overflows.
 *   4. When nothing can happen any more, all signals are handled, all queues empty and all masks
 *      open (Last).  LIVE: nothing repeats for ever (all scripts are finite).
 *
 * Configuration (-D)   SIGS signals, CAP entries of the queue, WAITS futex waits of H, YLD yields
 *                      of H, MSK calls of rt_sigprocmask, CALLS of X (each a yield or a wake),
 *                      BELLS preemptions without a reason (by the monitor).  SIGW: H may take a
 *                      signal that it blocks by sigwait.  LIVE: as above.  M: mutant, 0 none.
 */
#ifndef SIGS
#define SIGS 2
#endif
#ifndef CAP
#define CAP 1
#endif
#ifndef WAITS
#define WAITS 1
#endif
#ifndef YLD
#define YLD 0
#endif
#ifndef MSK
#define MSK 0
#endif
#ifndef SIGW
#define SIGW 0
#endif
#ifndef CALLS
#define CALLS 2
#endif
#ifndef BELLS
#define BELLS 0
#endif
#ifndef LIVE
#define LIVE 0
#endif
#ifndef M
#define M 0
#endif

/* Mutants.  Each breaks one thing; run.sh expects an error of each but 7. */
#define M_BELL_BLOCKED   1   /* the preemption signal is blocked too while K is closed */
#define M_TELL_FIRST     2   /* H is notified before the signal is in the queue */
#define M_WAIT_NO_LOOK   3   /* H does not read pending_work after it has joined the wait queue */
#define M_FRAME_MASK     4   /* a frame of our handler returns with the mask at its entry */
#define M_NEXT_BLIND     5   /* the thread mounted next does not read unnotified */
#define M_IDLE_BLIND     6   /* an idle carrier does not read unnotified */
#define M_UNNOTIFIED_LATE 7   /* unnotified is cleared after notifying: no error, H cannot come
                                * home in between */
#define M_NO_ROTATION    8   /* a delivered signal does not take the oldest listed one's place */
#define M_EMPTY_OPEN     9   /* the queue is emptied without blocking all signals */
#define M_STAYS_CLOSED  10   /* emptying the queue does not reset closed */
#define M_EXIT_DIRECT   11   /* a new signal in the exit window is handled before older kept ones */
#define M_AGAIN_BEHIND  12   /* signals sent again go behind those sent again earlier */
#define M_ATTN_LATE     13   /* no fence: reads the wait queue before pending_work is visible */
#define M_UNNOTIFIED_STAYS  14   /* H empties the queue and does not clear unnotified */
#define M_X_TELLS       15   /* the interrupted thread notifies H on any carrier, not only on K */
#define M_NO_PARK       16   /* the handler does not wake an idle carrier */
#define M_NO_BELL       17   /* tell does not send the preemption signal */
#define M_OWN_UNNOTIFIED 18   /* unnotified is not set when H is interrupted in the runtime */
#define M_ATTN_ENOUGH   19   /* pending_work alone ends a wait */
#define M_CLEAR_LATE    20   /* H reads its queue and then clears pending_work */
#define M_X_BLIND       21   /* the handler does not set the interrupted thread's pending_work */
#define M_NOT_MOVED     22   /* a delivered unmarked signal does not move to the end */
#define M_TELL_INSIDE   23   /* the handler notifies at once although it interrupted the runtime */
#define M_H_BLIND       24   /* H, when it is mounted on K, does not read unnotified */
#define M_UNLISTED      25   /* the mask changes before arrived signals are handled; those sent
                              * again while blocked are not listed */
#define M_MASK_FIRST    26   /* the mask changes before arrived signals are handled (sigwait) */

#define H 0
#define X 1
#define K 0
#define NONE 2

#define BASE   0
#define CLOSED 1             /* all but the preemption signal; also H's mask while H blocks the
                              * signal */
#define ALL    2

chan pend = [SIGS] of { byte, bit };   /* pending on K: signal, mark (sent again) */
chan defer = [CAP] of { byte };
chan again = [SIGS] of { byte };       /* signals sent again, in order */
bit  bell[2];                          /* a preemption signal is pending */
byte mask[2];
bit  closed, unnotified;               /* K.closed, K.unnotified */
bit  own;                              /* H has blocked the signal by rt_sigprocmask: the mask to
                                        * restore on K is not BASE */
byte cur[2] = NONE;                           /* K.current */
bit  park[2];
bit  inh[2];                           /* an Interrupt is running */

bit  inrt[2] = 1;                          /* T.in_runtime */
bit  attn[2];                          /* T.pending_work */
bit  look[2], fr[2];
byte on[2] = NONE;                         /* the carrier on T's stack */
byte from[2];                          /* M_FRAME_MASK: the mask at the entry of T's frame */
bit  rdy[2];                           /* T is on a run queue */
bit  homing, resv;                     /* H is migrating home; K.reserved == H */
bit  call;                             /* H migrates home for rt_sigprocmask */
bit  q, told;                          /* H is in a futex queue; the notifier took H out */
bit  bl;                               /* bucket.lock */
byte waits = WAITS, yields = YLD, masks = MSK, calls = CALLS, bells = BELLS;
byte handled;
bit  telling;                          /* ghost: tell() is running */

#define MASK(c)     ((c) == K && (closed || own) -> CLOSED : BASE)
#define INSIDE(c)   (cur[c] == NONE || inrt[cur[c]])
#if M == M_BELL_BLOCKED
#define RINGS(c)    (bell[c] && mask[c] == BASE)
#else
#define RINGS(c)    (bell[c] && mask[c] != ALL)
#endif
#define HOME(c)     ((c) == K && resv)
#define FREE(x)     (rdy[x] && on[x] == NONE)
#define SOMEBODY(c) (HOME(c) || FREE(H) || FREE(X))

#define k _pid             /* in Carrier */

/* The kernel delivers a signal on K.  s: the signal that it counts as: the oldest one sent again,
 * if there is one. */
inline deliver(s) {
	pend?s,m;
	if
	:: len(again) > 0 && M != M_NO_ROTATION ->
		if
		:: !m && M != M_NOT_MOVED -> again!s
		:: else
		fi;
		again?s
	:: else
	fi;
	m = 0
}
inline handle(s) { assert(s == handled + 1); handled++; s = 0 }
inline keep(s) {
	assert(len(defer) < CAP);
	defer!s; s = 0;
	if :: len(defer) == CAP -> closed = 1 :: else fi
}

/* Notifies H.  Pre: on K, while H is not on K, with all signals blocked or outside our handler. */
inline tell(c) {
	atomic { telling = 1; assert(len(defer) > 0 || M == M_TELL_FIRST) };
#if M != M_ATTN_LATE
	attn[H] = 1;
#endif
	atomic { !bl -> bl = 1 };
	atomic { if :: q -> q = 0; told = 1; rdy[H] = 1 :: else fi; bl = 0 };
#if M == M_ATTN_LATE
	attn[H] = 1;
#endif
	atomic {
		if :: on[H] != NONE && on[H] != c && M != M_NO_BELL -> bell[on[H]] = 1 :: else fi;
		assert(len(defer) > 0 || M == M_TELL_FIRST); telling = 0
	}
}
inline notify_home() {
#if M == M_UNNOTIFIED_LATE
	tell(k); unnotified = 0
#else
	unnotified = 0; tell(k)
#endif
}

/* Sends the kept signals to H again, and clears the state of the queue.  They are older than those
 * sent again earlier and not delivered since, so they go before them.  Pre: H is at home, with all
 * signals blocked. */
inline send_again() {
	atomic { n = (M == M_AGAIN_BEHIND -> 0 : len(again)); assert(!telling && k == K && t == H) };
	do
	:: atomic { len(defer) > 0 -> defer?<s>; pend!s,1; if :: !own || M != M_UNLISTED -> again!s :: else fi; defer?s; s = 0 }
	:: atomic { len(defer) == 0 -> break }
	od;
	atomic {
		do
		:: n > 0 -> again?s; again!s; n--; s = 0
		:: else -> break
		od;
#if M != M_STAYS_CLOSED
		closed = 0;
#endif
#if M != M_UNNOTIFIED_STAYS
		unnotified = 0;
#endif
		attn[H] = 0
	}
}

active [2] proctype Carrier() provided (!inh[_pid]) {
	byte t, u, s, n;
	bit  m;

	atomic { t = k; cur[k] = k; on[k] = k; goto MOUNTED };

APP:	atomic {                                     /* t is outside of the runtime */
		assert(mask[k] == MASK(k));
		if
		:: k == K && mask[K] == BASE && len(pend) > 0 -> mask[K] = ALL; deliver(s);
			if
			:: t == H && (len(defer) == 0 || M == M_EXIT_DIRECT) -> handle(s); mask[K] = MASK(K); goto APP
			:: else -> goto KEEP
			fi
		:: RINGS(k) -> bell[k] = 0; fr[t] = 1; inrt[t] = 1;   /* signals blocked, unblocked */
#if M == M_FRAME_MASK
			from[t] = mask[k];
#endif
			goto ANSWER
		:: look[t] -> look[t] = 0; if :: attn[t] -> inrt[t] = 1; goto LEAVE :: else -> goto APP fi
#if SIGW
		:: t == H && !look[t] && own && len(pend) > 0 -> pend?s,m; m = 0; handle(s)
#endif
		:: t == H && !look[t] && masks > 0 -> masks--; inrt[t] = 1; goto SIGMASK
		:: t == H && !look[t] && !own && waits > 0 -> waits--; inrt[t] = 1; goto WAIT
		:: t == H && !look[t] && yields > 0 -> yields--; inrt[t] = 1; goto YIELD
		:: t == X && !look[t] && calls > 0 -> calls--; inrt[t] = 1; if :: goto YIELD :: goto WAKE fi
		fi;
		goto APP
	};

	/* Our handler, outside of the runtime: the signal is kept. */
KEEP:
#if M == M_TELL_FIRST
	if :: t == X -> tell(k) :: else fi;
#endif
	atomic { keep(s); if :: t == H -> attn[H] = 1; goto KEPT :: else fi };
#if M != M_TELL_FIRST
	tell(k);
#endif
KEPT:	atomic { mask[K] = MASK(K); goto APP };

	/* The preemption is answered in the runtime, with the carrier's mask. */
ANSWER:	atomic { if :: t == H && len(defer) > 0 && k != K -> goto GO_HOME :: else -> goto YIELD fi };
ANSWERED: atomic { mask[k] = ALL };
	if
	:: atomic { t == X && unnotified && (k == K || M == M_X_TELLS) }; notify_home()
	:: atomic { t == H && len(defer) > 0 && k != K -> mask[k] = MASK(k); goto GO_HOME }
	:: atomic { t == H && len(defer) > 0 && k == K }; send_again()
	:: atomic { else }
	fi;
	atomic { fr[t] = 0; inrt[t] = 0; mask[k] = (M == M_FRAME_MASK -> from[t] : MASK(k)); goto APP };

	/* -------------------------------- in the runtime */
WAIT:	atomic { !bl -> q = 1 };                             /* under bucket.lock */
#if M != M_WAIT_NO_LOOK
	atomic { if :: !attn[H] || (len(defer) == 0 && M != M_ATTN_ENOUGH) -> goto SWITCH :: else fi };
	atomic { !bl -> if :: q -> q = 0; assert(len(defer) > 0); goto LEAVE :: else fi };   /* EINTR */
#endif
	goto SWITCH;
WAKE:	atomic { !bl -> bl = 1 };
	atomic { if :: q -> q = 0; rdy[H] = 1 :: else fi; bl = 0; goto LEAVE };
SIGMASK: atomic { if :: k != K -> call = 1; goto GO_HOME :: else -> call = 0 fi };
	/* The kernel delivers at once what a thread sends to itself. */
	atomic { len(again) == 0 || mask[K] != BASE -> mask[K] = ALL };
	atomic {
#if M != M_UNLISTED && M != M_MASK_FIRST
		if :: len(defer) > 0 -> masks++; attn[H] = 1; mask[K] = MASK(K); goto LEAVE :: else fi;
#endif
		if :: own = 0 :: masks > 0 -> own = 1 fi;
		mask[K] = MASK(K); goto LEAVE };
GO_HOME: atomic { homing = 1; goto SWITCH };
YIELD:	rdy[t] = 1;

	/* The carrier switches to u, which may be t: t was woken meanwhile, or is the only one. */
SWITCH:	atomic {
		if
		:: HOME(k) -> u = H; resv = 0
		:: !HOME(k) && rdy[H] && (on[H] == NONE || t == H) -> u = H; rdy[H] = 0
		:: !HOME(k) && rdy[X] && (on[X] == NONE || t == X) -> u = X; rdy[X] = 0
		:: !HOME(k) -> u = NONE
		fi;
		if :: u == t -> u = 0; goto RESUME :: else fi;
		cur[k] = u; if :: u != NONE -> on[u] = k :: else fi
	};
	atomic { on[t] = NONE; if :: t == H && homing -> homing = 0; resv = 1 :: else fi;
		t = u; u = 0; if :: t == NONE -> goto IDLE :: else fi };
MOUNTED:
#if M != M_NEXT_BLIND
	atomic { if :: k == K && unnotified && (t == X || M != M_H_BLIND) -> attn[t] = 1 :: else fi };
#endif
RESUME:	atomic { if :: t == H && told -> told = 0; assert(len(defer) > 0) :: else fi;  /* EINTR */
		if :: t == H && call -> goto SIGMASK :: else fi };

LEAVE:	atomic { if :: fr[t] -> goto ANSWERED :: else fi;
		if :: !attn[t] -> goto OUT :: else fi;
#if M == M_CLEAR_LATE
		if :: t == H && len(defer) == 0 -> goto CLEAR :: else fi;
#endif
		attn[t] = 0 };
	if
	:: atomic { t == X && unnotified && (k == K || M == M_X_TELLS) }; notify_home()
	:: atomic { t == H && len(defer) > 0 && k != K -> attn[t] = 1; goto GO_HOME }
	:: atomic { t == H && len(defer) > 0 && k == K };
#if M != M_EMPTY_OPEN
		mask[K] = ALL;
#endif
		send_again();
		atomic { inrt[t] = 0; mask[K] = MASK(K); goto APP }
	:: atomic { else }
	fi;
OUT:	atomic { inrt[t] = 0; look[t] = 1; goto APP };
#if M == M_CLEAR_LATE
CLEAR:	atomic { attn[t] = 0; goto OUT };
#endif

	/* -------------------------------- an idle carrier */
IDLE:
#if M != M_IDLE_BLIND
	if
	:: atomic { k == K && unnotified }; notify_home()
	:: atomic { else }
	fi;
#endif
	atomic { park[k] || SOMEBODY(k) -> park[k] = 0;
		if
		:: HOME(k) -> t = H; resv = 0
		:: !HOME(k) && FREE(H) -> t = H; rdy[H] = 0
		:: !HOME(k) && FREE(X) -> t = X; rdy[X] = 0
		:: !SOMEBODY(k) -> goto IDLE
		fi;
		cur[k] = t; on[t] = k; goto MOUNTED }
}
#undef k

#define k (_pid - 2)
active [2] proctype Interrupt() {
	byte s;
	bit  m;
	do
	:: atomic { INSIDE(k) && RINGS(k) -> bell[k] = 0; if :: cur[k] != NONE -> attn[cur[k]] = 1 :: else fi }
	:: atomic { k == K && INSIDE(K) && mask[K] == BASE && len(pend) > 0 -> inh[K] = 1; mask[K] = ALL; deliver(s) };
	   atomic { keep(s) };
#if M == M_TELL_INSIDE
	   if :: cur[K] != H -> tell(K) :: else fi;
#endif
	   atomic {
		if :: cur[K] != H || M != M_OWN_UNNOTIFIED -> unnotified = 1 :: else fi;
		if
		:: cur[K] == NONE -> park[K] = (M != M_NO_PARK)
		:: cur[K] != NONE -> if :: cur[K] == H || M != M_X_BLIND -> attn[cur[K]] = 1 :: else fi
		fi };
	   atomic { mask[K] = MASK(K); inh[K] = 0 }
	od
}
#undef k

active proctype Outside() {
	byte sent;
	do
	:: atomic { sent < SIGS -> sent++; pend!sent,0 }
	/* The monitor preempts X on K for H, after a slice, and again. */
	:: atomic { resv && !bell[K] && !INSIDE(K) && !(LIVE && look[cur[K]]) -> bell[K] = 1 }
	:: atomic { bells > 0 -> bells--; if :: bell[0] = 1 :: bell[1] = 1 fi }
	od
}

active proctype Last() {
	timeout -> assert(handled == SIGS && len(pend) == 0 && len(defer) == 0 && len(again) == 0);
	assert(!closed && !unnotified && mask[0] == BASE && mask[1] == BASE && !bell[0] && !bell[1] && !resv)
}
