/*
 * Part of slots.pml: threads that are gathered on a slot (docs/slots.md, "Gathering").  It is
 * included twice: for the names, and, where dispatch() is known, for the monitor.  kept[s]:
 * slot.kept_until has not passed, or the monitor has not looked since.
 */
#ifndef PASSED_OVER
#if KEEP
bit  kept[S];
byte keep = KEEP;
#define ANYKEPT            (kept[0] || kept[1])
/* A thief that is d slots away may pass slot x over, or find that the time has passed. */
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
