#!/bin/bash
# spin_gdb_behind.sh GDB COMMAND...: attach GDB to a program whose threads spin, with a breakpoint
# on the instruction behind the runtime's jump in their loop. The jump ends in the bytes of that
# instruction, so the runtime must have restored the loop by then. `lissom gdb` does that at once;
# under gdb alone, the monitor does it within 50 ms of running. After detaching, the loop gets its
# jump again, and the program must end normally.
. "$(dirname "$0")/gdb_target.sh"
gdb=$1
shift
start "$@"
cat > behind.py <<'PYTHON'
import time

import gdb

begin = time.monotonic()
gdb.execute("break spin_caller")


def is_restored():
    return gdb.selected_inferior().read_memory(SITE, 1).tobytes()[0] != 0xE9


for _ in range(200 if RUNS_FIRST else 0):
    if is_restored() or time.monotonic() - begin > 20:
        break
    gdb.execute("ignore 1 20")
    gdb.execute("continue")
gdb.execute("delete 1")
print(f"the loop is the program's: {is_restored()}")
gdb.execute(f"break *{BEHIND}")
gdb.execute("ignore 2 20")
gdb.execute("continue")
gdb.execute("delete")
PYTHON
# addresses of the loop's instructions
read -r base _ < <(grep -m 1 -F "${@: -1}" "/proc/$target/maps")
mapfile -t instructions < <(objdump -d --no-show-raw-insn --disassemble=spin_here "${@: -1}" |
	sed -nE 's/^ +([0-9a-f]+):.*/\1/p')
# await_jump: wait until the loop has the runtime's jump. Sets `site` to its address, and `behind`
# to that of the next instruction.
await_jump() {
	local i byte
	for _ in {1..1000}; do
		for i in "${!instructions[@]}"; do
			site=$((16#${base%%-*} + 16#${instructions[i]}))
			byte=$(dd if="/proc/$target/mem" bs=1 skip=$site count=1 2> dd.err |
				od -An -tx1)
			[ "$byte" != " e9" ] || break 2
		done
		sleep 0.02
	done
	[ "$byte" = " e9" ] || fail "the loop has no jump"
	behind=$((16#${base%%-*} + 16#${instructions[i + 1]}))
}
runs_first=True
[ "$gdb" = gdb ] || runs_first=False
for round in 1 2 3; do
	await_jump
	timeout -s KILL 60 $gdb -nx -batch -p "$target" \
		-ex "python RUNS_FIRST, SITE, BEHIND = $runs_first, $site, $behind" \
		-ex 'source behind.py' -ex detach \
		> gdb.out 2>&1 < /dev/null || fail "gdb ends with $?"
	grep -q "the loop is the program's: True" gdb.out || fail "the loop has a jump"
	grep -q 'Breakpoint 2, ' gdb.out || fail "the breakpoint was not reached"
	# A session in which the program does not run
	await_jump
	$gdb -nx -batch -p "$target" -ex detach > gdb.out 2>&1 < /dev/null ||
		fail "gdb ends with $?"
done
await_jump
finish spin_gdb_target
echo ok spin_gdb_behind
