# SPDX-License-Identifier: MIT
"""gdb commands for programs under lissom, running or in a core file.

An application thread that waits in user space has no kernel thread of its own to look at: its registers are on its runtime
stack. `lissom threads` lists all application threads, `lissom bt` shows where they are.
"""

import gdb
import gdb.unwinder

# In the order in which lissom_switch (sched/context.S) pushes them; the return address follows.
PUSHED = ("r15", "r14", "r13", "r12", "rbx", "rbp")
ATTACHED = 0, 1, 2, 4  # enum attach of sched/thread.h: a kernel thread has it. 3 is DETACHED
# enum spin_site_state of spin/site.h: all but SITE_UNUSED and SITE_GONE. A debugger may have put a
# jump back into a site that is off.
WITH_CODE = 1, 2, 4, 5
JUMP = b"\xe9"


def variable(name, struct):
    """The runtime's static variable, an array of `struct` or a pointer to it. None: there is none.
    The runtime is compiled as one unit, so other symbols of that name are optimized out."""
    for symbol in gdb.lookup_static_symbols(name):
        if not symbol.is_variable:
            continue
        if symbol.type.code not in (gdb.TYPE_CODE_PTR, gdb.TYPE_CODE_ARRAY):
            continue
        if symbol.type.target().name == struct and not symbol.value().is_optimized_out:
            return symbol.value()
    return None


class FrameId:
    def __init__(self, sp, pc):
        self.sp = sp
        self.pc = pc


class Carried(gdb.unwinder.Unwinder):
    """Puts a thread that is not on a kernel thread behind the innermost frame of the selected one."""

    def __init__(self):
        super().__init__("lissom")
        self.registers = None
        self.innermost = None

    def show(self, registers):
        frame = gdb.newest_frame()
        self.innermost = (int(frame.read_register("rsp")), int(frame.read_register("rip")))
        self.registers = registers
        gdb.invalidate_cached_frames()

    def hide(self):
        self.registers = None
        gdb.invalidate_cached_frames()

    def __call__(self, pending):
        if self.registers is None:
            return None
        sp, pc = pending.read_register("rsp"), pending.read_register("rip")
        if (int(sp), int(pc) & (1 << 64) - 1) != self.innermost:
            return None
        # A low stack address: gdb considers a frame broken if its stack is above the next one's.
        info = pending.create_unwind_info(FrameId(gdb.Value(8).cast(sp.type), pc))
        kind = gdb.lookup_type("unsigned long")
        for name, value in self.registers.items():
            info.add_saved_register(name, gdb.Value(value).cast(kind))
        return info


class Lissom:
    def __init__(self):
        self.unwinder = Carried()
        gdb.unwinder.register_unwinder(None, self.unwinder, True)

    @staticmethod
    def threads():
        """Each struct thread that is alive, oldest first."""
        t = variable("all_threads", "thread")
        if t is None:
            raise gdb.GdbError(
                "lissom: this program is not under lissom, or its library (liblissom-*.so) is not there any more"
            )
        found = []
        while int(t):
            if int(t["tid"]) and not int(t["ended"]):
                found.append(t.dereference())
            t = t["all_next"]
        return found[::-1]

    @staticmethod
    def restore_loops():
        """Restore the code of loops: a breakpoint behind a site would redirect its jump."""
        inferior = gdb.selected_inferior()
        if not inferior.pid or inferior.connection is None or inferior.connection.type == "core":
            return
        sites = variable("sites", "spin_site")
        if sites is None:
            return
        first, last = sites.type.range()
        for site in (sites[i] for i in range(first, last + 1)):
            if int(site["state"]) in WITH_CODE:
                at = int(site["address"])
                if inferior.read_memory(at, 1).tobytes() == JUMP:
                    inferior.write_memory(at, bytes([int(site["original"])]))

    @staticmethod
    def is_carried(t):
        """It has a kernel thread at the moment."""
        return int(t["attach"]) in ATTACHED

    @staticmethod
    def registers(t):
        at = int(t["context_rsp"])
        memory = gdb.selected_inferior().read_memory(at, 8 * (len(PUSHED) + 1)).tobytes()
        words = [int.from_bytes(memory[i : i + 8], "little") for i in range(0, len(memory), 8)]
        registers = dict(zip(PUSHED, words))
        registers["rip"] = words[-1]
        registers["rsp"] = at + len(memory)
        return registers

    @staticmethod
    def kernel_thread(tid):
        for thread in gdb.selected_inferior().threads():
            if thread.ptid[1] == tid:
                return thread
        return None

    def state(self, t):
        if not self.is_carried(t):
            return (
                "waits in user space"
                if int(t["bucket"])
                else "ready, parked or about to be switched to"
            )
        carrier = int(t["carrier"]["tid"])
        return "on its kernel thread" if carrier == int(t["tid"]) else f"on kernel thread {carrier}"

    def backtrace(self, t, arguments):
        """The frames of t, as lines."""
        selected = gdb.selected_thread()
        try:
            if self.is_carried(t):
                thread = self.kernel_thread(int(t["carrier"]["tid"]))
                if thread is None:
                    return ["its kernel thread is not there"]
                thread.switch()
                return gdb.execute(f"bt {arguments}", to_string=True).splitlines()
            self.unwinder.show(self.registers(t))
            lines = gdb.execute(f"bt {arguments}", to_string=True).splitlines()
            return [
                line for line in lines if not line.startswith("#0 ")
            ]  # of the selected kernel thread
        finally:
            self.unwinder.hide()
            if selected is not None:
                selected.switch()


lissom = Lissom()


class Prefix(gdb.Command):
    """Look at the application threads of a program under lissom."""

    def __init__(self):
        super().__init__("lissom", gdb.COMMAND_STACK, prefix=True)


class Threads(gdb.Command):
    """List the application threads: their numbers, and whether each has a kernel thread at the moment."""

    def __init__(self):
        super().__init__("lissom threads", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        for t in lissom.threads():
            print(f"{int(t['tid']):>8}  {lissom.state(t)}")


class Backtrace(gdb.Command):
    """Show the frames of application threads.

    lissom bt [TID|all] [ARGUMENTS OF bt]

    Without TID: of all of them. The innermost frames of one that waits are those of lissom's runtime."""

    def __init__(self):
        super().__init__("lissom bt", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        words = gdb.string_to_argv(argument)
        which = words.pop(0) if words and (words[0].isdigit() or words[0] == "all") else "all"
        chosen = [t for t in lissom.threads() if which in ("all", str(int(t["tid"])))]
        if not chosen:
            raise gdb.GdbError(
                f"lissom: no application thread has number {which}; `lissom threads` lists them"
            )
        for t in chosen:
            print(f"\nThread {int(t['tid'])}, {lissom.state(t)}:")
            for line in lissom.backtrace(t, " ".join(words)):
                print(line)


Prefix()
Threads()
Backtrace()

try:
    lissom.restore_loops()
except (gdb.error, AttributeError) as error:
    print(
        f"lissom: breakpoints in loops that wait are not safe: {error} (gdb 12 or newer is needed)"
    )
