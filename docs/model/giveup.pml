/* SPDX-License-Identifier: MIT
 *
 * Giving up while threads wait on a futex (runtime/lissom.c: lissom_give_up;
 * runtime/sched/release.c; runtime/futex/futex.c: wait_queued, wake).
 *
 * Waiters wait while the word has its old value. A waker changes the word and wakes. Another thread
 * gives up at any moment. From then on each thread may leave the runtime at its next call: it then
 * waits, or wakes, in the kernel only.
 *
 * Checked: no waiter stays where no waker wakes it. A waiter repeats its check after a spurious
 * wake-up, as programs have to do.
 */
#ifndef W
#define W 2             /* waiters */
#endif
#ifndef ROUNDS
#define ROUNDS 2        /* changes of the word */
#endif
#ifndef M
/* Mutants:
 *   1 `foreign` is set after `native`
 *   2 the waiter does not check `native` under the lock
 *   3 the waiter checks `native` before it takes the lock
 *   4 the queue is emptied before `native` is set
 *   5 the waker does not check `foreign`
 */
#define M 0
#endif

bool native = false;
byte foreign = 0;       /* futex_foreign_waiters */
byte word = 0;
bool locked = false;    /* bucket.lock */
byte queued = 0;        /* number of waiters in the bucket's queue */
bool in_queue[W];       /* the bucket's queue */
bool in_kernel[W];
byte kernel_count = 0;  /* bucket.kernel_waiters; not used here */
bool ready[W];

inline lock() { atomic { !locked -> locked = true } }
inline unlock() { locked = false }

inline wake_queue() {
	lock();
	for (i : 0 .. W - 1) {
		if
		:: in_queue[i] -> in_queue[i] = false; queued--; ready[i] = true
		:: else
		fi
	};
	unlock()
}
inline wake_kernel() { atomic { for (i : 0 .. W - 1) { in_kernel[i] = false } } }

proctype waiter(byte me) {
	byte seen = 0;
	bool late;
	do
	:: seen == ROUNDS -> break
	:: word != seen -> seen = word
	:: else ->
		if
		:: native ->            /* released, or about to be: the kernel compares and sleeps */
			atomic { if :: word == seen -> in_kernel[me] = true :: else fi };
			!in_kernel[me]
		:: !native || M ->
			late = native;
			lock();
#if M != 2 && M != 3
			late = native;
#endif
#if M == 2
			late = false;
#endif
			if
			:: word != seen || late -> unlock()
			:: else ->
				queued++; in_queue[me] = true; unlock(); ready[me]; ready[me] = false
			fi
		fi
	od
}

proctype waker() {
	byte n = 0, i = 0;
	bool held;
	do
	:: n == ROUNDS -> break
	:: else ->
		n++;
		word = n;
		if
		:: native -> wake_kernel()      /* released */
		:: true ->                      /* it may have entered the runtime before */
			held = locked;
			if :: held || queued > 0 -> wake_queue() :: else fi;
			if
#if M != 5
			:: foreign > 0 -> wake_kernel()
#endif
			:: else
			fi
		fi
	od
}

active proctype gives_up() {
	byte i = 0;
#if M == 1
	native = true;
	foreign = 1;
	wake_queue()
#else
#if M == 4
	foreign = 1;
	wake_queue();
	native = true
#else
	foreign = 1;
	native = true;
	wake_queue()
#endif
#endif
}

init {
	byte i = 0;
	atomic {
		for (i : 0 .. W - 1) { run waiter(i) };
		run waker()
	}
}
