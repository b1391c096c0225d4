/*
 * The slot protocol of docs/design/slot-protocol.md.  docs/model/run.sh builds and runs this model
 * in several configurations.
 *
 * Names
 *   Carrier(k)   a kernel thread; k is also the number of its home thread.  Its control flow is the
 *                runtime's.  It is on the stack of context t and holds slot s.
 *   a context    data: attach[t], tslot[t], q[t] and its position in its script (rnd, arr, ...).
 *                A context is switched away only inside block(), yield(), park() and
 *                migrate_home().  Its next step follows from its script, so it needs no stack.
 *   Monitor      the monitor's overcommit().
 *   SPIN         application code of a context in a busy-wait loop of its own, with a slot.  It
 *                blocks until its word has changed or park() may find a thread: calls of park()
 *                in between change nothing.
 *   Clock        the bounded time after which the wait of a parked thread counts as over.
 *   Keeper       the monitor's check for gathered threads: slots_kept.pml.
 *   on[t]        ghost: a carrier is on t's stack.
 *   mounted[s]   ghost: contexts in application code that hold s.
 *   inop         ghost: carriers inside an operation of the protocol (neither in application code
 *                nor asleep).
 *
 * Abstractions, and why they are sound
 *   - Memory is sequentially consistent.  x86-TSO differs only in store -> load order.  The
 *     protocol depends on that order where slot-protocol.md says "fence" or "seq_cst": go_idle
 *     (IDLE, then the lists), make_ready (the list, then idle_count), wait (the lock, then the
 *     word), wake (the word, then the lock, then waiters).  Each has a mutant with the two accesses
 *     swapped, which is the effect of a missing fence.  Every other hand-over is an xchg or cas, or
 *     a store-release and load-acquire, which TSO keeps.
 *   - A critical section is one atomic step if at most one of its accesses can be seen without the
 *     lock: the other accesses commute with those of other processes (Lipton).  That holds for
 *     slot.lock (seen outside: idle_count, or the list) and free.lock (K.reserved).  bucket.lock is
 *     a real lock here (bl), since wait() accesses waiters and the word inside.
 *   - Accesses to data that the carrier owns (T.slot, K.order before K.park) are merged into the
 *     next shared step.
 *   - Run queues, waiting lists, the bucket and the free list are sets, from which any member may
 *     be taken.  That allows more behaviours than FIFO, so safety carries over.
 *   - Polling for a bounded time before go_idle is only delay: pick may happen at any time anyway.
 *   - Over threads (parked threads whose wait is over) and ready ones are taken in any order; only
 *     WORK 2 has an order.
 *   - The end of a wait is read under slot.lock, while the word is stored without.  Here a wait
 *     stays over until its thread runs, so an early read changes nothing.  TOV models a word that
 *     changes back.
 *   - Sets and counts are small; all futex words share one bucket, the worst hash.
 *
 * Checked
 *   1. mounted[s] <= (BUSY ? 1 : 0) + overcommit when a context enters application code; on[t] is
 *      never set twice.
 *   2. check(), whenever inop is 0: no thread is ready or parked while a slot is IDLE; no thread is
 *      on two lists; each slot has the right number of runners; there are as many free carriers as
 *      detached contexts.
 *   3. The free list is never empty in dispatch; no thread is granted twice.
 *   4. No invalid end state: every script ends.  A lost wake-up, hand-over or context is a
 *      deadlock, and so is a spinner that gets no CPU.
 *
 * Configuration (-D)
 *   N       threads, at most 4
 *   S       slots, at most 3
 *   R       rounds
 *   WORK    0: barrier (wake all); 1: semaphore ring with TOK tokens (wake one); 2: threads 0 and 1
 *           pass a flag to each other for ever, spinning, and the others do not wait
 *   PIN     mask of threads that are pinned for good
 *   TIM     mask of threads with timed waits in even rounds
 *   KW      mask of threads that wait in the kernel in even rounds
 *   SYS     mask of threads with a blocking system call per round
 *   YLD     mask of threads that yield once per round
 *   SPN     mask of threads that busy-wait instead of waiting on the futex (WORK 1: a store ends
 *           such a wait, without a wake)
 *   TMO     number of timeouts in all
 *   SIG     number of signals in all
 *   OC      number of overcommits
 *   CON     number of times in all that acquire() makes an extra runner (other programs want the
 *           CPUs).  With OC or CON, an extra runner that leaves may be replaced or not.
 *   PLACE   make_ready may choose any slot
 *   FWD     number of signals for threads carried elsewhere
 *   RSZ     number of times that slot S - 1 is closed or opened (in the code by the monitor; here
 *           by any carrier in application code)
 *   TOV     number of waits of parked threads that time ends
 *   KEEP    number of times that a thread is made ready for its slot alone
 *   KEEPER  the monitor checks for such threads
 *   LIVE    check liveness instead, by acceptance cycles under weak fairness: all scripts end
 *           however the spinners are scheduled (WORK 2: the scripts of the other threads)
 *   EXIT    threads migrate home and their carriers end (needed for TIM, KW and SYS unless the
 *           thread is pinned)
 *   M       mutant, 0: none
 */
#ifndef N
#define N 3
#endif
#ifndef S
#define S 2
#endif
#ifndef R
#define R 1
#endif
#ifndef WORK
#define WORK 0
#endif
#ifndef TOK
#define TOK 1
#endif
#ifndef PIN
#define PIN 0
#endif
#ifndef TIM
#define TIM 0
#endif
#ifndef KW
#define KW 0
#endif
#ifndef SYS
#define SYS 0
#endif
#ifndef YLD
#define YLD 0
#endif
#ifndef TMO
#define TMO 0
#endif
#ifndef SIG
#define SIG 0
#endif
#ifndef CON
#define CON 0
#endif
#ifndef FWD
#define FWD 0
#endif
#ifndef SPN
#define SPN 0
#endif
#ifndef M
#define M 0
#endif

/* Mutants.  Each breaks one thing; run.sh expects an error of each. */
#define M_DETACH_EARLY   1   /* rest: T becomes DETACHED before K is on the free list */
#define M_NO_RECHECK     2   /* go_idle: does not read the run queues after IDLE */
#define M_COUNT_EARLY    3   /* make_ready: no fence: reads idle_count before its push is visible */
#define M_NO_GRANTED     4   /* finish: ignores GRANTED */
#define M_COMPARED_EARLY 5   /* wait: the word is compared before the lock is held */
#define M_WAKE_EARLY     6   /* wake: no fence: reads waiters before the word is visible */
#define M_ASLEEP_STORE   7   /* rest: stores ASLEEP instead of cas */
#define M_SIGNAL_STORE   8   /* signal: stores ATTACHED instead of cas ASLEEP -> ATTACHED */
#define M_NO_COMPARE     9   /* rest: sleeps again after a signal without ASLEEP, so the waker sees
                              * ATTACHED and wakes no carrier */
#define M_TIMEOUT_STEAL 10   /* timeout: acquires although a waker has dequeued it */
#define M_NO_RESERVED   11   /* migrate_home: K joins the free list without reading K.reserved */
#define M_IDLE_OC       12   /* go_idle: sets IDLE although overcommit > 0 */
#define M_NO_UNDO       13   /* grant: xchg on DETACHED is not undone */
#define M_RESERVE_FIRST 14   /* migrate_home: sets H.reserved before K joins the free list */
#define M_IDLE_READY    15   /* go_idle: does not read its own run queue under the lock */
#define M_NO_PARK_WORD  16   /* dispatch: wakes the carrier before it publishes the order */
#define M_OC_UNPAID     17   /* block: the extra runner rests without overcommit-- */
#define M_STALE_ASLEEP  18   /* timeout: leaves ASLEEP, and rest takes "not ATTACHED" for GRANTED */
#define M_KW_LATE       19   /* kernel_waiters++ after the kernel has compared */
#define M_REST_RESERVED 20   /* rest: K joins the free list without reading K.reserved */
#define M_YIELD_RESERVED 21  /* yield: with K.reserved, pushes T without looking for an idle slot */
#define M_EXTRA_STAYS   22   /* block: the extra runner is replaced although it did overcommit-- */
#define M_EXTRA_IDLE    23   /* acquire: becomes the extra runner of an idle slot */
#define M_FWD_NO_LOOK   24   /* wait: does not check for a signal after it has joined the queue */
#define M_WTG_RECHECK   25   /* go_idle: does not read the waiting lists after IDLE */
#define M_WTG_OWN       26   /* go_idle: does not read its own waiting list under the lock */
#define M_PARK_NO_LOOK  27   /* park: does not look for an idle slot */
#define M_PARK_UNPAID   28   /* park: the extra runner rests without overcommit-- */
#define M_PARK_SAVED    29   /* run_next: takes the context of a parked thread to be saved */
#define M_OVER_STAYS    30   /* pop: an over thread stays on the waiting list */
#define M_PARK_EARLY    31   /* park: no fence: reads idle_count before its push is visible */
#define M_EXTRA_NO_LOOK 32   /* park: the extra runner does not look for an idle slot */
#define M_PARK_ALONE    33   /* park: T rests although no thread takes its slot */
#define M_SPIN_RESERVED 34   /* park: does not read K.reserved */
#define M_NOT_OVER      35   /* a slot without a runnable thread does not take a parked one */
#define M_OVER_FIRST    36   /* pop: takes parked threads whose wait is over before all ready ones */
#define M_CLOSE_LEAVES  37   /* close: does not move the slot's threads */
#define M_PUSH_CLOSED   38   /* make_ready: pushes to a closed slot */
#define M_IDLE_CLOSED   39   /* go_idle: sets a closed slot IDLE */
#define M_OPEN_NO_LOOK  40   /* open: does not read the lists */
#define M_CLOSED_PAID   41   /* block: the last runner of a closed slot does not set CLOSED */
#define M_PARK_CLOSED   42   /* park: T joins the waiting list of its slot, which was closed while T
                              * searched other slots for a successor */
#define M_CLOSE_IDLE    43   /* close: leaves an idle slot IDLE */
#define M_STEP_UNPAID   44   /* step_back: without overcommit-- */
#define M_KEPT_NO_LOOK  46   /* kept_until passes: the monitor does not look for an idle slot */
#define M_COUNT_FIRST   45   /* wake: reads waiters before the lock */

#define DETACHED 0
#define ATTACHED 1
#define ASLEEP   2
#define GRANTED  3
#define NONE     7
#define BIT(x)   (1 << (x))
#define IN(m,x)  (((m) >> (x)) & 1)

byte attach[N];            /* T.attach */
byte tslot[N];             /* T.slot */
byte q[N];                 /* T.queued: 0, or 1 + the word that T waits for */
bit  slpa[N];              /* a carrier sleeps in FUTEX_WAIT(&T.attach, ASLEEP) */
byte kq[N];                /* T sleeps in the kernel on an application word: 0, or 1 + word */

byte rdy[S];               /* slot.ready, a set */
#if SPN
byte wtg[S];               /* slot.waiting, a set */
byte late;                 /* parked threads whose time has passed, a set */
#if WORK == 2
bit  turn[S];              /* an over thread was taken before a ready one: a ready one is next */
#endif
#endif
bit  idle[S];              /* slot.state */
byte oc[S];                /* slot.overcommit */
byte nidle;                /* slot_idle_count */
#include "slots_kept.pml"
#if RSZ
bit  shut[S];              /* slot.closed */
bit  gone[S];              /* slot.state == CLOSED: closed and without a runner */
byte rsz = RSZ;
#define GONE_(x)   gone[x]
#define OPEN(x)    (!shut[x])
#else
#define GONE_(x)   0
#define OPEN(x)    1
#endif

byte free;                 /* the free list, a set of carriers */
byte resv[N];              /* K.reserved: 0, or 1 + T */
byte order[N]; byte oslot[N]; /* K.order = (T, slot) */
bit  park[N];              /* K.park: 1: K.order is set.  K clears it */
bit  slpp[N];              /* K sleeps in FUTEX_WAIT(&K.park, 0) */

bit  bl;                   /* bucket.lock */
byte waiters, kwaiters;    /* bucket.waiters, bucket.kernel_waiters */

byte word[N];              /* the application's futex words; barrier: word[0] is the generation */
byte arrived;
byte rnd[N];               /* script: round */
bit  arr[N];               /* script: has arrived at the barrier in this round */
bit  sysd[N]; bit yldd[N]; /* script: has made this round's system call, yield */
byte tmo = TMO, sig = SIG, con = CON, fwd = FWD;
bit  attn[N];              /* T.pending_work: a signal was stored for T */
byte done;

bit  on[N];                /* ghosts */
byte mounted[S];
byte inop;

#define PINNED(t)  IN(PIN, t)
#define TIMED(t)   (IN(TIM, t) && !(rnd[t] & 1))
#define KWAIT(t)   (IN(KW, t) && !(rnd[t] & 1))
#define NEEDHOME(t) (TIMED(t) || KWAIT(t) || IN(SYS, t))
#if WORK == 0
#define WORDOF(t)  0
#define WAITS(t)   (word[0] == rnd[t])
#else
#define WORDOF(t)  (t)
#define WAITS(t)   (word[t] == 0)
#endif

#define POP4(m)    (IN(m,0) + IN(m,1) + IN(m,2) + IN(m,3))
#if N == 2
#define NDET ((attach[0]==DETACHED) + (attach[1]==DETACHED))
#elif N == 3
#define NDET ((attach[0]==DETACHED) + (attach[1]==DETACHED) + (attach[2]==DETACHED))
#else
#define NDET ((attach[0]==DETACHED) + (attach[1]==DETACHED) + (attach[2]==DETACHED) + (attach[3]==DETACHED))
#endif
#if S == 1
#define ANYRDY (rdy[0])
#elif S == 2
#define ANYRDY (rdy[0] || rdy[1])
#else
#define ANYRDY (rdy[0] || rdy[1] || rdy[2])
#endif
#if SPN
#if FWD
#define SPINS(t)   (WAITS(t) && !attn[t])            /* a signal ends a wait */
#else
#define SPINS(t)   WAITS(t)
#endif
#if N == 2
#define PAST       ((!SPINS(0)) + 2 * (!SPINS(1)))
#elif N == 3
#define PAST       ((!SPINS(0)) + 2 * (!SPINS(1)) + 4 * (!SPINS(2)))
#else
#define PAST       ((!SPINS(0)) + 2 * (!SPINS(1)) + 4 * (!SPINS(2)) + 8 * (!SPINS(3)))
#endif
#define OVER(x)    (wtg[x] & (PAST | late))
#define RUNNABLE(x) (rdy[x] | OVER(x))
#if S == 1
#define ALLWTG wtg[0]
#define ALLRDY rdy[0]
#elif S == 2
#define ALLWTG (wtg[0] | wtg[1])
#define ALLRDY (rdy[0] | rdy[1])
#else
#define ALLWTG (wtg[0] | wtg[1] | wtg[2])
#define ALLRDY (rdy[0] | rdy[1] | rdy[2])
#endif
#define ANYRUN     (ALLRDY | (ALLWTG & (PAST | late)))
#define LISTS      (2 * S)   /* pick's scan: runnable threads of each slot, then parked ones */
#else
#define RUNNABLE(x) rdy[x]
#define LISTS      S
#endif
#define RUNNERS(x) (mounted[x] == (1 - idle[x] - GONE_(x)) + oc[x] && !((idle[x] || GONE_(x)) && oc[x]))

/* Property 2, in the step in which the last carrier leaves the protocol. */
inline check() {
	if
	:: inop == 0 ->
#if FWD
		assert(!(attn[0] && q[0]) && !(attn[1] && q[1]) && !(attn[2] && q[2]));
#endif
		assert(!(ANYRDY && nidle > 0) || ANYKEPT);
#if RSZ
		assert(!(shut[S - 1] && (idle[S - 1] || rdy[S - 1])));
#if SPN
		assert(!(shut[S - 1] && wtg[S - 1]));
#endif
#endif
#if SPN
		assert(!(ALLWTG && nidle > 0));
		assert(!(ALLWTG & ALLRDY));
#if S > 1
		assert(!(wtg[0] & wtg[1]));
#endif
#endif
		assert(RUNNERS(0));
#if S > 1
		assert(RUNNERS(1));
#endif
#if S > 2
		assert(RUNNERS(2));
#endif
#if EXIT
		assert(POP4(free) == NDET)
#else
		assert(POP4(free) >= NDET)
#endif
	:: else
	fi
}
inline op_end() { inop--; check() }

/* A runner of closed slot x leaves: an extra one, or the last.  Pre: slot.lock. */
#define leave_closed(x) if :: oc[x] > 0 -> oc[x]-- :: else -> gone[x] = 1 fi

/* Takes any member v out of set m. */
inline any(v, m) {
	if
	:: IN(m,0) -> v = 0
	:: IN(m,1) -> v = 1
#if N > 2
	:: IN(m,2) -> v = 2
#endif
#if N > 3
	:: IN(m,3) -> v = 3
#endif
	fi;
	m = m & ~BIT(v)
}

/* Takes any runnable thread v of slot x off its list. */
#if SPN
#if WORK == 2
#define FIRST(x)   ((OVER(x) && !(rdy[x] && turn[x])) -> OVER(x) : rdy[x])
#else
#define FIRST(x)   RUNNABLE(x)
#endif
inline pop(v, x) {
	if
	:: IN(FIRST(x),0) -> v = 0
	:: IN(FIRST(x),1) -> v = 1
#if N > 2
	:: IN(FIRST(x),2) -> v = 2
#endif
#if N > 3
	:: IN(FIRST(x),3) -> v = 3
#endif
	fi;
#if WORK == 2 && M != M_OVER_FIRST
	turn[x] = (rdy[x] != 0 && !IN(rdy[x],v));
#endif
	rdy[x] = rdy[x] & ~BIT(v);
#if M != M_OVER_STAYS
	wtg[x] = wtg[x] & ~BIT(v);
#endif
	late = late & ~BIT(v)
}
/* Parks T on s. */
inline push_waiting() { assert(!IN(ALLWTG, t)); wtg[s] = wtg[s] | BIT(t) }
#define ENDS 15            /* park's p: overcommit-- is done; no successor */
#else
#define pop(v, x) any(v, rdy[x])
#endif

/* Orders carrier c to mount x on slot sl: K.order, then K.park (release), then
 * FUTEX_WAKE(&K.park). */
inline give_order(c, x, sl) {
#if M == M_NO_PARK_WORD
	atomic { if :: slpp[c] -> slpp[c] = 0; inop++ :: else fi };
	atomic { assert(!park[c]); order[c] = x; oslot[c] = sl; park[c] = 1; c = 0 }
#else
	atomic { assert(!park[c]); order[c] = x; oslot[c] = sl; park[c] = 1 };
	atomic { if :: slpp[c] -> slpp[c] = 0; inop++ :: else fi; c = 0 }
#endif
}

/* dispatch(T, s): grants by compare-and-swap unless x is DETACHED; otherwise takes a carrier off
 * the free list.  Pre: the caller owns x; slot sl is BUSY and without a runner. */
inline dispatch(x, sl) {
	atomic {
		tslot[x] = sl; old = attach[x];
		assert(old != GRANTED);                       /* one grant for each block */
#if M == M_NO_UNDO
		attach[x] = GRANTED
#else
		if :: old != DETACHED -> attach[x] = GRANTED :: else fi
#endif
	};
	if
	/* FUTEX_WAKE(&T.attach) */
	:: atomic { old == ASLEEP -> old = 0; if :: slpa[x] -> slpa[x] = 0; inop++ :: else fi }
	:: atomic { old == ATTACHED -> old = 0 }
	:: atomic { old == DETACHED ->                        /* free.lock */
#if M == M_NO_UNDO
		skip }
#else
		assert(free != 0); any(c, free) };
	   give_order(c, x, sl)
#endif
	fi
}

/* finish(T): marks x's context as saved, and dispatches x if it was granted meanwhile.  Pre: the
 * carrier has left x's stack. */
inline finish(x) {
	atomic { old = attach[x]; attach[x] = DETACHED;
		if :: old == GRANTED -> fin = 1 :: else fi; old = 0 };
#if M == M_NO_GRANTED
	fin = 0;
#endif
	if
	:: atomic { fin -> fin = 0 }; dispatch(x, tslot[x])
	:: atomic { !fin }
	fi
}

/* Values of `ret`: where FIND and RELEASE continue. */
#define RB  0    /* block */
#define RMR 1    /* make_ready, with a claimed slot */
#define RSY 2    /* release before a system call */
#define REX 3    /* exit */
#define RGH 4    /* migrate_home */
#define RKW 5    /* release before a wait in the kernel */

proctype Carrier(byte k) {
	byte t, s;          /* context carried, slot held */
	byte u, i, d;       /* thread found, slot being passed on, scan distance */
	byte old, c;        /* dispatch */
	byte wm, n;         /* wake: dequeued threads, number still to wake */
	byte v;             /* rest, migrate_home: the reserved thread */
	byte w;             /* word to wake */
#if SPN
	byte p;             /* park: 1 + successor, or ENDS */
#endif
	byte ret;
	bit  fin, att, acq; /* att: t stays attached at rest; acq: make_ready by acquire */

	/* A new thread is at home, without a slot. */
	atomic { t = k; on[t] = 1; attach[t] = ATTACHED; goto ACQUIRE };

/* -------------------------------- application code of t, holding s */
APP:	atomic {
		u = 0; i = 0; d = 0; v = 0; w = 0; n = 0; ret = 0; att = 0; acq = 0;
		if
		:: rnd[t] == R -> goto DONE
		:: else
		fi;
#if FWD
		if
		:: attn[t] -> attn[t] = 0                    /* handled on the way out of the runtime */
		:: else
		fi;
		if
		:: fwd > 0 -> fwd--; d = (BIT(N) - 1) & ~BIT(t); any(w, d); d = 0; goto FORWARD
		:: 1
		fi;
#endif
#if RSZ
		if
		:: rsz > 0 -> rsz--; goto RESIZE
		:: 1
		fi;
#endif
		if
		:: k != t && NEEDHOME(t) -> goto GO_HOME
		:: else
		fi;
		if
		:: IN(SYS, t) && !sysd[t] -> sysd[t] = 1; goto SYSCALL
		:: IN(YLD, t) && !yldd[t] -> yldd[t] = 1; goto YIELD
		:: else
		fi;
#if WORK == 0
		if
		:: arr[t] && word[0] != rnd[t] -> arr[t] = 0; sysd[t] = 0; yldd[t] = 0; rnd[t]++; goto APP
#if SPN
		:: arr[t] && word[0] == rnd[t] -> if :: IN(SPN, t) -> goto SPIN :: else -> goto WAIT fi
		:: !arr[t] && arrived + 1 < N -> arrived++; arr[t] = 1; if :: IN(SPN, t) -> goto SPIN :: else -> goto WAIT fi
#else
		:: arr[t] && word[0] == rnd[t] -> goto WAIT
		:: !arr[t] && arrived + 1 < N -> arrived++; arr[t] = 1; goto WAIT
#endif
		:: !arr[t] && arrived + 1 == N -> arrived = 0; sysd[t] = 0; yldd[t] = 0; rnd[t]++; n = N; w = 0;
#if M != M_WAKE_EARLY
			word[0]++;
#endif
			goto WAKE
		fi
#else
		if
#if WORK == 2
		:: word[t] > 0 && t < 2 -> word[t]--; goto POST
		:: t >= 2 -> rnd[t]++; goto APP
#endif
		:: word[t] > 0 && WORK == 1 -> word[t]--; sysd[t] = 0; yldd[t] = 0; rnd[t]++; goto POST
#if SPN
		:: word[t] == 0 && (WORK == 1 || t < 2) -> if :: IN(SPN, t) -> goto SPIN :: else -> goto WAIT fi
#else
		:: word[t] == 0 -> goto WAIT
#endif
		fi
#endif
	};
#if WORK != 0
POST:	atomic {
		w = (t + 1) % (WORK == 2 -> 2 : N); n = 1;
#if SPN
		if :: IN(SPN, w) -> word[w]++; goto APP :: else fi;  /* a store only */
#endif
#if M != M_WAKE_EARLY
		word[w]++;
#endif
		goto WAKE
	};
#endif

/* -------------------------------- wait(addr, val) */
WAIT:	atomic { if :: KWAIT(t) -> goto KERNEL_WAIT :: else fi };
#define EARLY (M == M_COMPARED_EARLY)
	atomic { if :: EARLY :: !EARLY && bl == 0 -> bl = 1 fi; inop++ };
	if
	:: atomic { !WAITS(t) };
		atomic { if :: !EARLY -> bl = 0 :: else fi; op_end(); goto APP }     /* EAGAIN */
	:: atomic { WAITS(t) }; atomic { !EARLY || bl == 0 -> waiters++; q[t] = 1 + WORDOF(t); bl = 0 }
	fi;
#if FWD && M != M_FWD_NO_LOOK
	atomic { if :: attn[t] -> goto LOOK :: else fi };
#endif
QUEUED:	atomic { mounted[s]--; att = PINNED(t) || TIMED(t) };
	goto BLOCK;
#if FWD
LOOK:	atomic { bl == 0 ->          /* EINTR, unless a waker or the forwarder has dequeued t */
		if
		:: q[t] != 0 -> q[t] = 0; waiters--; attn[t] = 0; op_end(); goto APP
		:: else -> goto QUEUED
		fi
	};
/* A signal for thread w arrives on this carrier: stores it, then takes w out of its wait queue. */
FORWARD: atomic { inop++; attn[w] = 1 };
	atomic { bl == 0 ->
		if
		:: q[w] != 0 -> q[w] = 0; waiters--; wm = BIT(w); n = 0; goto MADE_READY
		:: else -> op_end(); goto APP
		fi
	};
#endif

#if RSZ
/* Closes or opens slot S - 1. */
RESIZE:	inop++;
	atomic {                                             /* slot.lock */
		i = S - 1;
		if
		:: !shut[i] -> shut[i] = 1;
			if
#if M != M_CLOSE_IDLE
			:: idle[i] -> idle[i] = 0; nidle--; gone[i] = 1
#endif
			:: else
			fi;
#if M != M_CLOSE_LEAVES
			wm = rdy[i]; rdy[i] = 0;
#if SPN
			wm = wm | wtg[i]; late = late & ~wtg[i]; wtg[i] = 0;
#endif
#endif
			i = 0; n = 0; goto MADE_READY
		:: shut[i] && !gone[i] -> shut[i] = 0; i = 0; n = 0; goto MADE_READY
		:: shut[i] && gone[i] -> shut[i] = 0; gone[i] = 0; ret = RMR;
#if M == M_OPEN_NO_LOOK
			idle[i] = 1; nidle++; goto NOTHING
#else
			goto FIND
#endif
		fi
	};
#endif

/* yield: makes T ready, then continues as block.  K picks from the list to which it has pushed T,
 * so it need not read idle_count.  With K.reserved it does not pick: it does all of make_ready. */
YIELD:	atomic { inop++; mounted[s]--; att = PINNED(t);
		if
		:: resv[k] -> v = resv[k]; resv[k] = 0; wm = BIT(t)
#if RSZ
		:: !resv[k] && shut[s] -> leave_closed(s); wm = BIT(t); acq = 1; goto MADE_READY
#endif
#if OC || CON
		:: !resv[k] && OPEN(s) && oc[s] > 0 && RUNNABLE(s) != 0 -> rdy[s] = rdy[s] | BIT(t); oc[s]--; goto REST
		:: !resv[k] && OPEN(s) && oc[s] > 0 -> wm = BIT(t); acq = 1;    /* step_back */
#if M != M_STEP_UNPAID
			oc[s]--;
#endif
			goto MADE_READY
#endif
		:: !resv[k] && OPEN(s) -> rdy[s] = rdy[s] | BIT(t); i = s; ret = RB; goto FIND
		fi };
#if M == M_YIELD_RESERVED
	atomic { rdy[s] = rdy[s] | BIT(t); wm = 0; goto RUN_RESERVED };
#endif
	goto MADE_READY;

#if SPN
/* -------------------------------- a busy-wait loop, and park(T)
 * T joins the waiting list only if a successor takes its slot, or if it leaves without one as an
 * extra runner.  Otherwise it may as well spin. */
SPIN:	if
	:: atomic { !SPINS(t) -> goto APP }
	:: atomic { SPINS(t) && (!OPEN(s) || oc[s] > 0 || (resv[k] && M != M_SPIN_RESERVED) || ANYRUN || M == M_PARK_ALONE) ->
		inop++; mounted[s]--; att = PINNED(t) }
	fi;
#if M == M_PARK_EARLY
	atomic { w = (nidle > 0) };
#endif
	atomic {                                                     /* slot.lock */
#if RSZ
		if
		:: shut[s] && !resv[k] -> leave_closed(s); wm = BIT(t); acq = 1; goto MADE_READY
		:: else
		fi;
#endif
		if
#if M != M_SPIN_RESERVED
		:: resv[k] -> v = resv[k]; resv[k] = 0;
			if
			:: !OPEN(s) -> wm = BIT(t); goto MADE_READY
			:: else -> push_waiting(); goto STOOD
			fi
#endif
#if OC || CON
		:: oc[s] > 0 -> push_waiting();                      /* an extra runner */
#if M != M_PARK_UNPAID
			oc[s]--;
#endif
#if M == M_EXTRA_NO_LOOK
			goto REST
#else
			p = ENDS; goto STOOD
#endif
		:: oc[s] > 0 && RUNNABLE(s) != 0 -> pop(u, s); push_waiting(); p = 1 + u; u = 0; goto STOOD
#endif
		:: (!resv[k] || M == M_SPIN_RESERVED) && oc[s] == 0 && RUNNABLE(s) != 0 -> pop(u, s); push_waiting(); p = 1 + u; u = 0; goto STOOD
		:: (!resv[k] || M == M_SPIN_RESERVED) && oc[s] == 0 && RUNNABLE(s) == 0 -> d = 1
		fi
	};
STEAL:	atomic {
		if
		:: d < S && RUNNABLE((s + d) % S) != 0 -> pop(u, (s + d) % S); p = 1 + u; u = 0; d = 0
		:: d < S && RUNNABLE((s + d) % S) == 0 -> d++; goto STEAL
#if M == M_PARK_ALONE
		:: d == S -> d = 0; push_waiting(); goto REST
#else
		:: d == S -> d = 0; goto RESUME      /* no successor: t keeps spinning */
#endif
		fi
	};
	atomic {
#if RSZ && M != M_PARK_CLOSED
		if :: shut[s] -> wm = BIT(t); goto MADE_READY :: else fi;  /* closed meanwhile */
#endif
		push_waiting()
	};
STOOD:	atomic {  /* a fence, then as make_ready: no slot stays idle beside T */
#if M == M_PARK_NO_LOOK
		goto MADE_READY
#elif M == M_PARK_EARLY
		if :: w == 0 -> goto MADE_READY :: else -> w = 0; goto CLAIM fi
#else
		goto PUSHED
#endif
	};
#endif

/* -------------------------------- block(T) */
BLOCK:	atomic { if :: resv[k] -> v = resv[k]; resv[k] = 0; goto RUN_RESERVED :: else fi };
#if RSZ
	atomic { if
		:: shut[s] ->
#if M == M_CLOSED_PAID
			if :: oc[s] > 0 -> oc[s]-- :: else fi; goto REST
#else
			leave_closed(s); goto REST
#endif
		:: else fi };
#endif
#if OC || CON
	atomic { if
		:: oc[s] > 0 ->
#if M != M_OC_UNPAID
			oc[s]--;
#endif
			goto REST
#if M == M_EXTRA_STAYS
		:: oc[s] > 0 && RUNNABLE(s) != 0 -> oc[s]--; i = s; ret = RB; pop(u, s); goto FOUND
#else
		:: oc[s] > 0 && RUNNABLE(s) != 0 -> i = s; ret = RB; pop(u, s); goto FOUND  /* replaced */
#endif
		:: oc[s] == 0 fi };
#endif
	atomic { i = s; ret = RB; goto FIND };

/* pick(i), and go_idle(i) if that finds no thread.  FOUND: the carrier owns u and i.  NOTHING: it
 * no longer owns i. */
FIND:	atomic {
		if
		:: d < S && RUNNABLE((i + d) % S) != 0 -> pop(u, (i + d) % S); d = 0; goto FOUND
		:: d < S && (!RUNNABLE((i + d) % S) || PASSED_OVER((i + d) % S)) -> d++; goto FIND
#if SPN
		:: d >= S && d < LISTS && wtg[(i + d) % S] != 0 && M != M_NOT_OVER ->  /* any parked thread */
			any(u, wtg[(i + d) % S]); late = late & ~BIT(u); d = 0; goto FOUND
		:: d >= S && d < LISTS && (wtg[(i + d) % S] == 0 || M == M_NOT_OVER) -> d++; goto FIND
#endif
		:: d == LISTS -> d = 1
		fi
	};
	atomic {                                                     /* slot.lock */
#if RSZ && M != M_IDLE_CLOSED
		if
		:: shut[i] -> leave_closed(i); d = 0; goto NOTHING
		:: else
		fi;
#endif
		if
#if M != M_IDLE_READY
		:: rdy[i] != 0 -> d = 0; goto FIND
#endif
#if SPN && M != M_WTG_OWN && M != M_NOT_OVER
		:: wtg[i] != 0 -> d = 0; goto FIND
#endif
#if (OC || CON) && M != M_IDLE_OC
#if SPN
		:: rdy[i] == 0 && wtg[i] == 0 && oc[i] > 0 -> oc[i]--; d = 0; goto NOTHING
#else
		:: rdy[i] == 0 && oc[i] > 0 -> oc[i]--; d = 0; goto NOTHING  /* overcommitted meanwhile */
#endif
#endif
		:: else -> assert(!idle[i]); idle[i] = 1; nidle++
		fi
	};
#if M == M_NO_RECHECK
	atomic { d = 0; goto NOTHING };
#endif
RECHECK: atomic {                                            /* reads each list separately */
		if
		:: d < S && (!rdy[(i + d) % S] || PASSED_OVER((i + d) % S)) -> d++; goto RECHECK
		:: d < S && rdy[(i + d) % S] != 0 -> d = 0
#if SPN
		:: d == S -> d++; goto RECHECK
		:: d > S && d < LISTS && (wtg[(i + d) % S] == 0 || M == M_WTG_RECHECK || M == M_NOT_OVER) -> d++; goto RECHECK
		:: d > S && d < LISTS && wtg[(i + d) % S] != 0 && M != M_WTG_RECHECK && M != M_NOT_OVER -> d = 0
#endif
		:: d == LISTS -> d = 0; goto NOTHING
		fi
	};
	atomic {                                                     /* claims i again */
		if
		:: idle[i] -> idle[i] = 0; nidle--; goto FIND
		:: else -> goto NOTHING
		fi
	};
FOUND:	atomic { if :: ret == RB && u == t -> u = 0; i = 0; goto RESUME     /* woken meanwhile */
		 :: ret == RB && u != t -> goto RUN_NEXT
		 :: ret != RB fi };
	dispatch(u, i);
	goto PASSED;
NOTHING: atomic { if :: ret == RB -> i = 0; goto REST :: else -> goto PASSED fi };

/* release: does overcommit--, or passes slot i on; then continues at ret. */
RELEASE:
#if RSZ
	atomic { if :: shut[i] -> leave_closed(i); goto PASSED :: else fi };
#endif
#if OC || CON
	atomic { if
		:: oc[i] > 0 -> oc[i]--; goto PASSED
		:: oc[i] > 0 && RUNNABLE(i) != 0 -> pop(u, i); goto FOUND
		:: oc[i] == 0 -> goto FIND
		fi };
#else
	goto FIND;
#endif
PASSED:	atomic {
		u = 0; i = 0; d = 0;
		if
		:: ret == RMR -> ret = 0; goto MADE_READY
		:: ret == RSY -> ret = 0; goto IN_KERNEL
		:: ret == REX -> ret = 0; goto GONE
		:: ret == RGH -> ret = 0; goto HOME_PASSED
		:: ret == RKW -> ret = 0; goto KERNEL_COMPARE
		fi
	};

/* run_next(u), with slot s */
RUN_NEXT: atomic {
		i = 0;
		if
#if M == M_PARK_SAVED
		:: (attach[u] == DETACHED || (IN(SPN, u) && attach[u] == ATTACHED)) && !att ->
#else
		:: attach[u] == DETACHED && !att ->          /* the user-space switch */
#endif
			attach[u] = ATTACHED; tslot[u] = s;
			assert(!on[u]); on[u] = 1; on[t] = 0; d = t; t = u; u = d; d = 0
		:: else -> goto HAND_OFF
		fi
	};
	finish(u);
	goto RESUME;
HAND_OFF: dispatch(u, s);            /* u is attached elsewhere, or t stays on its stack */
	goto REST;

/* A scheduling point with K.reserved set, after t has been queued: mounts v on s. */
RUN_RESERVED: atomic {
		v--; assert(v == k && attach[v] == DETACHED && !on[v]);
		attach[v] = ATTACHED; tslot[v] = s; on[v] = 1; on[t] = 0; u = t; t = v; v = 0
	};
	finish(u);
	goto RESUME;

/* -------------------------------- rest(T): no slot */
REST:	atomic { u = 0; s = 0; if :: !att -> goto LEAVE :: else -> assert(k == t) fi };
ATT:
#if M == M_ASLEEP_STORE
	atomic { if :: attach[t] != GRANTED :: else -> attach[t] = ATTACHED; s = tslot[t]; goto RESUME fi };
	atomic { attach[t] = ASLEEP; goto ATT_SLEEP };
#endif
	atomic {                                             /* cas(T.attach, ATTACHED, ASLEEP) */
		if
		:: attach[t] == GRANTED -> attach[t] = ATTACHED; s = tslot[t]; goto RESUME
#if M == M_STALE_ASLEEP
		:: attach[t] == ASLEEP -> attach[t] = ATTACHED; s = tslot[t]; goto RESUME
#else
		:: attach[t] == ASLEEP
#endif
		:: attach[t] == ATTACHED -> attach[t] = ASLEEP
		fi
	};
ATT_SLEEP: atomic {                                          /* FUTEX_WAIT(&T.attach, ASLEEP) */
		if
		:: attach[t] == ASLEEP -> slpa[t] = 1; op_end()
		:: attach[t] != ASLEEP -> goto ATT
#if SIG
		:: sig > 0 -> sig--; goto SIGNAL
#endif
		fi
	};
ATT_SLEPT: atomic {
		if
		:: !slpa[t] -> goto ATT
#if TMO
		:: slpa[t] && IN(TIM, t) && !acq && tmo > 0 -> tmo--; slpa[t] = 0; inop++; goto TIMEOUT
#endif
#if SIG
		:: slpa[t] && sig > 0 -> sig--; slpa[t] = 0; inop++; goto SIGNAL
#endif
		fi
	};
#if SIG
SIGNAL:	atomic {                         /* the handler: cas(T.attach, ASLEEP, ATTACHED) */
#if M == M_SIGNAL_STORE
		attach[t] = ATTACHED
#else
		if :: attach[t] == ASLEEP -> attach[t] = ATTACHED :: else fi
#endif
	};
#if M == M_NO_COMPARE
	atomic { if :: attach[t] == ATTACHED -> slpa[t] = 1; op_end(); goto ATT_SLEPT :: else -> goto ATT fi };
#endif
	goto TIMEOUT;
#endif
/* A timeout or a signal: t takes itself out of the queue if it is still there. */
TIMEOUT: atomic { bl == 0 ->
		if
#if M == M_TIMEOUT_STEAL
		:: !acq -> if :: q[t] -> waiters-- :: else fi; q[t] = 0; attach[t] = ATTACHED; goto ACQUIRE
#else
		:: q[t] != 0 -> q[t] = 0; waiters--;
#if M != M_STALE_ASLEEP
			attach[t] = ATTACHED;
#endif
			goto ACQUIRE
#endif
		:: else -> goto ATT                              /* a waker owns it */
		fi
	};

/* Not attached: the carrier is on its own small stack. */
LEAVE:	on[t] = 0;
#if M == M_DETACH_EARLY
	finish(t);
#endif
	atomic {                                             /* free.lock */
		if
#if M != M_REST_RESERVED
		:: resv[k] -> v = resv[k]; resv[k] = 0
		:: !resv[k] -> free = free | BIT(k)
#else
		:: free = free | BIT(k)
#endif
		fi
	};
#if M != M_DETACH_EARLY
	finish(t);
#endif
	t = 0;
LEFT:	atomic {
		if
		:: v != 0 -> v--; t = v; v = 0;
			assert(t == k && attach[t] == DETACHED && !on[t]);
			attach[t] = ATTACHED; on[t] = 1; goto ACQUIRE
		:: else
		fi
	};
PARK:	atomic {                             /* FUTEX_WAIT(&K.park, 0) until K has an order */
		if
		:: park[k]
		:: !park[k] -> slpp[k] = 1; op_end(); goto PARKED
		fi
	};
	atomic {                                             /* mounts the ordered thread */
		t = order[k]; s = oslot[k]; order[k] = 0; oslot[k] = 0; park[k] = 0;
		assert(attach[t] == DETACHED && !on[t]);
		attach[t] = ATTACHED; tslot[t] = s; on[t] = 1; goto RESUME
	};
PARKED:	if
	:: atomic { !slpp[k] -> goto PARK }
#if !EXIT
	:: atomic { done == N -> goto END }                  /* the process ends */
#endif
	fi;

/* Returns to application code, with slot s. */
RESUME:	atomic {
		mounted[s]++; assert(mounted[s] <= 1 - idle[s] - GONE_(s) + oc[s]); assert(on[t]);
#if SPN
		assert(!IN(ALLWTG | ALLRDY, t));
#endif
		op_end(); goto APP
	};

/* -------------------------------- wake(addr, n) */
WAKE:	inop++;
#if M == M_WAKE_EARLY
	atomic { if :: bl == 0 && waiters == 0 && kwaiters == 0 -> d = 1 :: else fi };
	atomic { word[w]++; if :: d -> d = 0; op_end(); goto APP :: else fi };
#endif
#if KW
	atomic {                             /* the real FUTEX_WAKE: kernel waiters came first */
		if
		:: kwaiters > 0 ->
			d = 0;
			do
			:: d < N && n > 0 -> if :: kq[d] == 1 + w -> kq[d] = 0; inop++; n-- :: else fi; d++
			:: else -> d = 0; break
			od
		:: else
		fi
	};
	atomic { if :: n == 0 -> op_end(); goto APP :: else fi };
#endif
	atomic { if :: M == M_COUNT_FIRST -> d = (waiters == 0) :: else -> d = (bl == 0) fi };
	atomic {
		if
		:: d && (M == M_COUNT_FIRST -> bl : waiters) == 0 -> d = 0; op_end(); goto APP
		:: else -> d = 0
		fi
	};
	atomic { bl == 0 ->                                  /* dequeues up to n waiters of w */
		wm = 0;
#if WORK == 0
		d = 0;
		do
		:: d < N -> if :: q[d] == 1 + w -> wm = wm | BIT(d); q[d] = 0; waiters--; n-- :: else fi; d++
		:: else -> d = 0; break
		od
#else
		if :: q[w] == 1 + w -> wm = BIT(w); q[w] = 0; waiters--; n-- :: else fi
#endif
	};
	goto MADE_READY;

/* -------------------------------- make_ready(T) for each of wm */
MAKE_READY:
#if M == M_COUNT_EARLY
	atomic { d = (nidle > 0) };
#endif
	atomic {                                             /* slot.lock of T.slot */
		i = tslot[u];
#if PLACE
		if :: i = (i + 1) % S; tslot[u] = i :: 1 fi;
#endif
#if RSZ && M != M_PUSH_CLOSED
		if :: shut[i] -> i = 0; tslot[u] = 0 :: else fi;     /* slot 0 is never closed */
#endif
		if
		:: idle[i] -> idle[i] = 0; nidle--
		:: else -> rdy[i] = rdy[i] | BIT(u); u = 0;
#if KEEP
			if
			:: keep > 0 -> keep--; kept[i] = 1; i = 0; d = 0; goto MADE_READY
			:: 1 -> kept[i] = 0
			fi;
#endif
			i = 0; goto PUSHED
		fi
	};
	dispatch(u, i);
	atomic { u = 0; i = 0; d = 0; goto MADE_READY };
#if M == M_COUNT_EARLY
PUSHED:	atomic { if :: d == 0 -> goto MADE_READY :: else -> d = 0 fi };
#else
PUSHED:	atomic { if :: nidle == 0 -> goto MADE_READY :: else fi };
#endif
CLAIM:	atomic {                             /* claims an idle slot, each under its own lock */
		if
		:: i < S && !idle[i] -> i++; goto CLAIM
		:: i < S && idle[i] -> idle[i] = 0; nidle--; ret = RMR; goto FIND  /* or go_idle */
		:: i == S -> i = 0
		fi
	};
MADE_READY: atomic {
		if
		:: wm != 0 -> any(u, wm); goto MAKE_READY
		:: wm == 0 && acq -> goto REST
		:: wm == 0 && v != 0 -> goto RUN_RESERVED           /* yield, park */
#if SPN
		:: wm == 0 && p == ENDS -> p = 0; goto REST
		:: wm == 0 && p != 0 && p != ENDS -> u = p - 1; p = 0; goto RUN_NEXT
#endif
		:: else
		fi
	};
	atomic { op_end(); goto APP };

/* -------------------------------- acquire(T): attached, at home, no slot */
ACQUIRE: atomic { att = 1; acq = 1; i = tslot[t]; u = 0; d = 0; wm = 0; n = 0 };
ACQ1:	atomic {
		if
		:: d < S && idle[(i + d) % S] -> s = (i + d) % S; idle[s] = 0; nidle--; tslot[t] = s; i = 0; d = 0; goto RESUME
		:: d < S && !idle[(i + d) % S] -> d++; goto ACQ1
		:: d == S -> d = 0; i = 0; wm = BIT(t)
		fi
	};
#if CON
	atomic {                     /* slot.lock: runs beside the slot's thread, as natively */
		if
#if M != M_EXTRA_IDLE
		:: con > 0 && !idle[tslot[t]] && OPEN(tslot[t]) -> con--; s = tslot[t]; oc[s]++; wm = 0; goto RESUME
#else
		:: con > 0 -> con--; s = tslot[t]; oc[s]++; wm = 0; goto RESUME
#endif
		:: 1
		fi
	};
#endif
	goto MADE_READY;

/* -------------------------------- a blocking system call */
SYSCALL: atomic { inop++; mounted[s]--; i = s; ret = RSY; goto RELEASE };
IN_KERNEL: atomic { op_end() };
	atomic { inop++; goto ACQUIRE };

/* A wait in the kernel, without a slot: kernel_waiters++ before the kernel compares. */
KERNEL_WAIT:
#if KW
	atomic { inop++; mounted[s]--;
#if M != M_KW_LATE
		kwaiters++;
#endif
		i = s; ret = RKW; goto RELEASE };
KERNEL_COMPARE: atomic {
		if
		:: WAITS(t) -> kq[t] = 1 + WORDOF(t)
#if M != M_KW_LATE
			; op_end()
#endif
		:: else -> goto KERNEL_WOKEN
		fi
	};
#if M == M_KW_LATE
	atomic { kwaiters++; op_end() };
#endif
	(kq[t] == 0);
KERNEL_WOKEN: atomic { kwaiters--; goto ACQUIRE };
#else
KERNEL_COMPARE: skip;
#endif

/* -------------------------------- migrate_home(T) from K to H = T.home, with slot s */
/* On K's own stack.  T owns itself, so it cannot be granted. */
GO_HOME: atomic { inop++; mounted[s]--; on[t] = 0; attach[t] = DETACHED };
#if M == M_RESERVE_FIRST
	atomic { if :: IN(free, t) -> free = free & ~BIT(t); c = t + 1 :: else -> resv[t] = 1 + t fi };
#endif
	atomic {                                             /* K joins the free list as in rest */
		if
#if M != M_NO_RESERVED
		:: resv[k] -> v = resv[k]; resv[k] = 0
		:: !resv[k] -> free = free | BIT(k)
#else
		:: free = free | BIT(k)
#endif
		fi
	};
#if M != M_RESERVE_FIRST
	atomic { if :: IN(free, t) -> free = free & ~BIT(t); c = t + 1 :: else -> resv[t] = 1 + t fi };
#endif
	atomic {
		if
		:: c != 0 -> c--
		:: else -> t = 0;
			if
			:: v != 0 -> v--; t = v; v = 0;              /* K's home thread waits for K: it gets the slot */
				assert(t == k && attach[t] == DETACHED && !on[t]);
				attach[t] = ATTACHED; on[t] = 1; tslot[t] = s; goto RESUME
			:: else -> i = s; s = 0; ret = RGH; goto RELEASE
			fi
		fi
	};
	give_order(c, t, s);
	atomic { t = 0; s = 0; goto LEFT };
HOME_PASSED: goto LEFT;

/* -------------------------------- exit */
DONE:
#if EXIT
	atomic { if :: k != t -> goto GO_HOME :: else fi };
#endif
	atomic { inop++; mounted[s]--; i = s; ret = REX; goto RELEASE };
GONE:
#if EXIT
	atomic { done++; on[t] = 0; op_end() };              /* the kernel thread ends */
#else
	atomic { done++; on[t] = 0; free = free | BIT(k); t = 0; s = 0; goto PARK };
#endif
END:	skip
}

#if OC
/* The monitor: gives a slot with a runnable thread an extra runner, at any time, OC times. */
proctype Monitor() {
	byte u, old, c, i, b;
	do
	:: b < OC ->
end:		atomic {
			if
			:: RUNNABLE(0) != 0 -> i = 0
#if S > 1
			:: RUNNABLE(1) != 0 -> i = 1
#endif
			fi;
			pop(u, i); oc[i]++; inop++; b++
		};
		dispatch(u, i);
		atomic { u = 0; i = 0; op_end() }
	:: b == OC -> break
	od
}
#endif

#include "slots_kept.pml"

#if TOV
/* Ends a parked thread's wait by time, TOV times. */
proctype Clock() {
	byte x, m, b;
	do
	:: b < TOV ->
end:		atomic { (ALLWTG & ~late) -> m = ALLWTG & ~late; any(x, m); late = late | BIT(x); x = 0; m = 0; b++ }
	:: b == TOV -> break
	od
}
#endif

init {
	byte x;
	atomic {
		do :: x < S -> idle[x] = 1; nidle++; x++ :: else -> break od;
		x = 0;
		inop = N;
		do :: x < N -> tslot[x] = x % S; run Carrier(x); x++ :: else -> break od;
		x = 0;
#if WORK != 0
		do :: x < TOK -> word[x] = 1; x++ :: else -> break od;
		x = 0;
#endif
#if OC
		run Monitor();
#endif
#if KEEPER
		run Keeper();
#endif
#if TOV
		run Clock()
#endif
	}
end:	(done == N && inop == 0);
	atomic {                                             /* no thread is lost, all slots are idle */
#if SPN
		assert(!ALLWTG && !late);
#endif
		assert(!ANYRDY && waiters == 0 && kwaiters == 0 && nidle + GONE_(S - 1) == S)
	}
}

#if LIVE
#if WORK == 2
ltl live { <> (rnd[2] == R) }
#else
ltl live { <> (done == N) }
#endif
#endif
