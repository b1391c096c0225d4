/* SPDX-License-Identifier: MIT
 *
 * Notice that the process is about to create its second thread. Until then a process needs nothing
 * of the runtime (docs/design/lifecycle.md).
 *
 * libc creates threads by the system call in its functions clone and __clone3. Both are assembly:
 *
 *     mov $number,%eax ; syscall ; test %rax,%rax
 *
 * The first of these instructions is overwritten with a jump to notice.S. Unless the flags of the
 * call ask for a thread, that makes the call unchanged.
 */
#ifndef LISSOM_NOTICE_H
#define LISSOM_NOTICE_H

#include <stdbool.h>
#include <stdint.h>

/* Called once in a process, with all signals blocked, on a stack of 64 KiB. unfit: why the code
 * must not be changed, or cannot be; NULL if it can. */
typedef void notice_function(const char *unfit);

/* Call f before the process creates its second thread. clone: libc's function. has_clone3: libc has
 * __clone3. Returns false if this cannot be arranged: unknown libc, or code that cannot be written.
 * Pre: the process has one thread. */
bool notice_second_thread(uintptr_t clone, bool has_clone3, notice_function *f);

/* Act as if the second thread were created now. Does nothing if f has been called, if nothing was
 * arranged, or in the child of a vfork. for_thread: a thread is about to be created; so the caller
 * is no child of a vfork, if the kernel does not say. */
void notice_now(bool for_thread);

/* Note that the caller is the child of a fork(2), not of a vfork(2). */
void notice_forked(void);

/* Cancel notice_second_thread and restore libc's code: f will not be called. Returns false if
 * nothing was arranged, if f has been called, or in the child of a vfork. Pre: the process has one
 * thread. */
bool notice_never(void);

#endif
