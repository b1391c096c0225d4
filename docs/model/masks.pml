/* Signals that the kernel delivers although the program blocks them (docs/design/signals.md,
 * "Masks"). One such signal is sent to the process. The kernel gives it to any thread that does not
 * block it in the kernel: to any but one in sigtimedwait(2), where the kernel has the program's
 * mask.
 *
 * Checked: the signal is handled at most once. When nothing moves any more it has been handled, or
 * it is in the list, every thread blocks it, and none waits for it.
 *
 * A handler runs at once when its thread is outside of the runtime. Under the lock all signals are
 * blocked. Memory is sequentially consistent: where the code has a fence, a mutant swaps the two
 * steps.
 *
 * -D N=threads, R=mask changes or waits of each, M=mutant. run.sh expects an error of each mutant.
 */
#ifndef N
#define N 2
#endif
#ifndef R
#define R 2
#endif
#ifndef M
#define M 0
#endif
#define M_SCAN_FIRST  1 /* hold: searches for a thread before it lists the signal */
#define M_LOOK_FIRST  2 /* unblock: reads the list before it stores the new mask */
#define M_WAITS_LATE  3 /* wait: reads the list before it publishes that it waits */
#define M_NO_LOCK     4 /* take: does not take the lock */
#define M_NO_SCAN     5 /* hold: does not search for a thread that could handle the signal */
#define M_NO_RETURN   6 /* wait: drops signals that are pending after it */

bit blocks[N], waits[N];
bit lock;
byte pending[N];  /* signals pending in the kernel for this thread */
byte listed, handled;

inline take_lock() { atomic { lock == 0 -> lock = 1 } }

/* mask_holds: the handler of a thread lists a signal that the program blocks there. It forwards the
 * signal instead to a thread that does not block it or waits for it. */
inline hold() {
	take_lock();
#if M != M_SCAN_FIRST
	listed++;
#endif
	i = 0;
	do
	:: M != M_NO_SCAN && i < N ->
		if
		:: (!blocks[i] || waits[i]) ->
#if M != M_SCAN_FIRST
			listed--;
#endif
			pending[i]++;
			break
		:: else -> i++
		fi
	:: M == M_NO_SCAN || i == N ->
#if M == M_SCAN_FIRST
		listed++;
#endif
		break
	od;
	lock = 0
}

/* Makes a listed signal pending for `me`. */
inline take() {
	if
	:: listed > 0 ->
#if M == M_NO_LOCK
		pending[me]++;
		listed--
#else
		take_lock();
		if
		:: listed > 0 -> listed--; pending[me]++
		:: else
		fi;
		lock = 0
#endif
	:: else
	fi
}

proctype Thread(byte me) {
	byte i, n;
	do
	:: pending[me] > 0 ->                             /* its handler */
		pending[me]--;
		if
		:: !blocks[me] -> handled++
		:: else -> hold()
		fi
	:: n < R ->
		n++;
		if
		:: blocks[me] = 1
		:: blocks[me] ->
#if M == M_LOOK_FIRST
			take(); blocks[me] = 0
#else
			blocks[me] = 0; take()
#endif
		:: blocks[me] ->                              /* sigtimedwait */
#if M == M_WAITS_LATE
			take(); waits[me] = 1;
#else
			waits[me] = 1; take();
#endif
			if
			:: true ->                    /* until a signal arrives, perhaps for ever */
end_wait:			atomic { pending[me] > 0 -> pending[me]-- };
				handled++
			:: true                       /* a timeout, or another signal */
			fi;
			waits[me] = 0;
#if M == M_NO_RETURN
			pending[me] = 0
#endif
		fi
	:: n == R && pending[me] == 0 ->
end_:		if
		:: pending[me] > 0
		fi
	od
}

init {
	byte i;
	atomic {
		for (i : 0 .. N - 1) { blocks[i] = 1; run Thread(i) };
		pending[0] = 1
	}
	timeout;
	assert(handled + listed == 1);
	assert(lock == 0);
	for (i : 0 .. N - 1) { assert(listed == 0 || (blocks[i] && !waits[i])) }
}
