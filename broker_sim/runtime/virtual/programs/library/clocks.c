/* Clocks and sleeps. The monotonic clock starts at 1000 s, the wall clock at the simulator's. */
#include "library.h"
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <threads.h>
#include <unistd.h>

#define MONOTONIC_START_NS (1000 * NS_PER_S)

int64_t vt_wall_start_ns;

/* The time that a clock shows at virtual time 0; NEVER for CPU clocks, which stay real. */
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
    vt_on_clock_read();
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

/* -- SIGALRM: like all signals it is taken by the main thread while it waits -- */

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

/* -- timerfd: an eventfd, whose counter grows when the timer expires -- */

#define MOST_TIMERS 256

static struct timer {
    int fd, is_used;
    clockid_t clock;
    int64_t due_ns, every_ns;
} timers[MOST_TIMERS];
static int timer_count;

static struct timer *timer_of(int fd) {
    for (int i = 0; i < timer_count; i++)
        if (timers[i].is_used && timers[i].fd == fd) return &timers[i];
    return 0;
}

void vt_forget_timer(int fd) {
    struct timer *timer = timer_of(fd);
    if (timer) timer->is_used = 0;
}

int64_t vt_next_timer_ns(void) {
    int64_t first = vt_alarm_ns;
    for (int i = 0; i < timer_count; i++)
        if (timers[i].is_used && timers[i].due_ns < first) first = timers[i].due_ns;
    return first;
}

void vt_run_timers(void) {
    if (vt_alarm_ns <= vt_now_ns) {
        vt_alarm_ns = vt_alarm_every_ns ? vt_alarm_ns + vt_alarm_every_ns : NEVER;
        vt_interrupt(SIGALRM);
    }
    for (int i = 0; i < timer_count; i++) {
        struct timer *timer = &timers[i];
        if (!timer->is_used || timer->due_ns > vt_now_ns) continue;
        uint64_t times = timer->every_ns ? (uint64_t)((vt_now_ns - timer->due_ns) / timer->every_ns + 1) : 1;
        raw(SYS_write, timer->fd, &times, sizeof times);
        timer->due_ns = timer->every_ns ? timer->due_ns + (int64_t)times * timer->every_ns : NEVER;
    }
}

EXPORT int timerfd_create(clockid_t clock, int flags) {
    if (!vt_active()) return REAL(timerfd_create)(clock, flags);
    int slot = 0;
    while (slot < timer_count && timers[slot].is_used) slot++;
    if (slot == MOST_TIMERS) return (int)with_errno(-EMFILE);
    int kind = (flags & TFD_NONBLOCK ? EFD_NONBLOCK : 0) | (flags & TFD_CLOEXEC ? EFD_CLOEXEC : 0);
    long fd = raw(SYS_eventfd2, 0, kind);
    if (fd < 0) return (int)with_errno(fd);
    if (slot == timer_count) timer_count++;
    timers[slot] = (struct timer){(int)fd, 1, clock, NEVER, 0};
    return (int)fd;
}

EXPORT int timerfd_gettime(int fd, struct itimerspec *value) {
    struct timer *timer = vt_active() ? timer_of(fd) : 0;
    if (!timer) return REAL(timerfd_gettime)(fd, value);
    int64_t left_ns = timer->due_ns == NEVER ? 0 : timer->due_ns - vt_now_ns;
    value->it_value = (struct timespec){left_ns / NS_PER_S, left_ns % NS_PER_S};
    value->it_interval = (struct timespec){timer->every_ns / NS_PER_S, timer->every_ns % NS_PER_S};
    return 0;
}

EXPORT int timerfd_settime(int fd, int flags, const struct itimerspec *value, struct itimerspec *before) {
    struct timer *timer = vt_active() ? timer_of(fd) : 0;
    if (!timer) return REAL(timerfd_settime)(fd, flags, value, before);
    if (before) timerfd_gettime(fd, before);
    uint64_t forgotten;
    long status = raw(SYS_fcntl, fd, F_GETFL, 0);
    raw(SYS_fcntl, fd, F_SETFL, status | O_NONBLOCK);
    raw(SYS_read, fd, &forgotten, sizeof forgotten);
    raw(SYS_fcntl, fd, F_SETFL, status);
    timer->every_ns = to_ns(&value->it_interval);
    if (!value->it_value.tv_sec && !value->it_value.tv_nsec) timer->due_ns = NEVER;
    else if (flags & TFD_TIMER_ABSTIME) timer->due_ns = vt_deadline(timer->clock, &value->it_value);
    else timer->due_ns = vt_deadline_after(&value->it_value);
    return 0;
}
