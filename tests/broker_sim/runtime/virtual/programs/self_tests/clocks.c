#include "self_test.h"
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <threads.h>
#include <unistd.h>

static volatile int alarms;

static void on_alarm(int number) {
    (void)number;
    alarms++;
}

static int is_near(int64_t seconds) {
    int64_t wall = now_ns(CLOCK_REALTIME) / 1000000000LL;
    return wall - seconds < 2 && seconds - wall < 2;
}

static int calls[2], answers[2];

static void *answer_calls(void *unused) {
    for (char byte; read(calls[0], &byte, 1) == 1 && write(answers[1], &byte, 1) == 1;) {}
    return unused;
}

/* As a JVM whose garbage collector stops a thread that looks at the clock. */
static int loop_on_clock_with_waits(void) {
    pthread_t thread;
    if (pipe(calls) || pipe(answers)) return -1;
    pthread_create(&thread, 0, answer_calls, 0);
    int64_t end = now_ns(CLOCK_MONOTONIC) + 10 * MS;
    int reads = 0;
    for (char byte = 0; now_ns(CLOCK_MONOTONIC) < end;)
        if (++reads % 10000 == 0 && (write(calls[1], &byte, 1) != 1 || read(answers[0], &byte, 1) != 1)) break;
    close(calls[1]);
    pthread_join(thread, 0);
    close(calls[0]), close(answers[0]), close(answers[1]);
    return reads;
}

void test_clocks(void) {
    struct timespec ten = {0, 10 * MS}, past = {0, 0};
    TIMED("nanosleep", 10, nanosleep(&ten, 0));
    TIMED("usleep", 10, usleep(10000));
    TIMED("sleep", 0, sleep(0));
    TIMED("thrd_sleep", 10, thrd_sleep(&ten, 0));
    TIMED("clock_nanosleep, relative", 10, clock_nanosleep(CLOCK_MONOTONIC, 0, &ten, 0));
    struct timespec until = in_ms(CLOCK_REALTIME, 10);
    TIMED("clock_nanosleep, absolute", 10, clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, 0));
    TIMED("clock_nanosleep, past", 0, clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &past, 0));
    RESULT("a loop on the clock ends soon though it waits for another thread", loop_on_clock_with_waits() < 1000000);
    struct timeval of_day;
    gettimeofday(&of_day, 0);
    RESULT("gettimeofday", is_near(of_day.tv_sec));
    RESULT("time", is_near(time(0)));
    struct timespec utc;
    RESULT("timespec_get", timespec_get(&utc, TIME_UTC) == TIME_UTC && is_near(utc.tv_sec));
    int64_t end = now_ns(CLOCK_MONOTONIC) + 10 * MS;
    while (now_ns(CLOCK_MONOTONIC) < end) {}
    RESULT("a loop on the clock ends", 1);
    struct itimerval timer = {.it_value.tv_usec = 10000}, before;
    signal(SIGALRM, on_alarm);
    RESULT("setitimer", setitimer(ITIMER_REAL, &timer, 0));
    RESULT("getitimer", getitimer(ITIMER_REAL, &before) || before.it_value.tv_usec == 0 || before.it_value.tv_usec > 10000);
    struct timespec longer = {60, 0};
    TIMED("a sleep that SIGALRM interrupts", 10, nanosleep(&longer, 0));
    RESULT("handler of SIGALRM", alarms);
    RESULT("alarm", alarm(100));
    RESULT("alarm, again", alarm(0) == 100 || alarm(0) == 99);
    RESULT("clock_gettime of an unknown clock", clock_gettime(1234, &utc));
}
