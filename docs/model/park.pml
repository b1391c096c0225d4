/* SPDX-License-Identifier: MIT
 *
 * Parking under `lissom sched` (bpf/scx_park.bpf.h, runtime/sched/carrier.c: carrier_sleep_attached, grant).
 *
 * One thread waits, on its word, as long as nobody grants it a slot; another one grants it. The waiter parks by a call of the scheduler, which may end the parking for
 * no reason at any time (its bounds, or a scheduler that comes, goes, or is another one: then the call does nothing and comes back), and then sleeps in the kernel.
 * The granter looks at what the word was: by that it wakes a sleeper or calls the scheduler.
 *
 * Checked: whoever was granted runs again (no deadlock: a waiter that stays parked or asleep for good is an invalid end state), and nobody is taken for granted who
 * was not. The bounds are left out, unless AGES=1: the protocol does not live by them.
 */
#ifndef ROUNDS
#define ROUNDS 3
#endif
#ifndef AGES
#define AGES 0
#endif
#ifndef M
#define M 0 /* mutants: 1 who comes too early to wake tells nobody, 2 who wakes calls before it grants, 3 an insertion does not wait for the enqueue, 4 who wakes
             * looks once, 5 who was told parks all the same, 6 a scheduler begins with nobody told */
#endif

mtype = { ATTACHED, ASLEEP, GRANTED, PARKED };

mtype word = ATTACHED;
bool there = true;      /* the scheduler */
mtype:flag = { NOT, PARK, TOLD };
mtype:flag parked[2];     /* enum parking, of this scheduler and of the next; one that comes does not know who was woken before, so all begin as TOLD */
/* The waiter, to the kernel: ops_state. */
#define RUNS 0
#define QUEUEING 1      /* enqueue is looking at it: who wants to insert it waits */
#define KEPT 2          /* it stands in no queue, and runs again if it is inserted */
byte state = RUNS;
bool inserted = false;
byte ends = 0;          /* of the scheduler: all threads run again */
bool in_futex = false;
byte grants = 0, resumed = 0;

/* sched_yield(SCX_PARK, 1, ...) by the waiter */
inline call_park()
{
    if
    :: atomic { there -> now = ends };
        atomic {                                    /* begins_parking: a compare-and-swap */
            if
            :: parked[now] == NOT -> parked[now] = PARK
            :: else
            fi
        }
        if
        :: parked[now] == TOLD && M != 5 -> parked[now] = NOT
        :: parked[now] == TOLD && M == 5 -> parked[now] = PARK
        :: else
        fi;
        state = QUEUEING;
        if
        :: parked[now] == PARK -> atomic { state = KEPT; inserted = false };
            if
            :: inserted
            :: atomic { AGES && parked[now] == PARK -> parked[now] = NOT }
            :: ends != now
            fi
        :: else
        fi;
        atomic { state = RUNS; inserted = false }
    :: !there
    fi
}

/* sched_yield(SCX_PARK, 0, waiter) by the granter, and the dispatch that follows it */
inline call_wake()
{
    if
    :: atomic { there -> its = ends };
        atomic { was = parked[its] == PARK; if :: was -> parked[its] = NOT :: else fi };      /* wakes: compare-and-swaps */
        if
        :: !was && M != 1 ->
            atomic { was = parked[its] == PARK; if :: parked[its] == NOT -> parked[its] = TOLD :: else fi };
            if
            :: was && M != 4 -> atomic { was = parked[its] == PARK; if :: was -> parked[its] = NOT :: else fi }
            :: else -> was = false
            fi
        :: else
        fi;
        if
        :: was ->
            if
            :: M == 3
            :: M != 3 && state != QUEUEING
            fi;
            atomic {
                if
                :: state == KEPT -> inserted = true
                :: else                             /* disregarded: it runs, or enqueue will find the flag clear */
                fi
            }
        :: else
        fi
    :: else
    fi
}

init { atomic { parked[0] = TOLD; parked[1] = (M == 6 -> NOT : TOLD); run waiter(); run granter(); run administrator() } }

proctype waiter()
{
    byte now;
    do
    :: resumed < ROUNDS ->
        atomic {
            if
            :: word == ATTACHED -> word = PARKED
            :: else
            fi
        }
        if
        :: word == PARKED -> call_park();
            atomic {
                if
                :: word == PARKED -> word = ASLEEP
                :: else
                fi
            }
        :: else
        fi;
        do
        :: atomic { word == ASLEEP -> in_futex = true };  /* FUTEX_WAIT looks at the word */
            !in_futex
        :: word != ASLEEP -> break
        od;
        assert(word == GRANTED);
        word = ATTACHED;
        resumed++
    :: else -> break
    od
}

proctype granter()
{
    mtype a;
    bool was;
    byte its;
    do
    :: grants < ROUNDS ->
        resumed == grants;                          /* one grant for each wait */
        /* the waiter may be anywhere on its way to sleep */
        if
        :: M == 2 && word == PARKED -> call_wake()
        :: M == 2 && word != PARKED
        :: M != 2
        fi;
        atomic { a = word; word = GRANTED };
        grants++;
        if
        :: a == ASLEEP -> in_futex = false          /* FUTEX_WAKE */
        :: a == PARKED && M != 2 -> call_wake()
        :: else
        fi
    :: else -> break
    od
}

/* `lissom sched stop`, and another start */
proctype administrator()
{
    atomic { there = false; ends++ };
    if
    :: there = true
    :: skip
    fi
}
