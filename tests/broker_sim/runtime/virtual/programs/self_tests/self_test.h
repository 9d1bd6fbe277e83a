/* A program that runs in real and in virtual time, and prints the same both times: `name value` for each result. */
#ifndef SELF_TEST_H
#define SELF_TEST_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

#define MS 1000000LL
extern int is_virtual;  /* then time is exact, and not only long enough */
extern int echo_port;

static inline int64_t now_ns(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static inline struct timespec in_ms(clockid_t clock, int ms) {
    int64_t ns = (clock < 0 ? 0 : now_ns(clock)) + ms * MS;
    return (struct timespec){ns / 1000000000LL, ns % 1000000000LL};
}

#define RESULT(name, value) printf("%s %ld\n", name, (long)(value))
/* Print a result, and whether it took `ms`: a timeout. */
#define TIMED(name, ms, call) TIMED_FROM(ms, name, ms, call)
/* The same for what another thread wakes in `ms`: in real time this one may come late. */
#define WOKEN(name, ms, call) TIMED_FROM(is_virtual ? ms : 0, name, ms, call)
#define TIMED_FROM(least, name, ms, call)                                                                              \
    do {                                                                                                               \
        int64_t began_ = now_ns(CLOCK_MONOTONIC);                                                                      \
        long value_ = (long)(call);                                                                                    \
        int64_t took_ = now_ns(CLOCK_MONOTONIC) - began_;                                                              \
        int right_ = took_ >= (least) * MS - MS / 10 && (!is_virtual || took_ <= (ms) * MS + MS);                      \
        printf("%s %ld, %s\n", name, value_, right_ ? "in time" : "at a wrong time");                                  \
        if (!right_) fprintf(stderr, "%s took %ld ns\n", name, (long)took_);                                           \
    } while (0)

pid_t start_sleep(void);  /* starts a process that ends after 10 ms */

void test_clocks(void);
void test_threads(void);
void test_locks(void);
void test_files(void);
void test_sockets(void);
void test_chance(void);
void test_processes(void);
void test_signals(void);
#endif
