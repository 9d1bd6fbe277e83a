/* Which thread runs: threads take turns, and time moves when none can run. */
#include "library.h"
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Costs of code that never waits; without them `while (now() < end) {}` would not end.
 *
 *   a thread reads clocks at one time         after 20 000 reads each 256th costs 1 us, doubling every 8 up to 1 ms
 *   a thread takes locks at one time          after 500 000 of them the same
 *   a thread yields, or polls without waiting  after 8 of them each costs the same
 *   threads wake each other, and none is idle  after 500 turns each costs 1 us, doubling every 64 up to 1 ms
 */
#define FREE_CLOCK_READS 20000
#define FREE_LOCKS 500000
#define CALLS_PER_YIELD 256
#define LOCKS_PER_SWITCH 8
#define FREE_YIELDS 8
#define FREE_TURNS 500
#define FIRST_COST_NS 1000LL
#define LAST_COST_NS 1000000LL
#define MOST_DOUBLINGS 10

int vt_enabled;
int64_t vt_now_ns;
int64_t vt_alarm_ns = NEVER, vt_alarm_every_ns;
int vt_has_sent;
int vt_restarts;
pid_t vt_pid;
uint32_t vt_calls_left;
struct vt_thread *vt_threads;
__thread struct vt_thread *vt_self __attribute__((tls_model("initial-exec")));

static struct vt_thread **threads_end = &vt_threads;
static struct vt_thread *ready, **ready_end = &ready;
static struct vt_thread *main_thread;
static int64_t horizon_ns;
static int lock_waiters, thread_count, turns_without_idleness, has_run = 1;
static uint64_t waits;
static pid_t ending_tid;  /* a thread that has given up its token and is still running in libc */
static uint64_t order_state;

/* -- the token -- */

static void wait_for_token(struct vt_thread *self) {
    while (!__atomic_load_n(&self->has_token, __ATOMIC_ACQUIRE))
        raw(SYS_futex, &self->has_token, FUTEX_WAIT_PRIVATE, 0, 0, 0, 0);
    self->has_token = 0;
    if (!ending_tid) return;
    /* Its last accesses to its stack and arena must not race with the next thread. */
    while (raw(SYS_tgkill, vt_pid, ending_tid, 0) == 0) raw(SYS_sched_yield);
    ending_tid = 0;
}

static void make_ready(struct vt_thread *thread, enum vt_outcome outcome) {
    thread->state = READY;
    thread->outcome = outcome;
    lock_waiters -= thread->wait.is_for_lock;
    thread->wait = (struct vt_wait){0};
    thread->next_ready = 0;
    *ready_end = thread;
    ready_end = &thread->next_ready;
}

/* A random number below `count`, with VT_ORDER. */
static uint64_t draw(uint64_t count) {
    order_state ^= order_state << 13;
    order_state ^= order_state >> 7;
    order_state ^= order_state << 17;
    return order_state % count;
}

/* The thread that has been ready for longest, or with VT_ORDER a random one. */
static struct vt_thread *take_ready(void) {
    struct vt_thread **place = &ready;
    if (order_state && ready) {
        uint64_t count = 0;
        for (struct vt_thread *each = ready; each; each = each->next_ready) count++;
        for (uint64_t skip = draw(count); skip; skip--) place = &(*place)->next_ready;
    }
    struct vt_thread *thread = *place;
    if (!thread) return 0;
    *place = thread->next_ready;
    if (!*place) ready_end = place;
    return thread;
}

/* -- time -- */

static int64_t next_deadline(void) {
    int64_t first = vt_next_timer_ns();
    for (struct vt_thread *each = vt_threads; each; each = each->next)
        if (each->state == BLOCKED && each->wait.deadline_ns < first) first = each->wait.deadline_ns;
    return first;
}

/* Make the threads ready whose files are ready, then those whose deadlines have passed, in order of deadline. */
static void look_around(void) {
    const struct timespec no_time = {0, 0};
    vt_run_timers();
    for (struct vt_thread *each = vt_threads; each; each = each->next)
        if (each->state == BLOCKED &&
            ((each->wait.fds && raw(SYS_ppoll, each->wait.fds, each->wait.fd_count, &no_time, 0, 0) > 0) ||
             (each->wait.is_over && each->wait.is_over(&each->wait))))
            make_ready(each, WOKEN);
    for (;;) {
        struct vt_thread *first = 0;
        for (struct vt_thread *each = vt_threads; each; each = each->next)
            if (each->state == BLOCKED && each->wait.deadline_ns <= vt_now_ns &&
                (!first || each->wait.deadline_ns < first->wait.deadline_ns))
                first = each;
        if (!first) return;
        make_ready(first, TIMED_OUT);
    }
}

void vt_move_time(int64_t now_ns, int64_t new_horizon_ns) {
    vt_now_ns = now_ns;
    horizon_ns = new_horizon_ns;
}

/* Whether a thread may wait until the simulator has read what was sent. An epoll, whose type has no name, does not tell
 * what it waits for. */
static int may_wait_for_room(void) {
    for (struct vt_thread *each = vt_threads; each; each = each->next)
        for (nfds_t i = 0; each->state == BLOCKED && i < each->wait.fd_count; i++) {
            struct stat status;
            if (each->wait.fds[i].events & POLLOUT) return 1;
            if (!fstat(each->wait.fds[i].fd, &status) && !(status.st_mode & S_IFMT)) return 1;
        }
    return 0;
}

static void ask_simulator(int64_t deadline_ns) {
    int had_run = has_run, may_wait = vt_has_sent && may_wait_for_room();
    vt_has_sent = has_run = 0;
    vt_send_idle(had_run, may_wait, deadline_ns);
}

/* Move the time: without the simulator if nothing can happen before then. */
static void pass_time(int64_t target_ns) {
    if (target_ns >= horizon_ns || vt_has_sent) ask_simulator(target_ns);
    else if (target_ns > vt_now_ns) vt_now_ns = target_ns;
}

static int64_t cost_ns(int count_over, int per_doubling) {
    int doublings = count_over / per_doubling;
    int64_t cost = FIRST_COST_NS << (doublings > MOST_DOUBLINGS ? MOST_DOUBLINGS : doublings);
    return cost > LAST_COST_NS ? LAST_COST_NS : cost;
}

/* Give the token to the next thread that can run; `self` may get it back; it is 0 if the thread is ending. */
static void give_token(struct vt_thread *self) {
    struct vt_thread *next;
    for (;;) {
        if (!ready) look_around();
        if (ready && ++turns_without_idleness > FREE_TURNS) {
            pass_time(vt_now_ns + cost_ns(turns_without_idleness - FREE_TURNS, 64));
            look_around();
        }
        next = take_ready();
        if (next) break;
        turns_without_idleness = 0;
        pass_time(next_deadline());
    }
    next->state = RUNNING;
    has_run = 1;
    if (next == self) return;
    __atomic_store_n(&next->has_token, 1, __ATOMIC_RELEASE);
    raw(SYS_futex, &next->has_token, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
    if (self) wait_for_token(self);
}

static void let_others_run(struct vt_thread *self) {
    int saved_errno = errno;
    give_token(self);
    vt_take_pending();
    errno = saved_errno;
}

int vt_take_pending(void) {
    int signal = vt_self->pending_signal;
    if (!signal || !vt_take_signal(signal, vt_self->tid)) return 0;
    if (vt_self->pending_signal == signal) vt_self->pending_signal = 0;
    return 1;
}

/* -- waiting -- */

static enum vt_outcome block(struct vt_wait wait) {
    struct vt_thread *self = vt_self;
    if (self == main_thread) REAL(pthread_sigmask)(SIG_BLOCK, 0, &self->blocked);
    self->wait = wait;
    self->turn = ++waits;
    self->state = BLOCKED;
    lock_waiters += wait.is_for_lock;
    let_others_run(self);
    return self->outcome;
}

void vt_die(void) {
    for (;;) raw(SYS_kill, vt_pid, SIGKILL);
}

enum vt_outcome vt_wait(struct vt_wait wait) {
    struct vt_thread *self = vt_self;
    int64_t start_ns = vt_now_ns;
    if (!wait.is_for_lock) self->yields = 0;
    enum vt_outcome outcome = block(wait);
    if (vt_now_ns > start_ns) self->clock_reads = self->locks = 0;
    return outcome;
}

enum vt_outcome vt_wait_releasing(struct vt_wait wait, pthread_mutex_t *mutex) {
    REAL(pthread_mutex_unlock)(mutex);
    vt_wake_for_lock(mutex);
    return vt_wait(wait);
}

int vt_wake(const void *address, int count) {
    int woken = 0;
    for (; woken < count; woken++) {
        struct vt_thread *first = 0;
        for (struct vt_thread *each = vt_threads; each; each = each->next)
            if (each->state == BLOCKED && each->wait.address == address && (!first || each->turn < first->turn))
                first = each;
        if (!first) break;
        make_ready(first, WOKEN);
    }
    return woken;
}

void vt_wake_for_lock(const void *address) {
    if (lock_waiters) vt_wake(address, 1);
}

/* Signals are taken by the main thread when it runs next, so at the same moment in each run. */
void vt_interrupt(int signal) {
    for (struct vt_thread *each = vt_threads; each; each = each->next)
        if (each->state == BLOCKED && each->wait.signals && sigismember(each->wait.signals, signal)) {
            each->awaited_signal = signal;
            make_ready(each, WOKEN);
            return;
        }
    if (vt_write_signal(signal) || vt_is_signal_ignored(signal)) return;
    main_thread->pending_signal = signal;
    if (main_thread->state == BLOCKED && !sigismember(&main_thread->blocked, signal)) make_ready(main_thread, INTERRUPTED);
}

int vt_take_held(const sigset_t *set) {
    int signal = main_thread->pending_signal;
    if (!signal || !sigismember(set, signal)) return 0;
    main_thread->pending_signal = 0;
    return signal;
}

int vt_raise(int signal) {
    if (vt_self != main_thread || !vt_take_signal(signal, main_thread->tid)) vt_interrupt(signal);
    return 0;
}

void vt_yield(void) {
    struct vt_thread *self = vt_self;
    int count = ++self->yields;
    if (!ready) look_around();
    if (count <= FREE_YIELDS) {
        if (!ready) return;
        make_ready(self, WOKEN);
        let_others_run(self);
        return;
    }
    int64_t target_ns = vt_now_ns + cost_ns(count - FREE_YIELDS, 8);
    if (!ready && target_ns < horizon_ns && target_ns < next_deadline()) vt_now_ns = target_ns;
    else block((struct vt_wait){.call = "a call that does not wait", .deadline_ns = target_ns});
}

static void count_call(int *calls, int free_calls) {
    if (++*calls > free_calls && *calls % CALLS_PER_YIELD == 0) vt_yield();
}

void vt_on_clock_read(void) { count_call(&vt_self->clock_reads, FREE_CLOCK_READS); }

/* With VT_ORDER others may run before this thread takes the mutex, so that they see what it did before. */
void vt_on_lock(void) {
    struct vt_thread *self = vt_self;
    count_call(&self->locks, FREE_LOCKS);
    if (!order_state || !ready || self->libc_locks || draw(LOCKS_PER_SWITCH)) return;
    turns_without_idleness--;  /* its own turn is not over */
    make_ready(self, WOKEN);
    let_others_run(self);
}

/* -- threads -- */

int vt_thread_count(void) { return thread_count; }

struct vt_thread *vt_new_thread(void) { return calloc(1, sizeof(struct vt_thread)); }

static void enlist(struct vt_thread *thread) {
    thread->number = thread_count++;
    *threads_end = thread;
    threads_end = &thread->next;
}

void vt_add_thread(struct vt_thread *thread) {
    enlist(thread);
    make_ready(thread, WOKEN);
}

void vt_remove_thread(struct vt_thread *thread) {
    struct vt_thread **place = &vt_threads;
    while (*place && *place != thread) place = &(*place)->next;
    if (!*place) return;
    *place = thread->next;
    if (!*place) threads_end = place;
}

void vt_begin_thread(struct vt_thread *thread) {
    thread->tid = (pid_t)raw(SYS_gettid);
    vt_self = thread;
    wait_for_token(thread);
}

void vt_end_thread(struct vt_thread *thread) {
    if (thread->is_detached) vt_remove_thread(thread);
    thread->state = EXITED;
    vt_self = 0;
    ending_tid = thread->tid;
    vt_wake(thread, ALL);
    give_token(0);
}

struct vt_thread *vt_thread_of(pthread_t handle) {
    struct vt_thread *thread = vt_threads;
    while (thread && thread->handle != handle) thread = thread->next;
    return thread;
}

/* The parent's other threads are gone, but their stacks are not: the next thread gets a number with a new stack. */
void vt_become_child(void) {
    main_thread = vt_threads = vt_self;
    vt_self->next = vt_self->next_ready = 0;
    threads_end = &vt_self->next;
    ready = 0;
    ready_end = &ready;
    lock_waiters = turns_without_idleness = vt_self->pending_signal = 0;
    has_run = 1;
    ending_tid = 0;
    vt_alarm_ns = NEVER;
    vt_calls_left = 0;
    vt_pid = vt_self->tid = (pid_t)raw(SYS_getpid);
}

/* -- the beginning and the end of the program -- */

/* Spread the bits of a small number (the end of SplitMix64); 0 stays 0. */
static uint64_t mixed(uint64_t number) {
    number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9;
    number = (number ^ (number >> 27)) * 0x94d049bb133111eb;
    return number ^ (number >> 31);
}

void vt_begin_order(uint64_t number) { order_state = mixed(number); }

__attribute__((constructor)) static void begin(void) {
    vt_pid = (pid_t)raw(SYS_getpid);
    struct vt_thread *self = main_thread = vt_new_thread();
    self->tid = vt_pid;
    self->handle = pthread_self();
    self->state = RUNNING;
    enlist(self);
    const char *order = getenv("VT_ORDER");
    if (order) vt_begin_order(strtoull(order, 0, 10));
    vt_begin_chance(getenv("VT_SEED"));
    vt_begin_processes(getenv("VT_SEED"));
    if (!vt_begin_conversation()) return;
    vt_self = self;
    vt_enabled = 1;
    vt_inherit_files(getenv("VT_FILES"));
    unsetenv("VT_FILES");
    vt_begin_reports();
    vt_replace_openssl();
    vt_replace_inside_libc();
}

__attribute__((destructor)) static void end(void) {
    if (vt_enabled) vt_send_bye();
}
