/*
 * Part of slots.pml: threads gathered on a slot (docs/design/virtual-blocking.md, "Gathering").
 *
 * slots.pml includes this file twice: for the declarations, and after dispatch() for the monitor.
 * kept[s]: slot.kept_until has not passed, or the monitor has not checked the slot since.
 */
#ifndef PASSED_OVER
#if KEEP
bit  kept[S];
byte keep = KEEP;
#define ANYKEPT            (kept[0] || kept[1])
/* A thief d slots away may skip slot x, or find that slot.kept_until has passed. */
#define PASSED_OVER(x)     (d > 0 && kept[x])
#else
#define ANYKEPT            0
#define PASSED_OVER(x)     0
#endif
#elif KEEPER
proctype Keeper() {
	byte u, old, c, i, j;
end:	do
	:: atomic { ANYKEPT ->
			if :: kept[0] -> i = 0 :: kept[1] -> i = 1 fi;
			kept[i] = 0;
			if
			:: M != M_KEPT_NO_LOOK && rdy[i] != 0 && nidle > 0 ->
				if :: idle[0] -> j = 0 :: idle[1] -> j = 1 fi;
				idle[j] = 0; nidle--; pop(u, i); inop++
			:: else -> i = 0; goto end
			fi
		};
		dispatch(u, j);
		atomic { u = 0; i = 0; j = 0; op_end() }
	od
}
#endif
