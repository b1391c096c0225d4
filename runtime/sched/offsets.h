/* SPDX-License-Identifier: MIT
 *
 * Offsets and constants that the assembly uses. sched/thread.c asserts that the offsets match the C
 * structures.
 */
#ifndef LISSOM_OFFSETS_H
#define LISSOM_OFFSETS_H

#define T_IN_RUNTIME 0
#define T_PENDING_WORK 4
#define T_RUNTIME_STACK 8
#define T_USER_RSP 16
#define T_SITE 24
#define T_CONTEXT_RSP 32
#define T_FSBASE 40
#define T_XSAVE 48
#define T_RAISE_MASK 56
#define T_LOOP 64
#define T_CHUNKS 72
#define T_AT_WORK 76
#define T_GSBASE 80
#define T_SELDOM_TURNS 88

#define LOOP_WORKING 0

#define REDIRECT_REAL 0
#define REDIRECT_WHAT 8

#define SITE_SYSCALL 0
#define SITE_DIRECT 8
#define SITE_AFTER 16
#define SITE_SIZE 112

/* struct user_registers, from the stack pointer upwards */
#define R_RAX 0
#define R_RDI 8
#define R_RSI 16
#define R_RDX 24
#define R_R10 32
#define R_R8 40
#define R_R9 48
#define R_RBX 56
#define R_RBP 64
#define R_R12 72
#define R_R13 80
#define R_R14 88
#define R_R15 96
#define R_FLAGS 104
#define R_RSP 112 /* for the unwinder */
#define R_RIP 120 /* for the unwinder: native address after the syscall instruction */
#define R_SIZE 128

/* Kinds of redirected functions (patch_redirect.what): omp/functions.c says what they mean. */
#define OMP_START 1
#define OMP_START_ALONE 2
#define OMP_NEXT 3
#define OMP_NEXT_ORDERED 4
#define OMP_END 5
#define OMP_TEAM 0x40 /* functions that set the size of a team */
#define OMP_PARALLEL 0x41
#define OMP_DISPATCH 0x101
#define OMP_DISPATCH_INIT 0x102
#define OMP_DOACROSS 0x103
#define OMP_DOACROSS_END 0x104
#define OMP_PUSH_THREADS 0x141
#define OMP_FORK 0x142
#define OMP_SET_THREADS 0xff43 /* in every layer */

/* Actions that lissom_syscall returns to switch.S. */
#define ACTION_RETURN 0 /* return to the program with regs->rax */
#define ACTION_DIRECT 1 /* make the call at the stub; nothing afterwards */
#define ACTION_CALL 2   /* make the call on the user's stack, then lissom_syscall_done */
/* as RETURN, but first restore T->raise_mask on the user's stack: a signal is pending */
#define ACTION_RAISE 3
#define ACTION_RESTART 4    /* as RAISE, then repeat the call */
#define ACTION_RAISE_CALL 5 /* as RAISE, then as CALL */

#endif
