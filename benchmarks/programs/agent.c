/* An agent that tells when it began: agent FILE MODE
 *
 * It appends "begin <nanoseconds> <pid>" to FILE as its first act (CLOCK_MONOTONIC, shared by all processes), then
 *   wait    does nothing, for ever
 *   say     prints one line, notes "said <nanoseconds> <pid>", then nothing, for ever
 *   tick    prints a line a second once it got SIGUSR1, and nothing before
 *   exit    leaves with status 0
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t ticking;

static void begin_ticking(int number) { (void)number; ticking = 1; }

static long long now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1000000000LL + at.tv_nsec;
}

static void note(const char *file, const char *what, long long at)
{
    char line[80];
    int length = snprintf(line, sizeof line, "%s %lld %d\n", what, at, (int)getpid());
    int descriptor = open(file, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (descriptor >= 0) {
        if (write(descriptor, line, (size_t)length) < 0) _exit(1);
        close(descriptor);
    }
}

int main(int argc, char **argv)
{
    long long began = now();
    if (argc < 3) return 2;
    note(argv[1], "begin", began);
    if (strcmp(argv[2], "exit") == 0) return 0;
    if (strcmp(argv[2], "say") == 0) {
        long long said;
        if (write(1, "working\n", 8) < 0) return 1;
        said = now();
        note(argv[1], "said", said);
    }
    if (strcmp(argv[2], "tick") == 0) {
        signal(SIGUSR1, begin_ticking);
        while (!ticking) pause();
        for (;;) {
            if (write(1, "a line of output, as an agent prints one\n", 41) < 0) return 1;
            sleep(1);
        }
    }
    for (;;) pause();
}
