/* Has a child that is dead and that it does not ask for its exit code. Prints the child's process
 * number once the child is dead, and waits to be killed. */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    pid_t child = fork();
    if (child == 0) _exit(0);
    siginfo_t about;
    if (child < 0 || waitid(P_PID, (id_t)child, &about, WEXITED | WNOWAIT)) {
        perror("zombie");
        return 1;
    }
    printf("%d\n", (int)child);
    fflush(stdout);
    for (;;) pause();
}
