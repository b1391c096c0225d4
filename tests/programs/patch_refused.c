// patch_refused HOW COMMAND...: run COMMAND where memory cannot be made executable, or not writable
// and executable, or with a call that older kernels lack.
//   mdwe     PR_SET_MDWE: memory that was not executable cannot become so
//   exec     a filter refuses mprotect with PROT_EXEC (systemd's MemoryDenyWriteExecute= without
//   it)
//   write    a filter refuses mprotect with PROT_WRITE and PROT_EXEC
//   close    close_range does not exist, as before Linux 5.9
#include "pthread_test.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

static void install(struct sock_filter *code, size_t size) {
    struct sock_fprog program = {size / sizeof *code, code};
    SYS(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    SYS(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0));
}

static void filter(uint32_t refused) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, refused),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, refused, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    install(code, sizeof code);
}

static void filter_close_range(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_close_range, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    install(code, sizeof code);
}

int main(int argc, char **argv) {
    CHECK(argc > 2, "patch_refused HOW COMMAND...");
    if (!strcmp(argv[1], "mdwe"))
        SYS(prctl(65 /* PR_SET_MDWE */, 1, 0, 0, 0));
    else if (!strcmp(argv[1], "close"))
        filter_close_range();
    else
        filter(!strcmp(argv[1], "exec") ? PROT_EXEC : PROT_WRITE | PROT_EXEC);
    execvp(argv[2], argv + 2);
    FAIL("execvp %s: %s", argv[2], strerror(errno));
}
