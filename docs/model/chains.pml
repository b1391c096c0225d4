/* Chains of a wait queue (docs/design/virtual-blocking.md, Chains): the queue of one bucket, with a
 * chain for each of two slots.
 *
 * Threads wait on one of two words, which share the bucket and the chains. In round n, a thread
 * waits until word 0 is at least n. Wakers increment word 0 and wake all at once (ALL), or one by
 * one until none is left (ONE). Or they wake one thread without incrementing (ONCE). Word 1 never
 * changes. A signal (SIG), or Last at the end, ends waits on it, also those of threads that a
 * requeue (MOVE) has moved there.
 *
 * Checked: a woken thread was waiting, and has one owner (asserts). All rounds end, and no thread
 * keeps waiting after it was sent a signal (otherwise: an invalid end state).
 *
 * Lists are sets: their order is not modelled. Memory is sequentially consistent: each place that
 * needs a fence has a mutant with the two accesses swapped. A critical section whose accesses no
 * other process sees is one step.
 *
 * -D N=threads R=rounds M=mutant; ALL= ONE= ONCE= SIG= MOVE= number of processes of each kind
 */
#ifndef N
#define N 2
#endif
#ifndef R
#define R 1
#endif
#ifndef ALL
#define ALL 0
#endif
#ifndef ONE
#define ONE 0
#endif
#ifndef ONCE
#define ONCE 0
#endif
#ifndef SIG
#define SIG 0
#endif
#ifndef MOVE
#define MOVE 0
#endif
#ifndef M
#define M 0
#endif
#define M_COMPARE_FIRST 1 /* wait: compares the word before it sets the bit */
#define M_LOOK_FIRST    2 /* wake: reads the bits before the store to the word is visible */
#define M_NO_EPOCH      3 /* dequeue: takes a thread whose T.chain names the chain to be in it */
#define M_CLEAR_LATE    4 /* wake: clears the bit after it has released the chain's lock */
#define M_CLEAR_ALWAYS  5 /* wait: clears the bit although the chain has other threads */
#define M_NO_FOLD       6 /* wake one: searches the bucket's queue only */
#define M_QUEUE_FIRST   7 /* wake: checks the queue before the chains */
#define M_NAME_LATE     8 /* fold: sets T.bucket and T.chain after it releases the chain's lock */
#define M_NO_SECOND     9 /* dequeue: does not read T.chain again after the epoch */
#define M_OTHER_WORD   10 /* wake: detaches a chain whatever its address */
#define M_NO_LOOK      11 /* wait: does not check for a signal after it has joined a queue */

#define BIT(x) (1 << (x))
#define IN(m, x) (((m) >> (x)) & 1)

byte word[2];
bit bl, cl[2];            /* locks of the bucket and the chains */
byte queue, qaddress;     /* the bucket's queue; bit t of qaddress: t waits on word 1, not 0 */
byte chain[2];            /* sets of threads */
bit caddress[2];
byte epoch[2];
byte bits;                /* bucket.chains: set for chains that are not empty */
bit tqueue[N];            /* T.bucket: T is in the bucket's queue */
byte tchain[N];           /* T.chain: 1 + number of the chain; 0: none */
byte tepoch[N];
byte ready;               /* the slots' run queues */
bit pending[N];
bit waits[N];             /* ghost: from joining a queue until taken out of it */
byte finished, wakers_left = ALL + ONE + ONCE + MOVE, signals_left = SIG;

#define lock(l) atomic { !l -> l = 1 }
#define unlock(l) l = 0

/* Makes the threads of m ready and clears m. Pre: the caller took them out of a queue. */
inline make_ready(m) {
	atomic {
		assert(!(ready & m));
		ready = ready | m;
		m = 0
	}
}
/* Marks the threads of m as taken out of their queue. Asserts that each waits. */
inline taken(m) {
	assert(!IN(m, 0) || waits[0]);
	assert(!IN(m, 1) || waits[1]);
	if :: IN(m, 0) -> waits[0] = 0 :: else fi;
	if :: IN(m, 1) -> waits[1] = 0 :: else fi
#if N > 2
	;
	assert(!IN(m, 2) || waits[2]);
	if :: IN(m, 2) -> waits[2] = 0 :: else fi
#endif
}

inline fold_chain(i) {
	if
	:: IN(left, i) ->
		lock(cl[i]);
		d_step {
			j = 0;
			do
			:: j == N -> break
			:: j < N ->
				if
				:: IN(chain[i], j) ->
					queue = queue | BIT(j);
					qaddress = (qaddress & ~BIT(j)) | (caddress[i] << j);
#if M != M_NAME_LATE
					tqueue[j] = 1;
					tchain[j] = 0
#else
					late = late | BIT(j)
#endif
				:: else
				fi;
				j++
			od;
			j = 0;
			chain[i] = 0;
			epoch[i]++
		};
		atomic { bits = bits & ~BIT(i); unlock(cl[i]) };
#if M == M_NAME_LATE
		d_step {
			j = 0;
			do
			:: j == N -> break
			:: j < N ->
				if :: IN(late, j) -> tqueue[j] = 1; tchain[j] = 0 :: else fi;
				j++
			od;
			j = 0; late = 0
		};
#endif
	:: else
	fi
}

/* Pre: the bucket's lock. */
inline fold() {
	left = bits;
	fold_chain(0);
	fold_chain(1);
	left = 0
}

/* Takes a thread that waits on word a out of the bucket's queue: `out` is its bit, 0 if there is
 * none. Pre: the bucket's lock. */
inline take_one(a) {
	atomic {
		if
		:: IN(queue, 0) && IN(qaddress, 0) == a -> out = BIT(0); tqueue[0] = 0
		:: IN(queue, 1) && IN(qaddress, 1) == a -> out = BIT(1); tqueue[1] = 0
#if N > 2
		:: IN(queue, 2) && IN(qaddress, 2) == a -> out = BIT(2); tqueue[2] = 0
		:: !(IN(queue, 2) && IN(qaddress, 2) == a) &&
#else
		::
#endif
		   !(IN(queue, 0) && IN(qaddress, 0) == a) &&
		   !(IN(queue, 1) && IN(qaddress, 1) == a) -> out = 0
		fi;
		queue = queue & ~out;
		taken(out)
	}
}

inline wake_chain(i) {
	if
	:: IN(left, i) ->
		lock(cl[i]);
		if
#if M == M_OTHER_WORD
		:: atomic { chain[i] ->
#else
		:: atomic { chain[i] && caddress[i] == 0 ->
#endif
				assert(caddress[i] == 0);
				out = chain[i];
				taken(out);
				chain[i] = 0;
				epoch[i]++
			};
#if M == M_CLEAR_LATE
			unlock(cl[i]);
			bits = bits & ~BIT(i);
#else
			atomic { bits = bits & ~BIT(i); unlock(cl[i]) };
#endif
			make_ready(out)
		:: else -> unlock(cl[i])
		fi
	:: else
	fi
}

/* wake(&word[0], INT_MAX) */
proctype WakeAll() {
	byte left, j, out, late;
#if M == M_LOOK_FIRST
	left = bits;
	word[0]++;
#else
	word[0]++;
#if M == M_QUEUE_FIRST
	late = !bl && !queue;
#endif
	left = bits;
#endif
	wake_chain(0);
	wake_chain(1);
	left = 0;
	if
#if M == M_QUEUE_FIRST
	:: late
	:: else ->
#else
	:: !bl && !queue               /* two reads, the lock first: slots.pml, mutant 45 */
	:: else ->
#endif
		lock(bl);
		do
		:: take_one(0);
			if
			:: out -> make_ready(out)
			:: else -> break
			fi
		od;
		unlock(bl)
	fi;
	wakers_left--
}

/* wake(&word[0], 1) until none is left */
proctype WakeOne() {
	byte left, j, out, late;
	word[0]++;
	do
	:: lock(bl);
#if M != M_NO_FOLD
		if :: bits -> fold() :: else fi;
#endif
		take_one(0);
		unlock(bl);
		if
		:: out -> make_ready(out)
		:: else -> break
		fi
	od;
	wakers_left--
}

/* wake(&word[0], 1) */
proctype WakeOnce() {
	byte left, j, out, late;
	lock(bl);
	if :: bits -> fold() :: else fi;
	take_one(0);
	unlock(bl);
	if :: out -> make_ready(out) :: else fi;
	wakers_left--
}

/* Requeue: moves all waiters of word 0 to word 1. */
proctype Move() {
	byte left, j, out, late;
	lock(bl);
	fold();
	atomic { qaddress = qaddress | queue; unlock(bl); wakers_left-- }
}

/* Takes thread t out of its queue or chain. Post: got: t was there, and the caller owns it. */
inline dequeue(t, got) {
	got = 0;
	do
	:: c = tchain[t];
		if
		:: c ->
			lock(cl[c - 1]);
			here = (tchain[t] == c);
#if M != M_NO_EPOCH
			here = here && tepoch[t] == epoch[c - 1];
#endif
#if M != M_NO_SECOND
			here = here && tchain[t] == c;
#endif
			if
			:: here ->
				atomic {
					assert(waits[t]);
					assert(IN(chain[c - 1], t));
					waits[t] = 0;
					chain[c - 1] = chain[c - 1] & ~BIT(t);
					tchain[t] = 0
				};
				if :: !chain[c - 1] -> bits = bits & ~BIT(c - 1) :: else fi;
				got = 1
			:: else
			fi;
			unlock(cl[c - 1]);
			if
			:: got || tchain[t] == c -> break
			:: else
			fi
		:: else ->
			if
			:: tqueue[t] ->
				lock(bl);
				atomic {
					if
					:: tqueue[t] ->
						assert(waits[t]);
						waits[t] = 0;
						queue = queue & ~BIT(t);
						tqueue[t] = 0;
						got = 1
					:: else
					fi
				};
				unlock(bl);
				if :: got -> break :: else fi
			:: else -> break
			fi
		fi
	od;
	c = 0; here = 0
}

/* Sends a signal to any thread. A thread that is in no queue sees it later. */
proctype Signal() {
	byte c; bit here, got; byte t;
	if
	:: t = 0
	:: t = 1
#if N > 2
	:: t = 2
#endif
	fi;
	pending[t] = 1;
	dequeue(t, got);
	if
	:: got -> atomic { ready = ready | BIT(t); got = 0 }
	:: else
	fi;
	signals_left--
}

proctype Thread(byte me) {
	byte n, c, i, value; bit here, got, first, a;
	do
	:: n == R -> break
	:: n < R ->
		n++;
		if :: a = 0 :: SIG > 0 -> a = 1 fi;
again:		value = word[a];
		if
		:: a == 0 && value >= n -> goto next
		:: else
		fi;
		if                             /* any slot, or the bucket's queue */
		:: i = 0; lock(cl[0]); goto join
		:: i = 1; lock(cl[1]); goto join
		:: goto plain
		fi;
join:		if
		:: chain[i] && caddress[i] != a -> unlock(cl[i]); goto plain
		:: else
		fi;
		first = !chain[i];
#if M == M_COMPARE_FIRST
		got = (word[a] != value);
#endif
		if :: first -> bits = bits | BIT(i) :: else fi;
#if M != M_COMPARE_FIRST
		got = (word[a] != value);
#endif
		if
		:: got ->
#if M == M_CLEAR_ALWAYS
			bits = bits & ~BIT(i);
#else
			if :: first -> bits = bits & ~BIT(i) :: else fi;
#endif
			atomic { unlock(cl[i]); got = 0; first = 0; i = 0; goto again }
		:: else
		fi;
		tepoch[me] = epoch[i];
		atomic {
			caddress[i] = a; chain[i] = chain[i] | BIT(me);
			waits[me] = 1; tchain[me] = 1 + i; first = 0
		};
		unlock(cl[i]);
		goto queued;
plain:		lock(bl);
		if
		:: word[a] != value -> atomic { unlock(bl); goto again }
		:: else
		fi;
		atomic {
			waits[me] = 1; tqueue[me] = 1; queue = queue | BIT(me);
			qaddress = (a -> qaddress | BIT(me) : qaddress & ~BIT(me))
		};
		unlock(bl);
queued:
#if M != M_NO_LOOK
		if
		:: pending[me] -> dequeue(me, got)
		:: else
		fi;
#endif
		if
		:: got -> atomic { pending[me] = 0; got = 0; goto next }
		:: else ->
			atomic { IN(ready, me) -> assert(!waits[me]); ready = ready & ~BIT(me) }
		fi;
		tchain[me] = 0;                /* wakers of chains leave it set */
		if
		:: pending[me] || a -> pending[me] = 0
		:: else -> i = 0; goto again
		fi;
next:		atomic { a = 0; i = 0; value = 0 }
	od;
	finished++
}

/* Sends, at the end, a signal to each thread that waits on word 1 without one. */
#define LEFT(t) (waits[t] && !pending[t] && (IN(queue, t) && IN(qaddress, t) || \
                 tchain[t] && IN(chain[tchain[t] - 1], t) && caddress[tchain[t] - 1]))
proctype Last() {
	byte c; bit here, got; byte t;
	do
	:: atomic { wakers_left == 0 && signals_left == 0 && LEFT(0) -> t = 0; pending[0] = 1 };
		dequeue(t, got);
		if :: got -> atomic { ready = ready | BIT(t); got = 0 } :: else fi
	:: atomic { wakers_left == 0 && signals_left == 0 && LEFT(1) -> t = 1; pending[1] = 1 };
		dequeue(t, got);
		if :: got -> atomic { ready = ready | BIT(t); got = 0 } :: else fi
#if N > 2
	:: atomic { wakers_left == 0 && signals_left == 0 && LEFT(2) -> t = 2; pending[2] = 1 };
		dequeue(t, got);
		if :: got -> atomic { ready = ready | BIT(t); got = 0 } :: else fi
#endif
	:: atomic { finished == N -> break }
	od
}

init {
	byte k;
	atomic {
		k = 0; do :: k < N -> run Thread(k); k++ :: else -> break od;
		k = 0; do :: k < ALL -> run WakeAll(); k++ :: else -> break od;
		k = 0; do :: k < ONE -> run WakeOne(); k++ :: else -> break od;
		k = 0; do :: k < ONCE -> run WakeOnce(); k++ :: else -> break od;
		k = 0; do :: k < SIG -> run Signal(); k++ :: else -> break od;
		k = 0; do :: k < MOVE -> run Move(); k++ :: else -> break od;
		if :: SIG || MOVE -> run Last() :: else fi
	}
}
