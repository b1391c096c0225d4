/* SPDX-License-Identifier: MIT
 *
 * Parking under `lissom sched` (bpf/scx_park.bpf.h; runtime/sched/carrier.c:
 * carrier_sleep_attached, grant).
 *
 * A waiter waits on its word until a granter grants it a slot. The waiter parks with a call of the
 * scheduler, and then sleeps in the kernel. Parking may end early at any time, because of a bound,
 * or because the scheduler starts, stops or is replaced. In the latter cases the call returns
 * without effect. From the word's old value the granter knows whether to wake a sleeper or to call
 * the scheduler.
 *
 * Checked: a granted waiter runs again (a waiter that stays parked or asleep is an invalid end
 * state), and no waiter continues that was not granted. Bounds on parking are modelled with AGES=1
 * only: the protocol does not depend on them.
 */
#ifndef ROUNDS
#define ROUNDS 3
#endif
#ifndef AGES
#define AGES 0
#endif
#ifndef M
/* Mutants:
 *   1 a wake before the waiter parks leaves no mark
 *   2 the granter calls the scheduler before it grants
 *   3 the insertion does not wait for the enqueue
 *   4 a wake checks the flag once
 *   5 a waiter parks although it is marked as woken
 *   6 a new scheduler begins with NOT
 */
#define M 0
#endif

mtype = { ATTACHED, ASLEEP, GRANTED, PARKED };

mtype word = ATTACHED;
bool there = true;      /* the scheduler runs */
mtype:flag = { NOT, PARK, NOTIFIED };
/* enum parking, of this scheduler and the next. A new scheduler does not know which threads were
 * woken before, so all begin with the mark of a woken thread. */
mtype:flag parked[2];
/* The kernel's state of the waiter (ops_state): */
#define RUNS 0
#define QUEUEING 1      /* in enqueue: an insertion waits */
#define KEPT 2          /* in no queue; runs again when it is inserted */
byte state = RUNS;
bool inserted = false;
byte ends = 0;          /* times that the scheduler ended: all threads then run again */
bool in_futex = false;
byte grants = 0, resumed = 0;

/* The waiter's sched_yield(SCX_PARK, 1, ...). */
inline call_park()
{
    if
    :: atomic { there -> now = ends };
        atomic {                                    /* try_park: compare-and-swap */
            if
            :: parked[now] == NOT -> parked[now] = PARK
            :: else
            fi
        }
        if
        :: parked[now] == NOTIFIED && M != 5 -> parked[now] = NOT
        :: parked[now] == NOTIFIED && M == 5 -> parked[now] = PARK
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

/* The granter's sched_yield(SCX_PARK, 0, waiter), and the dispatch that follows it. */
inline call_wake()
{
    if
    :: atomic { there -> its = ends };
        /* unpark: compare-and-swaps */
        atomic { was = parked[its] == PARK; if :: was -> parked[its] = NOT :: else fi };
        if
        :: !was && M != 1 ->
            atomic { was = parked[its] == PARK; if :: parked[its] == NOT -> parked[its] = NOTIFIED :: else fi };
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
                :: else                     /* ignored: it runs, or enqueue finds the flag clear */
                fi
            }
        :: else
        fi
    :: else
    fi
}

init { atomic { parked[0] = NOTIFIED; parked[1] = (M == 6 -> NOT : NOTIFIED); run waiter(); run granter(); run administrator() } }

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
        :: atomic { word == ASLEEP -> in_futex = true };  /* FUTEX_WAIT compares the word */
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
        /* The waiter may be at any step on its way to sleep. */
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

/* `lissom sched stop`, then perhaps another start. */
proctype administrator()
{
    atomic { there = false; ends++ };
    if
    :: there = true
    :: skip
    fi
}
