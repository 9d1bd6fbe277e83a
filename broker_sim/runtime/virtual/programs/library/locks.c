/* Locks and conditions. Mutexes, read-write locks and semaphores are libc's, but are only tried; a thread that does
 * not get one waits in the scheduler. Of libc's conditions only the clock is used. */
#include "library.h"
#include <link.h>
#include <linux/futex.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>
#include <threads.h>
#include <unistd.h>

#define IN_SHARED_MEMORY "use a mutex and a condition in the shared memory"

/* -- mutexes -- */

/* The flag in the kind of a glibc mutex that several processes share. */
#define SHARED_MUTEX 128

static int is_unlocked(const struct vt_wait *wait) {
    return !__atomic_load_n(&((const pthread_mutex_t *)wait->address)->__data.__lock, __ATOMIC_ACQUIRE);
}

static int lock_mutex(const char *call, pthread_mutex_t *mutex, int64_t deadline_ns) {
    vt_on_lock();
    struct vt_wait wait = {.call = call, .address = mutex, .deadline_ns = deadline_ns, .is_for_lock = 1};
    if (mutex->__data.__kind & SHARED_MUTEX) wait.is_over = is_unlocked;
    for (;;) {
        int error = REAL(pthread_mutex_trylock)(mutex);
        if (error != EBUSY) return error;
        if (vt_wait(wait) == TIMED_OUT) return ETIMEDOUT;
    }
}

EXPORT int pthread_mutex_lock(pthread_mutex_t *mutex) {
    return vt_active() ? lock_mutex("pthread_mutex_lock", mutex, NEVER) : REAL(pthread_mutex_lock)(mutex);
}

EXPORT int pthread_mutex_timedlock(pthread_mutex_t *mutex, const struct timespec *until) {
    if (!vt_active()) return REAL(pthread_mutex_timedlock)(mutex, until);
    return lock_mutex("pthread_mutex_timedlock", mutex, vt_deadline(CLOCK_REALTIME, until));
}

EXPORT int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until) {
    if (!vt_active()) return REAL(pthread_mutex_clocklock)(mutex, clock, until);
    return lock_mutex("pthread_mutex_clocklock", mutex, vt_deadline(clock, until));
}

EXPORT int pthread_mutex_unlock(pthread_mutex_t *mutex) {
    int error = REAL(pthread_mutex_unlock)(mutex);
    if (vt_active()) vt_wake_for_lock(mutex);
    return error;
}

static int in_c11(int error) {
    return !error ? thrd_success : error == ETIMEDOUT ? thrd_timedout : thrd_error;
}

/* glibc's C11 types are the POSIX ones under other names. */
EXPORT int mtx_lock(mtx_t *mutex) { return in_c11(pthread_mutex_lock((pthread_mutex_t *)mutex)); }
EXPORT int mtx_unlock(mtx_t *mutex) { return in_c11(pthread_mutex_unlock((pthread_mutex_t *)mutex)); }
EXPORT int mtx_timedlock(mtx_t *mutex, const struct timespec *until) {
    return in_c11(pthread_mutex_timedlock((pthread_mutex_t *)mutex, until));
}

/* -- locks that libc holds while it calls the program, or until the program says -- */

EXPORT int dlclose(void *handle) {
    vt_hold_libc_lock(1);
    int error = REAL(dlclose)(handle);
    vt_hold_libc_lock(-1);
    return error;
}

EXPORT int dl_iterate_phdr(int (*look_at)(struct dl_phdr_info *, size_t, void *), void *argument) {
    vt_hold_libc_lock(1);
    int result = REAL(dl_iterate_phdr)(look_at, argument);
    vt_hold_libc_lock(-1);
    return result;
}

EXPORT void flockfile(FILE *file) {
    REAL(flockfile)(file);
    vt_hold_libc_lock(1);
}

EXPORT int ftrylockfile(FILE *file) {
    int error = REAL(ftrylockfile)(file);
    if (!error) vt_hold_libc_lock(1);
    return error;
}

EXPORT void funlockfile(FILE *file) {
    REAL(funlockfile)(file);
    vt_hold_libc_lock(-1);
}

/* -- read-write locks -- */

static int lock_rw(const char *call, pthread_rwlock_t *lock, int (*try)(pthread_rwlock_t *), int64_t deadline_ns) {
    for (;;) {
        int error = try(lock);
        if (error != EBUSY) return error;
        if (VT_WAIT(.call = call, .address = lock, .deadline_ns = deadline_ns, .is_for_lock = 1) == TIMED_OUT)
            return ETIMEDOUT;
    }
}

EXPORT int pthread_rwlockattr_setpshared(pthread_rwlockattr_t *attributes, int shares) {
    if (vt_active() && shares == PTHREAD_PROCESS_SHARED)
        vt_refuse("a read-write lock of several processes", IN_SHARED_MEMORY);
    return REAL(pthread_rwlockattr_setpshared)(attributes, shares);
}

EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t *lock) {
    if (!vt_active()) return REAL(pthread_rwlock_rdlock)(lock);
    return lock_rw("pthread_rwlock_rdlock", lock, REAL(pthread_rwlock_tryrdlock), NEVER);
}

EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t *lock) {
    if (!vt_active()) return REAL(pthread_rwlock_wrlock)(lock);
    return lock_rw("pthread_rwlock_wrlock", lock, REAL(pthread_rwlock_trywrlock), NEVER);
}

EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t *lock, const struct timespec *until) {
    if (!vt_active()) return REAL(pthread_rwlock_timedrdlock)(lock, until);
    int64_t deadline_ns = vt_deadline(CLOCK_REALTIME, until);
    return lock_rw("pthread_rwlock_timedrdlock", lock, REAL(pthread_rwlock_tryrdlock), deadline_ns);
}

EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t *lock, const struct timespec *until) {
    if (!vt_active()) return REAL(pthread_rwlock_timedwrlock)(lock, until);
    int64_t deadline_ns = vt_deadline(CLOCK_REALTIME, until);
    return lock_rw("pthread_rwlock_timedwrlock", lock, REAL(pthread_rwlock_trywrlock), deadline_ns);
}

EXPORT int pthread_rwlock_unlock(pthread_rwlock_t *lock) {
    int error = REAL(pthread_rwlock_unlock)(lock);
    if (vt_active()) vt_wake(lock, ALL);
    return error;
}

/* -- once: glibc's low bits say that a thread is running it (1), or that it is done (2) -- */

EXPORT int pthread_once(pthread_once_t *control, void (*routine)(void)) {
    while (vt_active() && (__atomic_load_n((int *)control, __ATOMIC_ACQUIRE) & 3) == 1) vt_yield();
    return REAL(pthread_once)(control, routine);
}

EXPORT void call_once(once_flag *flag, void (*routine)(void)) { pthread_once((pthread_once_t *)flag, routine); }

/* -- conditions -- */

static clockid_t clock_of(const pthread_cond_t *condition) {
    return condition->__data.__wrefs & 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

/* A condition that processes share counts its signals in the first word of its memory, which libc does not use here.
 * Each signal wakes all waiters, as POSIX permits, so that none is lost to a waiter that was killed. */
static int is_shared_condition(const pthread_cond_t *condition) { return condition->__data.__wrefs & 1; }

static unsigned *signals_of(const pthread_cond_t *condition) { return (unsigned *)condition; }

static int has_changed(const struct vt_wait *wait) {
    return __atomic_load_n((const uint32_t *)wait->address, __ATOMIC_ACQUIRE) != wait->value;
}

static int wait_for_condition(const char *call, pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t deadline_ns) {
    if (deadline_ns <= vt_now_ns) {
        pthread_mutex_unlock(mutex);
        vt_yield();
        lock_mutex(call, mutex, NEVER);
        return ETIMEDOUT;
    }
    struct vt_wait wait = {.call = call, .address = condition, .deadline_ns = deadline_ns};
    if (is_shared_condition(condition)) {
        wait.value = *signals_of(condition);
        wait.is_over = has_changed;
    }
    enum vt_outcome outcome = vt_wait_releasing(wait, mutex);
    lock_mutex(call, mutex, NEVER);
    return outcome == TIMED_OUT ? ETIMEDOUT : 0;
}

static int signal_condition(pthread_cond_t *condition, int count) {
    if (is_shared_condition(condition)) __atomic_add_fetch(signals_of(condition), 1, __ATOMIC_RELEASE);
    else vt_wake(condition, count);
    return 0;
}

EXPORT int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex) {
    if (!vt_active()) return REAL_CONDITION(pthread_cond_wait)(condition, mutex);
    return wait_for_condition("pthread_cond_wait", condition, mutex, NEVER);
}

EXPORT int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until) {
    if (!vt_active()) return REAL_CONDITION(pthread_cond_timedwait)(condition, mutex, until);
    return wait_for_condition("pthread_cond_timedwait", condition, mutex, vt_deadline(clock_of(condition), until));
}

EXPORT int pthread_cond_clockwait(
    pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until) {
    if (!vt_active()) return REAL(pthread_cond_clockwait)(condition, mutex, clock, until);
    return wait_for_condition("pthread_cond_clockwait", condition, mutex, vt_deadline(clock, until));
}

EXPORT int pthread_cond_signal(pthread_cond_t *condition) {
    if (!vt_active()) return REAL_CONDITION(pthread_cond_signal)(condition);
    return signal_condition(condition, 1);
}

EXPORT int pthread_cond_broadcast(pthread_cond_t *condition) {
    if (!vt_active()) return REAL_CONDITION(pthread_cond_broadcast)(condition);
    return signal_condition(condition, ALL);
}

EXPORT int cnd_wait(cnd_t *condition, mtx_t *mutex) {
    return in_c11(pthread_cond_wait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex));
}
EXPORT int cnd_timedwait(cnd_t *condition, mtx_t *mutex, const struct timespec *until) {
    return in_c11(pthread_cond_timedwait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex, until));
}
EXPORT int cnd_signal(cnd_t *condition) { return in_c11(pthread_cond_signal((pthread_cond_t *)condition)); }
EXPORT int cnd_broadcast(cnd_t *condition) { return in_c11(pthread_cond_broadcast((pthread_cond_t *)condition)); }

/* -- semaphores -- */

static int fail(int error) {
    errno = error;
    return -1;
}

/* glibc's flag behind a semaphore's value: whether processes share it. */
static int is_shared(const sem_t *semaphore) { return ((const int *)semaphore)[2] != 0; }

static int is_free(const struct vt_wait *wait) {
    int value = 0;
    sem_getvalue((sem_t *)wait->address, &value);
    return value > 0;
}

static int wait_for_semaphore(const char *call, sem_t *semaphore, int64_t deadline_ns) {
    while (REAL(sem_trywait)(semaphore)) {
        if (errno != EAGAIN) return -1;
        if (deadline_ns <= vt_now_ns) {
            vt_yield();
            return REAL(sem_trywait)(semaphore) ? fail(ETIMEDOUT) : 0;
        }
        int (*is_over)(const struct vt_wait *) = is_shared(semaphore) ? is_free : 0;
        switch (VT_WAIT(.call = call, .address = semaphore, .is_over = is_over, .deadline_ns = deadline_ns)) {
            case TIMED_OUT: return fail(ETIMEDOUT);
            case INTERRUPTED: return fail(EINTR);
            case WOKEN: break;
        }
    }
    return 0;
}

EXPORT int sem_wait(sem_t *semaphore) {
    return vt_active() ? wait_for_semaphore("sem_wait", semaphore, NEVER) : REAL(sem_wait)(semaphore);
}

EXPORT int sem_timedwait(sem_t *semaphore, const struct timespec *until) {
    if (!vt_active()) return REAL(sem_timedwait)(semaphore, until);
    return wait_for_semaphore("sem_timedwait", semaphore, vt_deadline(CLOCK_REALTIME, until));
}

EXPORT int sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *until) {
    if (!vt_active()) return REAL(sem_clockwait)(semaphore, clock, until);
    return wait_for_semaphore("sem_clockwait", semaphore, vt_deadline(clock, until));
}

EXPORT int sem_post(sem_t *semaphore) {
    int result = REAL(sem_post)(semaphore);
    if (vt_active()) vt_wake(semaphore, 1);
    return result;
}

/* -- barriers: in the memory of libc's -- */

struct barrier {
    unsigned threads, arrived, round;
};

EXPORT int pthread_barrier_init(pthread_barrier_t *memory, const pthread_barrierattr_t *attributes, unsigned threads) {
    if (!vt_active()) return REAL(pthread_barrier_init)(memory, attributes, threads);
    int shares = PTHREAD_PROCESS_PRIVATE;
    if (attributes) pthread_barrierattr_getpshared(attributes, &shares);
    if (shares == PTHREAD_PROCESS_SHARED) vt_refuse("a barrier of several processes", IN_SHARED_MEMORY);
    if (!threads) return EINVAL;
    *(struct barrier *)memory = (struct barrier){.threads = threads};
    return 0;
}

EXPORT int pthread_barrier_wait(pthread_barrier_t *memory) {
    if (!vt_active()) return REAL(pthread_barrier_wait)(memory);
    struct barrier *barrier = (struct barrier *)memory;
    unsigned round = barrier->round;
    if (++barrier->arrived == barrier->threads) {
        barrier->arrived = 0;
        barrier->round++;
        vt_wake(memory, ALL);
        return PTHREAD_BARRIER_SERIAL_THREAD;
    }
    while (barrier->round == round) VT_WAIT(.call = "pthread_barrier_wait", .address = memory, .deadline_ns = NEVER);
    return 0;
}

EXPORT int pthread_barrier_destroy(pthread_barrier_t *memory) {
    return vt_active() ? 0 : REAL(pthread_barrier_destroy)(memory);
}

/* -- futexes of programs that use the system call directly -- */

static long wait_for_futex(uint32_t *word, int operation, uint32_t value, const struct timespec *timeout) {
    if (__atomic_load_n(word, __ATOMIC_SEQ_CST) != value) return -EAGAIN;
    int64_t deadline_ns = NEVER;
    if (timeout && (operation & FUTEX_CMD_MASK) == FUTEX_WAIT) deadline_ns = vt_deadline_after(timeout);
    else if (timeout)
        deadline_ns = vt_deadline(operation & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC, timeout);
    if (deadline_ns <= vt_now_ns) {
        vt_yield();
        return -ETIMEDOUT;
    }
    struct vt_wait wait = {.call = "futex", .address = word, .deadline_ns = deadline_ns};
    if (!(operation & FUTEX_PRIVATE_FLAG)) {  /* another process cannot wake it, but changes the word before it tries */
        wait.value = value;
        wait.is_over = has_changed;
    }
    switch (vt_wait(wait)) {
        case TIMED_OUT: return -ETIMEDOUT;
        case INTERRUPTED: return -EINTR;
        default: return 0;
    }
}

static long futex(uint32_t *word, int operation, uint32_t value, const struct timespec *timeout, uint32_t third) {
    switch (operation & FUTEX_CMD_MASK) {
        case FUTEX_WAIT:
        case FUTEX_WAIT_BITSET: return wait_for_futex(word, operation, value, timeout);
        case FUTEX_WAKE:
        case FUTEX_WAKE_BITSET: return vt_wake(word, (int)value < 0 ? ALL : (int)value);
        case FUTEX_CMP_REQUEUE:
            if (__atomic_load_n(word, __ATOMIC_SEQ_CST) != third) return -EAGAIN;
            /* fallthrough */
        case FUTEX_REQUEUE: return vt_wake(word, ALL);  /* more than necessary: woken threads check again */
        default: vt_refuse("futex", "use another lock: this operation has no virtual form");
    }
}

EXPORT long syscall(long number, ...) {
    va_list values;
    va_start(values, number);
    long a = va_arg(values, long), b = va_arg(values, long), c = va_arg(values, long);
    long d = va_arg(values, long), e = va_arg(values, long), f = va_arg(values, long);
    va_end(values);
    if (vt_active()) switch (number) {
        case SYS_futex: return with_errno(futex((uint32_t *)a, (int)b, (uint32_t)c, (void *)d, (uint32_t)f));
        case SYS_getrandom: vt_fill_with_chance((void *)a, (size_t)b); return b;
        case SYS_clock_gettime: return clock_gettime((clockid_t)a, (struct timespec *)b);
        case SYS_sched_yield: return sched_yield();
        case SYS_close: return close((int)a);  /* libuv closes files this way */
        case SYS_io_uring_setup: return with_errno(-ENOSYS);  /* libuv works without it then */
        default: break;
    }
    return with_errno(raw(number, a, b, c, d, e, f));
}
