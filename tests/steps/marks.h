// Marks in the program: numbered nops that steps.c recognizes when it steps over them.
#ifndef MARKS_H
#define MARKS_H
#define MARK_NOP 0x841f0fu // nopl disp32(%rax,%rax): 0f 1f 84 00, and the number as disp32
#define MARK_BASE 0x4c530000u
enum mark { BEFORE_WAIT = 1, AFTER_WAIT, BEFORE_WAKE, AFTER_WAKE, MARKS };
#define MARK(name) \
    __asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0x00\n" \
                     ".long %c0" \
                     : \
                     : "i"(MARK_BASE + name) \
                     : "memory")
#endif
