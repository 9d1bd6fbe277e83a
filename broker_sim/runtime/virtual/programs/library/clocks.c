/* Clocks and sleeps. A monotonic clock starts at 1000 s, the wall clock where the simulator's does. */
#include "library.h"
#include <sys/time.h>
#include <threads.h>
#include <unistd.h>

#define MONOTONIC_START_NS (1000 * NS_PER_S)

int64_t vt_wall_start_ns;

/* The time that a clock shows at virtual time 0; NEVER for clocks of the processor, which stay real. */
static int64_t start_ns(clockid_t clock) {
    switch (clock) {
        case CLOCK_REALTIME:
        case CLOCK_REALTIME_COARSE:
        case CLOCK_TAI: return vt_wall_start_ns;
        case CLOCK_MONOTONIC:
        case CLOCK_MONOTONIC_RAW:
        case CLOCK_MONOTONIC_COARSE:
        case CLOCK_BOOTTIME: return MONOTONIC_START_NS;
        default: return NEVER;
    }
}

static int64_t to_ns(const struct timespec *time) {
    if (time->tv_sec > NEVER / NS_PER_S / 2) return NEVER / 2;
    return time->tv_sec * NS_PER_S + time->tv_nsec;
}

int64_t vt_deadline(clockid_t clock, const struct timespec *absolute) {
    int64_t start = start_ns(clock), ns = to_ns(absolute) - (start == NEVER ? 0 : start);
    return ns < 0 ? 0 : ns;
}

int64_t vt_deadline_after(const struct timespec *relative) { return vt_now_ns + to_ns(relative); }

EXPORT int clock_gettime(clockid_t clock, struct timespec *time) {
    int64_t start = vt_active() ? start_ns(clock) : NEVER;
    if (start == NEVER) return (int)with_errno(raw(SYS_clock_gettime, clock, time));
    vt_on_call();
    vt_count_call();
    int64_t ns = vt_now_ns + start_ns(clock);
    *time = (struct timespec){ns / NS_PER_S, ns % NS_PER_S};
    return 0;
}

EXPORT int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    (void)zone;
    struct timespec precise;
    int result = clock_gettime(CLOCK_REALTIME, &precise);
    *time = (struct timeval){precise.tv_sec, precise.tv_nsec / 1000};
    return result;
}

EXPORT time_t time(time_t *result) {
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    if (result) *result = precise.tv_sec;
    return precise.tv_sec;
}

EXPORT int timespec_get(struct timespec *time, int base) { return clock_gettime(CLOCK_REALTIME, time) ? 0 : base; }

static int sleep_until(const char *call, int64_t deadline_ns, struct timespec *left) {
    if (deadline_ns <= vt_now_ns) {
        vt_yield();
        return 0;
    }
    if (VT_WAIT(.call = call, .deadline_ns = deadline_ns) != INTERRUPTED) return 0;
    int64_t ns = deadline_ns > vt_now_ns ? deadline_ns - vt_now_ns : 0;
    if (left) *left = (struct timespec){ns / NS_PER_S, ns % NS_PER_S};
    return EINTR;
}

EXPORT int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left) {
    if (!vt_active() || start_ns(clock) == NEVER) return (int)-raw(SYS_clock_nanosleep, clock, flags, time, left);
    if (flags & TIMER_ABSTIME) return sleep_until("clock_nanosleep", vt_deadline(clock, time), 0);
    return sleep_until("clock_nanosleep", vt_deadline_after(time), left);
}

EXPORT int nanosleep(const struct timespec *time, struct timespec *left) {
    if (!vt_active()) return (int)with_errno(raw(SYS_nanosleep, time, left));
    return (int)with_errno(-sleep_until("nanosleep", vt_deadline_after(time), left));
}

EXPORT int usleep(useconds_t us) {
    struct timespec time = {us / 1000000, us % 1000000 * 1000L};
    return nanosleep(&time, 0);
}

EXPORT unsigned sleep(unsigned seconds) {
    struct timespec time = {seconds, 0}, left = {0, 0};
    return nanosleep(&time, &left) ? (unsigned)left.tv_sec : 0;
}

EXPORT int thrd_sleep(const struct timespec *time, struct timespec *left) { return nanosleep(time, left); }

/* -- SIGALRM: the main thread takes it where it waits, as all signals -- */

static struct timeval to_timeval(int64_t ns) { return (struct timeval){ns / NS_PER_S, ns % NS_PER_S / 1000}; }

static int64_t from_timeval(struct timeval time) { return time.tv_sec * NS_PER_S + time.tv_usec * 1000; }

EXPORT int getitimer(__itimer_which_t which, struct itimerval *value) {
    if (!vt_active() || which != ITIMER_REAL) return (int)with_errno(raw(SYS_getitimer, which, value));
    value->it_value = to_timeval(vt_alarm_ns == NEVER ? 0 : vt_alarm_ns - vt_now_ns);
    value->it_interval = to_timeval(vt_alarm_every_ns);
    return 0;
}

EXPORT int setitimer(
    __itimer_which_t which, const struct itimerval *restrict value, struct itimerval *restrict before) {
    if (!vt_active()) return (int)with_errno(raw(SYS_setitimer, which, value, before));
    if (which != ITIMER_REAL) vt_refuse("setitimer of processor time", "computing takes no virtual time");
    if (before) getitimer(which, before);
    int64_t after_ns = from_timeval(value->it_value);
    vt_alarm_ns = after_ns ? vt_now_ns + after_ns : NEVER;
    vt_alarm_every_ns = from_timeval(value->it_interval);
    return 0;
}

EXPORT unsigned alarm(unsigned seconds) {
    struct itimerval value = {.it_value.tv_sec = seconds}, before;
    setitimer(ITIMER_REAL, &value, &before);
    return (unsigned)before.it_value.tv_sec + (before.it_value.tv_usec > 0);
}
