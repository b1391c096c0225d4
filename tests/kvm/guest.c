// SPDX-License-Identifier: MIT
/* Virtual machines of a few hundred bytes, whose vCPUs contend for a ticket lock. The waiting loop
 * contains PAUSE, as pause-loop exiting expects. With --hlt, vCPUs sleep in between by HLT with a
 * timer of their own, for halt polling.
 *
 *     gcc -std=gnu11 -O2 -Wall -Wextra -Werror -pthread -o guest tests/kvm/guest.c
 *
 * Prints a line for each VM and one for all. Exit code: 0; 1 if something failed or two vCPUs held
 * the lock at once; 2 for wrong arguments. */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/kvm.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MEMORY = 2 << 20, MAX_VCPUS = 64, VECTOR = 0x40, STOP_PORT = 0x10 };

/* Layout of a guest's memory, which is identity-mapped by one large page. */
enum {
    GDT = 0x1000,
    IDT = 0x2000,
    PML4 = 0x3000,
    PDPT = 0x4000,
    PD = 0x5000,
    CODE = 0x6000,
    SHARED = 0x8000,
    STACKS = 0x10000
};

/* Located at SHARED. The code below relies on the offsets. Data written by different vCPUs are in
 * different cache lines. */
struct shared {
    _Atomic uint32_t next;
    char pad0[60];
    _Atomic uint32_t serving;
    char pad1[60];
    uint64_t inside; /* written in the critical section only */
    char pad2[56];
    _Atomic uint32_t stop;
    uint32_t section, outside; /* iterations of a loop */
    uint32_t sleep;            /* ns; 0: never */
    uint32_t burst;            /* acquisitions between two sleeps */
    char pad3[44];
    struct {
        uint64_t acquired, pauses, slept;
        char pad[40];
    } vcpu[MAX_VCPUS];
};
_Static_assert(sizeof(struct shared) == 256 + 64 * MAX_VCPUS, "the guest's code counts on it");

/* Guest code. rdi: struct shared. rbx: this vCPU's counters. The timer is that of the x2APIC, in
 * one-shot mode; KVM's APIC counts ns. */
extern const char guest_begin[], guest_timer[], guest_end[];
__asm__(".pushsection .rodata\n"
        "guest_begin:\n"
        "    mov $0x80f, %ecx\n" /* enable APIC, spurious vector 0xff */
        "    mov $0x1ff, %eax\n"
        "    xor %edx, %edx\n"
        "    wrmsr\n"
        "    mov $0x83e, %ecx\n" /* divide by 1 */
        "    mov $0xb, %eax\n"
        "    wrmsr\n"
        "    mov $0x832, %ecx\n" /* one shot */
        "    mov $0x40, %eax\n"
        "    wrmsr\n"
        "    mov 208(%rdi), %r9d\n"
        "1:  cmpl $0, 192(%rdi)\n"
        "    jne 9f\n"
        "    mov $1, %eax\n"
        "    lock xadd %eax, (%rdi)\n"
        "2:  cmp %eax, 64(%rdi)\n"
        "    je 3f\n"
        "    incq 8(%rbx)\n"
        "    pause\n"
        "    jmp 2b\n"
        "3:  mov 196(%rdi), %ecx\n"
        "4:  incq 128(%rdi)\n"
        "    dec %ecx\n"
        "    jnz 4b\n"
        "    incl 64(%rdi)\n" /* written only by the lock's owner */
        "    incq (%rbx)\n"
        "    mov 200(%rdi), %ecx\n"
        "5:  dec %ecx\n"
        "    jns 5b\n"
        "    cmpl $0, 204(%rdi)\n"
        "    je 1b\n"
        "    dec %r9d\n"
        "    jg 1b\n"
        "    mov 208(%rdi), %r9d\n"
        "    mov $0x838, %ecx\n"
        "    mov 204(%rdi), %eax\n"
        "    xor %edx, %edx\n"
        "    wrmsr\n"
        "    incq 16(%rbx)\n"
        "    sti\n" /* sti takes effect after HLT: no earlier timer interrupt */
        "    hlt\n"
        "    cli\n"
        "    jmp 1b\n"
        "9:  out %al, $0x10\n"
        "    jmp 9b\n"
        "guest_timer:\n"
        "    push %rax\n"
        "    push %rcx\n"
        "    push %rdx\n"
        "    mov $0x80b, %ecx\n" /* end of interrupt */
        "    xor %eax, %eax\n"
        "    xor %edx, %edx\n"
        "    wrmsr\n"
        "    pop %rdx\n"
        "    pop %rcx\n"
        "    pop %rax\n"
        "    iretq\n"
        "guest_end:\n"
        ".popsection\n");

static struct {
    long vms, vcpus, seconds, section, outside, hlt, burst;
    bool one_process;
} options = {.vms = 1, .vcpus = 2, .seconds = 5, .section = 100, .outside = 100, .burst = 1};

/* Result that a VM's process passes to the main process. */
struct result {
    uint64_t acquired, pauses, slept;
    double seconds;
    bool done, broken;
};
static struct result *results;

static volatile sig_atomic_t asked_to_stop;

static void stop(int signal) {
    (void)signal;
    asked_to_stop = 1;
}

struct vcpu {
    int fd;
    struct kvm_run *run;
    pthread_t thread;
    int index, number;
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static int checked(int result, const char *what) {
    if (result < 0) err(1, "%s", what);
    return result;
}

static void *vcpu_main(void *argument) {
    struct vcpu *vcpu = argument;
    char name[16];
    snprintf(name, sizeof name, "vcpu %d/%d", vcpu->index, vcpu->number);
    pthread_setname_np(pthread_self(), name);
    for (;;) {
        if (ioctl(vcpu->fd, KVM_RUN, 0) < 0) {
            if (errno == EINTR || errno == EAGAIN) continue;
            err(1, "KVM_RUN");
        }
        if (vcpu->run->exit_reason == KVM_EXIT_IO && vcpu->run->io.port == STOP_PORT) return NULL;
        if (vcpu->run->exit_reason == KVM_EXIT_INTR) continue;
        struct kvm_regs regs = {0};
        ioctl(vcpu->fd, KVM_GET_REGS, &regs);
        errx(1, "vCPU %d: exit %u (internal error %u, failed entry %llx) at %llx", vcpu->number,
             vcpu->run->exit_reason, vcpu->run->internal.suberror,
             (unsigned long long)vcpu->run->fail_entry.hardware_entry_failure_reason,
             (unsigned long long)regs.rip);
    }
}

static void set_registers(int kvm, struct vcpu *vcpu) {
    static _Thread_local union {
        struct kvm_cpuid2 header;
        char room[sizeof(struct kvm_cpuid2) + 256 * sizeof(struct kvm_cpuid_entry2)];
    } cpuid;
    cpuid.header.nent = 256;
    checked(ioctl(kvm, KVM_GET_SUPPORTED_CPUID, &cpuid), "KVM_GET_SUPPORTED_CPUID");
    for (unsigned i = 0; i < cpuid.header.nent; i++)
        if (cpuid.header.entries[i].function == 1)
            cpuid.header.entries[i].ecx |= 1 << 21; /* x2APIC */
    checked(ioctl(vcpu->fd, KVM_SET_CPUID2, &cpuid), "KVM_SET_CPUID2");

    struct kvm_sregs s;
    checked(ioctl(vcpu->fd, KVM_GET_SREGS, &s), "KVM_GET_SREGS");
    s.cs = (struct kvm_segment){
        .limit = ~0u, .selector = 8, .type = 11, .present = 1, .s = 1, .l = 1, .g = 1};
    s.ds = s.es = s.fs = s.gs = s.ss = (struct kvm_segment){
        .limit = ~0u, .selector = 16, .type = 3, .present = 1, .s = 1, .db = 1, .g = 1};
    s.tr = (struct kvm_segment){.limit = 0x67, .selector = 24, .type = 11, .present = 1};
    s.gdt = (struct kvm_dtable){.base = GDT, .limit = 3 * 8 - 1};
    s.idt = (struct kvm_dtable){.base = IDT, .limit = 256 * 16 - 1};
    s.cr3 = PML4;
    s.cr4 = 1 << 5;                         /* PAE */
    s.cr0 = 1u << 31 | 1 << 5 | 1 << 4 | 1; /* paging, NE, ET, protected mode */
    s.efer = 1 << 10 | 1 << 8;              /* long mode, active and enabled */
    s.apic_base |= 3 << 10;                 /* x2APIC */
    checked(ioctl(vcpu->fd, KVM_SET_SREGS, &s), "KVM_SET_SREGS");

    struct kvm_regs r = {
        .rip = CODE,
        .rflags = 2,
        .rsp = STACKS + 4096 * (vcpu->number + 1),
        .rdi = SHARED,
        .rbx = SHARED + 256 + 64 * vcpu->number,
    };
    checked(ioctl(vcpu->fd, KVM_SET_REGS, &r), "KVM_SET_REGS");
    /* With an in-kernel APIC, all vCPUs but the first would otherwise wait for a startup IPI. */
    struct kvm_mp_state runnable = {.mp_state = KVM_MP_STATE_RUNNABLE};
    checked(ioctl(vcpu->fd, KVM_SET_MP_STATE, &runnable), "KVM_SET_MP_STATE");
}

static struct shared *fill_memory(char *memory) {
    uint64_t *gdt = (uint64_t *)(memory + GDT), *idt = (uint64_t *)(memory + IDT);
    gdt[1] = 0x00af9b000000ffff;
    gdt[2] = 0x00cf93000000ffff;
    uint64_t handler = CODE + (guest_timer - guest_begin);
    idt[2 * VECTOR] = (handler & 0xffff) | 8 << 16 | 0x8eull << 40 | (handler >> 16) << 48;
    *(uint64_t *)(memory + PML4) = PDPT | 3;
    *(uint64_t *)(memory + PDPT) = PD | 3;
    *(uint64_t *)(memory + PD) = 0x83;
    memcpy(memory + CODE, guest_begin, guest_end - guest_begin);
    struct shared *shared = (struct shared *)(memory + SHARED);
    shared->section = options.section;
    shared->outside = options.outside;
    shared->sleep = options.hlt * 1000;
    shared->burst = options.burst;
    return shared;
}

static void run_vm(int index) {
    int kvm = checked(open("/dev/kvm", O_RDWR | O_CLOEXEC), "/dev/kvm");
    int vm = checked(ioctl(kvm, KVM_CREATE_VM, 0), "KVM_CREATE_VM");
    /* Intel CPUs need this region to emulate real mode. */
    ioctl(vm, KVM_SET_TSS_ADDR, 0xfffbd000);
    checked(ioctl(vm, KVM_CREATE_IRQCHIP, 0), "KVM_CREATE_IRQCHIP");
    char *memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) err(1, "memory");
    struct shared *shared = fill_memory(memory);
    struct kvm_userspace_memory_region region = {.memory_size = MEMORY,
                                                 .userspace_addr = (uintptr_t)memory};
    checked(ioctl(vm, KVM_SET_USER_MEMORY_REGION, &region), "KVM_SET_USER_MEMORY_REGION");
    int run_size = checked(ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0), "KVM_GET_VCPU_MMAP_SIZE");

    struct vcpu vcpus[MAX_VCPUS] = {0};
    for (int i = 0; i < options.vcpus; i++) {
        vcpus[i].index = index;
        vcpus[i].number = i;
        vcpus[i].fd = checked(ioctl(vm, KVM_CREATE_VCPU, i), "KVM_CREATE_VCPU");
        vcpus[i].run = mmap(NULL, run_size, PROT_READ | PROT_WRITE, MAP_SHARED, vcpus[i].fd, 0);
        if (vcpus[i].run == MAP_FAILED) err(1, "a vCPU's page");
        set_registers(kvm, &vcpus[i]);
    }
    double begin = now();
    for (int i = 0; i < options.vcpus; i++)
        if (pthread_create(&vcpus[i].thread, NULL, vcpu_main, &vcpus[i]))
            errx(1, "no thread for a vCPU");
    while (!asked_to_stop && (options.seconds == 0 || now() < begin + options.seconds))
        usleep(10000);
    shared->stop = 1;
    double seconds = now() - begin;
    /* All vCPUs with a ticket get the lock. If that takes too long, SIGALRM ends the process. */
    alarm(30);
    for (int i = 0; i < options.vcpus; i++) pthread_join(vcpus[i].thread, NULL);

    struct result *result = &results[index];
    for (int i = 0; i < options.vcpus; i++) {
        result->acquired += shared->vcpu[i].acquired;
        result->pauses += shared->vcpu[i].pauses;
        result->slept += shared->vcpu[i].slept;
    }
    result->seconds = seconds;
    result->broken = shared->inside != result->acquired * options.section ||
                     shared->serving != (uint32_t)result->acquired;
    result->done = true;
    for (int i = 0; i < options.vcpus; i++) close(vcpus[i].fd);
    close(vm);
    close(kvm);
}

static void *vm_thread(void *index) {
    run_vm((intptr_t)index);
    return NULL;
}

static void run_all(void) {
    if (options.one_process) {
        pthread_t threads[options.vms];
        for (intptr_t i = 0; i < options.vms; i++)
            if (pthread_create(&threads[i], NULL, vm_thread, (void *)i))
                errx(1, "no thread for a VM");
        for (int i = 0; i < options.vms; i++) pthread_join(threads[i], NULL);
        return;
    }
    pid_t children[options.vms];
    for (int i = 0; i < options.vms; i++) {
        children[i] = checked(fork(), "fork");
        if (children[i] == 0) {
            run_vm(i);
            exit(0);
        }
    }
    for (int i = 0; i < options.vms; i++) {
        /* Forward signals sent to this process. If the whole group got the signal, the children
         * receive it twice, which does no harm. */
        while (waitpid(children[i], NULL, 0) < 0 && errno == EINTR)
            for (int j = 0; asked_to_stop && j < options.vms; j++) kill(children[j], SIGTERM);
    }
}

static int report(void) {
    struct result all = {.done = true};
    double rate = 0;
    for (int i = 0; i < options.vms; i++) {
        struct result *r = &results[i];
        if (!r->done) {
            printf("vm %d: failed\n", i);
            all.done = false;
            continue;
        }
        printf("vm %d: acquired %llu, pauses %llu, slept %llu, per second %.0f%s\n", i,
               (unsigned long long)r->acquired, (unsigned long long)r->pauses,
               (unsigned long long)r->slept, r->acquired / r->seconds,
               r->broken ? ", THE LOCK LET TWO IN" : "");
        all.acquired += r->acquired;
        all.pauses += r->pauses;
        all.slept += r->slept;
        all.broken |= r->broken;
        rate += r->acquired / r->seconds;
    }
    printf("all: acquired %llu, pauses %llu, slept %llu, per second %.0f\n",
           (unsigned long long)all.acquired, (unsigned long long)all.pauses,
           (unsigned long long)all.slept, rate);
    return all.done && !all.broken ? 0 : 1;
}

static long number(const char *text, long least, long most, const char *name) {
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (errno || *end || end == text || n < least || n > most)
        errx(2, "--%s: a number from %ld to %ld", name, least, most);
    return n;
}

static const char usage[] =
    "usage: guest [OPTION]...\n"
    "  --vms N        virtual machines, a process each [default: 1]\n"
    "  --vcpus M      vCPUs of each [default: 2]\n"
    "  --seconds S    how long; 0: until SIGTERM or SIGINT [default: 5]\n"
    "  --section N    turns in the critical section [default: 100]\n"
    "  --outside N    turns outside [default: 100]\n"
    "  --hlt US       sleep so many microseconds after each acquisition [default: 0, never]\n"
    "  --burst N      ... or after each N [default: 1]\n"
    "  --one-process  all VMs in one process\n";

int main(int argc, char **argv) {
    static const struct option known[] = {
        {"vms", 1, 0, 'n'},     {"vcpus", 1, 0, 'm'},
        {"seconds", 1, 0, 's'}, {"section", 1, 0, 'c'},
        {"outside", 1, 0, 'o'}, {"hlt", 1, 0, 't'},
        {"burst", 1, 0, 'b'},   {"one-process", 0, 0, 'p'},
        {"help", 0, 0, 'h'},    {0},
    };
    for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) switch (c) {
        case 'n': options.vms = number(optarg, 1, 256, "vms"); break;
        case 'm': options.vcpus = number(optarg, 1, MAX_VCPUS, "vcpus"); break;
        case 's': options.seconds = number(optarg, 0, 1000000, "seconds"); break;
        case 'c': options.section = number(optarg, 1, 1000000000, "section"); break;
        case 'o': options.outside = number(optarg, 0, 1000000000, "outside"); break;
        case 't': options.hlt = number(optarg, 0, 4000000, "hlt"); break;
        case 'b': options.burst = number(optarg, 1, 1000000000, "burst"); break;
        case 'p': options.one_process = true; break;
        case 'h': fputs(usage, stdout); return 0;
        default: fputs(usage, stderr); return 2;
        }
    if (optind < argc) {
        fputs(usage, stderr);
        return 2;
    }
    struct sigaction action = {.sa_handler = stop};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    results = mmap(NULL, options.vms * sizeof *results, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (results == MAP_FAILED) err(1, "memory");
    run_all();
    return report();
}
