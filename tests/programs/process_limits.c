// Bad input: 10,000 threads with small stacks (or as many as there may be: then EAGAIN, and those that exist go on),
// and RLIMIT_NPROC: pthread_create answers EAGAIN and works again when a thread has gone.
// Argument: "many" or "nproc" (the latter wants root, to become somebody else whom the limit binds).
#include "pthread_test.h"
#include <grp.h>
#include <sys/resource.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER, in = PTHREAD_COND_INITIALIZER;
static int go, arrived;
static pthread_t t[10000];

static void *waits(void *arg) {
	OK(pthread_mutex_lock(&mutex));
	arrived++;
	OK(pthread_cond_signal(&in));
	while (!go) OK(pthread_cond_wait(&cond, &mutex));
	OK(pthread_mutex_unlock(&mutex));
	return arg;
}
// Creates up to n waiting threads; returns how many there are.
static int create(int n) {
	pthread_attr_t a;
	OK(pthread_attr_init(&a));
	OK(pthread_attr_setstacksize(&a, 32768));
	OK(pthread_attr_setguardsize(&a, 0));
	go = arrived = 0;
	int made = 0, r = 0;
	for (; made < n; made++) if ((r = pthread_create(&t[made], &a, waits, (void *)(intptr_t)made))) break;
	if (r) EQ(r, EAGAIN);
	OK(pthread_mutex_lock(&mutex));
	while (arrived < made) OK(pthread_cond_wait(&in, &mutex));
	OK(pthread_mutex_unlock(&mutex));
	return made;
}
static void release(int made) {
	OK(pthread_mutex_lock(&mutex));
	go = 1;
	OK(pthread_cond_broadcast(&cond));
	OK(pthread_mutex_unlock(&mutex));
	for (int i = 0; i < made; i++) EQ((long)t_join(t[i]), i);
}

int main(int argc, char **argv) {
	t_watchdog();
	if (argc == 2 && !strcmp(argv[1], "many")) {
		for (int round = 0; round < 2; round++) {
			PHASE("many threads");
			int made = create(10000);
			CHECK(made >= 50, "only %d threads", made);
			release(made);
		}
		return t_ok("process_limits many");
	}
	CHECK(argc == 2 && !strcmp(argv[1], "nproc"), "usage: process_limits many|nproc");
	struct rlimit limit = { 40, 40 };
	PHASE("RLIMIT_NPROC");
	if (getuid() == 0) {
		uid_t uid = 60000 + (uid_t)(getpid() % 5000); // nobody else's processes count
		SYS(setgroups(0, NULL));
		SYS(setgid(uid));
		SYS(setuid(uid));
	}
	SYS(setrlimit(RLIMIT_NPROC, &limit));
	for (int round = 0; round < 3; round++) {
		int made = create(100);
		// A runtime may need a thread or a few for itself, and a process just ended may still be counted.
		CHECK(made >= 30 && made <= 39, "%d threads under a limit of 40", made);
		ERR(fork(), EAGAIN);
		release(made);
		// The kernel counts a thread a little longer than join waits for it.
		for (int i = 0; i < 100 && round < 2; i++) t_sleep_us(200);
	}
	return t_ok("process_limits nproc");
}
