/* SPDX-License-Identifier: MIT
 *
 * Malleable loops (docs/design/malleable-openmp.md): N threads take CHUNKS chunks of a loop, of
 * which TARGET threads should work.
 *
 * Checked: no thread stays waiting, without the monitor's help (otherwise: an invalid end state).
 * A thread that begins to wait leaves enough others at work.
 *
 * TWICE=1: a second loop follows, without a barrier.
 * BLK=1: the first chunk ends only after another has begun; its thread blocks for that.
 * END=1: the thread of the first chunk ends in the middle of it.
 * CHG: the target changes once: 1: grows, 2: shrinks. M: mutant.
 */
#ifndef N
#define N 3
#endif
#ifndef TARGET
#define TARGET 1
#endif
#ifndef CHUNKS
#define CHUNKS 3
#endif
#ifndef TWICE
#define TWICE 0
#endif
#ifndef BLK
#define BLK 0
#endif
#ifndef END
#define END 0
#endif
#ifndef CHG
#define CHG 0
#endif
#ifndef M
#define M 0
#endif

byte target = TARGET;
byte working = 0, waiters = 0, word = 0;
bit queued[N];        /* in the futex queue of the loop's word */
byte taken = 0;       /* number of chunks taken, of both loops in turn */
byte begun = 0;

/* Lets n waiters go: changes the word and takes them out of the queue. */
inline let_go(n) {
	if :: M != 2 -> word++ :: else fi;
	atomic {
		k = 0; left = n;
		do
		:: k < N && left > 0 -> if :: queued[k] -> queued[k] = 0; left-- :: else fi; k++
		:: else -> break
		od;
		k = 0; left = 0
	}
}

inline wait() {
	seen = word;
	if :: M != 1 -> waiters++ :: else fi;
	if
	:: working >= target ->
		if :: M == 1 -> waiters++ :: else fi;
		atomic { if :: word == seen -> queued[me] = 1 :: else fi }
		!queued[me];
		if :: M == 1 -> waiters-- :: else fi
	:: else
	fi;
	if :: M != 1 -> waiters-- :: else fi;
	seen = 0
}

inline blocks() {
	working--;
	if :: waiters > 0 && M != 4 -> let_go(1) :: else fi
}

proctype thread(byte me) {
	byte k, left, seen, round = 0;
	bit at_work, chunk, done;
loop:
	/* The thread asks for a chunk. */
	if
	:: !at_work && working >= target -> wait()
	:: !at_work && working < target
	:: at_work ->
		done = 0;
		if
		:: atomic { working > target -> working--; assert(working >= target); at_work = 0; done = 1 }
		:: working < target && waiters > 0 -> let_go(target - working)
		:: !(working > target) && !(working < target && waiters > 0)
		fi;
		if :: done -> done = 0; wait() :: else fi
	fi;
	/* The library's own function. The loops end at CHUNKS and at 2 * CHUNKS. */
	atomic {
		chunk = taken < CHUNKS * (round + 1);
		if :: chunk -> taken++; begun = taken :: else fi;
		seen = taken
	}
	if
	:: chunk ->
		if
		:: !at_work -> at_work = 1; working++
		:: else
		fi;
		if
		:: seen == 1 && BLK -> blocks(); begun > 1; working++
		:: seen == 1 && END -> at_work = 0; working--; if :: waiters > 0 && M != 5 -> let_go(1) :: else fi; goto gone
		:: else
		fi;
		seen = 0;
		goto loop
	:: else ->
		seen = 0;
		if :: at_work -> at_work = 0; working-- :: else fi;
		if :: waiters > 0 && M != 3 -> let_go(N) :: else fi;
		if :: TWICE && round == 0 -> round = 1; goto loop :: else fi
	fi;
gone:
	skip
}

active proctype changes() {
	if
	:: CHG == 1 -> target = TARGET + 1
	:: CHG == 2 && TARGET > 1 -> target = TARGET - 1
	:: else
	fi
}

init {
	byte i = 0;
	atomic {
		do
		:: i < N -> run thread(i); i++
		:: else -> break
		od
	}
}
