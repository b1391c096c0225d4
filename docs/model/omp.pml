/* SPDX-License-Identifier: MIT
 *
 * Malleable loops (docs/omp.md): N threads take CHUNKS chunks of a loop for which TARGET are to work, TWICE: and then of the next one, without a barrier.
 * Checked: nobody is left waiting, without the monitor's help (an invalid end state); who begins to wait leaves enough others at work.
 *
 * BLK: the first chunk ends only when another one has been begun; its thread blocks for that. END: the thread of the first chunk ends in the middle of it.
 * CHG: the target changes once. M: a mutant.
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
byte taken = 0;       /* chunks, of both loops: one after the other */
byte begun = 0;

/* Bumps the word, and takes n out of the queue. */
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
	/* asks, or asks again */
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
	/* the library's own function; the loops end at CHUNKS and at twice as many */
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
