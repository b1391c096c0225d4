/* SPDX-License-Identifier: MIT
 *
 * System calls in every relevant shape, as a library of its own. Each function is entered by jump
 * with registers that the test chooses, and leaves by ret. Call number 110 is getppid: it takes no
 * arguments and always returns the same value.
 *
 * The table `shapes` holds the expected result for each function: the offset of its site, and the
 * expected window as offset and length. Length 0: the site is left alone. Offsets are 32 bits wide,
 * since a 64-bit address anywhere in the object would count as a jump target.
 *
 */
    .macro begin name
    .text
    .balign 64
    .globl \name
    .protected \name
    .type \name, @function
\name:
    .cfi_startproc
    .endm

    /* site, from and to are labels in the function; from and to delimit the expected window */
    .macro finish name, site, from, to
    .cfi_endproc
    .size \name, .-\name
    shape \name, \site, \from, \to
    .endm

    .macro shape name, site, from, to
    .section .rodata.names, "aMS", @progbits, 1
.Lname_\@: .asciz "\name"
    .section .rodata.shapes, "a"
    .long .Lname_\@ - shapes, \name - shapes, \site - \name, \from - \name, \to - \from
    .endm

    .section .rodata.shapes, "a"
    .balign 16
    .globl shapes
    .type shapes, @object
shapes:

/* --- windows that must be found -------------------------------------------------------------- */

begin mov_imm
11: mov $110, %eax
12: syscall
13: ret
finish mov_imm, 12b, 11b, 13b

/* 0x6006e: only the low 16 bits choose the class, but the whole value is the number (-ENOSYS) */
begin mov_wide
11: mov $0x6006e, %eax
12: syscall
13: ret
finish mov_wide, 12b, 11b, 13b

/* the jump table of another switch, read beyond its end, seems to lead into the middle of the call
 * (as in libc of Debian 11) */
begin table_beyond
    lea 2f(%rip), %rdx
    and $1, %edi
    movslq (%rdx,%rdi,4), %rcx
    add %rdx, %rcx
    mov %r8d, %eax
    notrack jmp *%rcx
10: nop
11: mov $110, %eax
12: syscall
13: ret
    .section .rodata
    .balign 4
2:  .long 10b - 2b, 10b - 2b, 12b + 1 - 2b
    .text
finish table_beyond, 12b, 11b, 13b

/* a jump table of another function, read beyond its end, seems to lead to the call */
    .text
other_switch:
    .cfi_startproc
    lea 2f(%rip), %rdx
    movslq (%rdx,%rdi,4), %rcx
    add %rdx, %rcx
    notrack jmp *%rcx
1:  ret
    .cfi_endproc
    .section .rodata
    .balign 4
2:  .long 1b - 2b, other_site - 2b
    .text
begin table_of_other
    nop
11: mov $110, %eax
other_site:
12: syscall
13: ret
finish table_of_other, 12b, 11b, 13b

begin mov_reg
    nop
11: mov %r8d, %eax
12: syscall
13: ret
finish mov_reg, 12b, 11b, 13b

begin three_before
    mov $110, %eax
11: push %rdx
    cld
    cmc
12: syscall
13: jmp *skip_slot(%rip)
    .balign 8
finish three_before, 12b, 11b, 13b

/* the call is a jump target: the window must extend behind it */
begin at_target
    mov $110, %eax
    test %rdi, %rdi
    jz 12f
    nop
12: syscall
    cmp $-4095, %rax
13: jae 1f
    ret
1:  mov $-1, %rax
    ret
finish at_target, 12b, 12b, 13b

begin jcc_last
    mov $110, %eax
    jmp 12f
    ud2
12: syscall
    test %al, %al
    js 1f
13: ret
1:  add $1000, %rax
    ret
finish jcc_last, 12b, 12b, 13b

begin jcc_last_taken
    mov $110, %eax
    jmp 12f
    ud2
12: syscall
    xor %dl, %dl
    jz 1f
13: ud2
1:  add $1000, %rax
    ret
finish jcc_last_taken, 12b, 12b, 13b

begin jmp_last
    mov $110, %eax
    jmp 12f
    ud2
12: syscall
    nop
    jmp 1f
13: ud2
1:  add $1000, %rax
    ret
finish jmp_last, 12b, 12b, 13b

begin rip_before
    nop
11: mov number(%rip), %eax
12: syscall
13: ret
finish rip_before, 12b, 11b, 13b

begin rip_after
    mov $110, %eax
    jmp 12f
    ud2
12: syscall
    add number(%rip), %rax
13: ret
finish rip_after, 12b, 12b, 13b

/* an immediate follows the displacement: rip-relative to the end of the instruction */
begin rip_after_imm
    mov $110, %eax
    jmp 12f
    ud2
12: syscall
    cmpl $0x11223344, number(%rip)
13: setb %dl
    ret
finish rip_after_imm, 12b, 12b, 13b

begin rip_lea_after
    mov $110, %eax
    jmp 12f
    ud2
12: syscall
    lea number(%rip), %rdx
13: mov (%rdx), %rdx
    ret
finish rip_lea_after, 12b, 12b, 13b

begin push_pop
    pop %rdx
11: mov $110, %eax
12: syscall
13: push %rdx
    ret
finish push_pop, 12b, 11b, 13b

begin red_zone
    mov %r8, -8(%rsp)
    mov %r9, -128(%rsp)
    mov %r10d, %eax
    mov %r8d, %eax
11: add -8(%rsp), %r9
12: syscall
13: add -128(%rsp), %r9
    ret
finish red_zone, 12b, 11b, 13b

/* flags set before the window, used after it */
begin flags_through
    cmp %rdi, %rsi
    mov %r8d, %eax
    jmp 11f
    nop
11: adc %rbx, %rbx
12: syscall
13: adc %rdx, %rdx
    ret
finish flags_through, 12b, 11b, 13b

begin pair_first
11: mov $110, %eax
12: syscall
13: mov %rax, %rdx
    mov $110, %eax
    syscall
    ret
finish pair_first, 12b, 11b, 13b

begin pair_second
    mov $110, %eax
    syscall
    mov %rax, %rdx
11: mov $110, %eax
12: syscall
13: ret
finish pair_second, 12b, 11b, 13b

/* a symbol but no unwind data */
    .text
    .balign 64
    .globl symbol_only
    .protected symbol_only
    .type symbol_only, @function
symbol_only:
11: mov $110, %eax
12: syscall
13: ret
    .size symbol_only, .-symbol_only
shape symbol_only, 12b, 11b, 13b

/* the unwind data end before the call, as in glibc's clone; the symbol is local */
    .text
    .balign 64
    .type gap, @function
gap:
    .cfi_startproc
    nop
11: mov $110, %eax
    .cfi_endproc
12: syscall
13: ret
    .size gap, .-gap
shape gap, 12b, 11b, 13b

/* --- sites that must be left alone ------------------------------------------------------------ */

begin no_room
    mov $110, %eax
    jmp 12f
    ud2
12: syscall
13: ret
finish no_room, 12b, 12b, 12b

begin no_room_endbr
    mov %r8d, %eax
    jmp 11f
    nop
11: endbr64
12: syscall
13: ret
finish no_room_endbr, 12b, 12b, 12b

/* jumps lead to the call and to the instruction after it */
begin jumps_both
    mov $110, %eax
    cmp $1, %rdi
    je 12f
    ja 13f
    mov $110, %eax
12: syscall
13: cmp $-4095, %rax
    ret
finish jumps_both, 12b, 12b, 12b

begin loop_inside
    mov $110, %eax
    mov $1, %ecx
    jmp 11f
    nop
11: mov %r8d, %eax
12: syscall
    xor %ecx, %ecx
    loopne 1f
1:  ret
    jrcxz 12b
finish loop_inside, 12b, 12b, 12b

begin jump_table
    lea 2f(%rip), %rdx
    and $1, %edi
    movslq (%rdx,%rdi,4), %rcx
    add %rdx, %rcx
    mov %r8d, %eax
    notrack jmp *%rcx
11: mov $110, %eax
12: syscall
13: ret
    .section .rodata
    .balign 4
2:  .long 11b - 2b, 12b - 2b
    .text
finish jump_table, 12b, 12b, 12b

/* the jump table belongs to the other half of a function that the compiler has split */
begin halves
    mov %r8d, %eax
    and $1, %edi
    jnz halves_cold
11: mov $110, %eax
halves_site:
12: syscall
13: ret
finish halves, 12b, 12b, 12b
    .text
    .balign 64
    .cfi_startproc
    xor %edi, %edi
halves_cold:
    lea 2f(%rip), %rdx
    movslq (%rdx,%rdi,4), %rcx
    add %rdx, %rcx
    notrack jmp *%rcx
    .cfi_endproc
    .section .rodata
    .balign 4
2:  .long halves_site - 2b, halves_site - 2b
    .text

/* a split function: only the jump table leads into the half with the call */
begin half_by_table
    lea 2f(%rip), %rdx
    and $1, %edi
    movslq (%rdx,%rdi,4), %rcx
    add %rdx, %rcx
    mov %r8d, %eax
    notrack jmp *%rcx
finish half_by_table, half_site, half_site, half_site
    .section .rodata
    .balign 4
2:  .long half_entry - 2b, half_site - 2b
    .text
    .balign 16
    .cfi_startproc
    nop
half_entry:
    mov $110, %eax
half_site:
    syscall
    ret
    .cfi_endproc

begin computed_goto
    mov %r8d, %eax
    lea goto_slot(%rip), %rdx
    jmp *(%rdx)
11: mov $110, %eax
12: syscall
13: ret
    .section .data.rel.ro, "aw"
    .balign 8
goto_slot: .quad 12b
    .text
finish computed_goto, 12b, 12b, 12b

begin label_taken
    mov %r8d, %eax
    lea 12f(%rip), %rdx
    jmp *%rdx
11: mov $110, %eax
12: syscall
13: ret
finish label_taken, 12b, 12b, 12b

begin symbol_inside
    mov %r8d, %eax
    jmp 12f
    .balign 8
11: mov $110, %eax
    .globl second_entry
    .protected second_entry
    .type second_entry, @function
second_entry:
12: syscall
13: ret
finish symbol_inside, 12b, 12b, 12b

/* the unwinder jumps to the call if the range before it throws an exception */
begin landing_pad
    .cfi_lsda 0x1b, .Llsda
    mov %r8d, %eax
    mov $110, %eax
1:  nop
11: mov $110, %eax
12: syscall
13: ret
finish landing_pad, 12b, 12b, 12b
    .section .gcc_except_table, "a"
.Llsda:
    .byte 0xff, 0xff, 0x01
    .uleb128 4f - 3f
3:  .uleb128 1b - landing_pad
    .uleb128 1
    .uleb128 12b - landing_pad
    .uleb128 0
4:
    .text

/* a function without symbol and unwind data */
    .balign 64
    ud2
undescribed:
11: mov $110, %eax
12: syscall
13: ret
shape undescribed, 12b, 12b, 12b

/* shape that is only patched, never executed */
begin sigreturn
    mov $15, %rax
12: syscall
    nop
finish sigreturn, 12b, 12b, 12b

/* --- the bytes 0F 05 outside of a system call ------------------------------------------------- */

begin constant_inside
    mov $110, %eax
    xor $0x050f050f, %edx
    xor $0x050f050f, %edx
    syscall
    ret
finish constant_inside, constant_inside + 7, constant_inside, constant_inside

    .section .rodata.shapes, "a"
    .long 0, 0, 0, 0, 0

    .data
    .balign 8
number: .quad 110
skip_slot: .quad skip_back
    .text
skip_back:
    pop %rdx
    ret
    .section .note.GNU-stack,"",@progbits
