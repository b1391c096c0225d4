/* SPDX-License-Identifier: MIT
 *
 * Giving up while threads wait on a futex (runtime/lissom.c: lissom_give_up;
 * runtime/sched/release.c; runtime/futex/futex.c: wait_queued, wake).
 *
 * Waiters wait while the word is what it was. A waker changes the word and wakes. Another thread gives up at any moment. Each of
 * them may leave the runtime at its next call from then on: it then waits, or wakes, in the kernel only.
 *
 * Checked: no waiter stays where nobody wakes it, and none counts twice. A wait that ends for no reason is looked at again, as
 * programs have to do.
 */
#ifndef W
#define W 2             /* waiters */
#endif
#ifndef ROUNDS
#define ROUNDS 2        /* changes of the word */
#endif
#ifndef M
#define M 0 /* mutants: 1 foreign is counted after native, 2 the waiter does not look at native under the lock, 3 it looks before it takes the lock,
             * 4 the queue is emptied before native, 5 the fast path does not look at foreign */
#endif

bool native = false;
byte foreign = 0;       /* futex_foreign_waiters */
byte word = 0;
bool locked = false;    /* the bucket's lock, ... */
byte queued = 0;        /* ... its count of waiters, ... */
bool in_queue[W];       /* ... and its queue */
bool in_kernel[W];
byte kernel_count = 0;  /* the bucket's count of those who wait in the kernel by way of the runtime */
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
		:: native ->            /* released, or on its way: the kernel compares and sleeps in one step */
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
		:: true ->                      /* it may have come in before */
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
