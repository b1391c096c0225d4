/* SPDX-License-Identifier: MIT
 *
 * Stand-ins for lissom_syscall_entry: rcx = site, r11 free, all other registers as in the program.
 * struct patch_site: direct at 8, after at 16.
 *
 */
    .text
/* Jump back to the stub's own system call. Uses lea, since the flags must survive. */
    .globl entry_direct
    .hidden entry_direct
    .type entry_direct, @function
entry_direct:
    movq entry_count(%rip), %r11
    leaq 1(%r11), %r11
    movq %r11, entry_count(%rip)
    jmp *8(%rcx)
    .size entry_direct, .-entry_direct

/* Issue the system call here and return behind the stub's. Only for a single thread, since the site
 * is kept in a variable. */
    .globl entry_emulate
    .hidden entry_emulate
    .type entry_emulate, @function
entry_emulate:
    movq %rcx, saved_site(%rip)
    movq entry_count(%rip), %r11
    leaq 1(%r11), %r11
    movq %r11, entry_count(%rip)
    syscall
    movq saved_site(%rip), %rcx
    jmp *16(%rcx)
    .size entry_emulate, .-entry_emulate

    .bss
    .balign 8
saved_site: .skip 8
    .globl entry_count
    .hidden entry_count
entry_count: .skip 8
    .section .note.GNU-stack,"",@progbits
