#!/bin/bash
# spin_gdb_behind.sh GDB COMMAND...: attach GDB to a program whose threads spin, with a breakpoint
# on the instruction behind the pause of their loop. The runtime's jump at the pause ends in the
# bytes of that instruction, so the runtime must have restored the loop by then. `lissom gdb` does
# that at once; under gdb alone, the monitor does it within 50 ms of running. After detaching, the
# program must end normally.
. "$(dirname "$0")/gdb_target.sh"
gdb=$1
shift
start "$@"
cat > behind.py <<'PYTHON'
import gdb

pause = int(gdb.parse_and_eval("(long)&spin_here")) + PAUSE
gdb.execute("break spin_caller")


def is_restored():
    return gdb.selected_inferior().read_memory(pause, 1).tobytes()[0] == 0xF3


for _ in range(200 if RUNS_FIRST else 0):
    if is_restored():
        break
    gdb.execute("ignore 1 20")
    gdb.execute("continue")
gdb.execute("delete 1")
print(f"the loop is the program's: {is_restored()}")
gdb.execute(f"break *{pause + 2}")
gdb.execute("ignore 2 20")
gdb.execute("continue")
gdb.execute("delete")
PYTHON
# offset of the pause in spin_here, from the file: memory may have the runtime's jump
read -r start pause < <(objdump -d --disassemble=spin_here "${@: -1}" |
	awk '/<spin_here>:$/ { start = $1 }
		/\tpause *$/ { sub(":", "", $1); print start, $1; exit }')
offset=$((16#$pause - 16#$start))
runs_first=True
[ "$gdb" = gdb ] || runs_first=False
sed -i "1i RUNS_FIRST, PAUSE = $runs_first, $offset" behind.py
for round in 1 2 3; do
	timeout -s KILL 40 $gdb -nx -batch -p "$target" -ex 'source behind.py' -ex detach \
		> gdb.out 2>&1 < /dev/null || fail "gdb ends with $?"
	grep -q "the loop is the program's: True" gdb.out || fail "the loop has a jump"
	grep -q 'Breakpoint 2, ' gdb.out || fail "the breakpoint was not reached"
	sleep 0.2
done
finish spin_gdb_target
echo ok spin_gdb_behind
