/* POSIX and C11 threads: each waits for the token before its first step, and gives it up when it ends. */
#include "library.h"
#include <limits.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <threads.h>
#include <unistd.h>

#define STACKS_FROM 0x300000000000
#define STACK_ROOM (64UL << 20)
#define USUAL_STACK (8UL << 20)
#define STACK_UNIT (64UL << 10)

static pthread_key_t end_key;
static pthread_once_t key_once = PTHREAD_ONCE_INIT;

static void on_end(void *thread) {
    struct vt_thread *self = thread;
    /* Destructors of the program's own keys run first. */
    if (++self->exit_rounds < PTHREAD_DESTRUCTOR_ITERATIONS) pthread_setspecific(end_key, self);
    else vt_end_thread(self);
}

static void make_key(void) { pthread_key_create(&end_key, on_end); }

static void *run(void *argument) {
    struct vt_thread *self = argument;
    vt_begin_thread(self);
    pthread_setspecific(end_key, self);
    if (self->start_c11) return (void *)(intptr_t)self->start_c11(self->argument);
    return self->start(self->argument);
}

/* A stack's address follows from the number of its thread: librdkafka seeds random numbers with `pthread_self()`, and
 * libc's choice of a stack depends on all earlier allocations. */
static void place_stack(pthread_attr_t *attributes, struct vt_thread *thread) {
    size_t size = 0, guard = 0, page = (size_t)sysconf(_SC_PAGESIZE);
    pthread_attr_getstacksize(attributes, &size);
    pthread_attr_getguardsize(attributes, &guard);
    guard = (guard + page - 1) & ~(page - 1);
    if (size < STACK_UNIT) size = USUAL_STACK;
    size = (size + STACK_UNIT - 1) & ~(STACK_UNIT - 1);
    if (size + guard > STACK_ROOM / 2) return;  /* libc places larger stacks than usual */
    char *top = (char *)STACKS_FROM + (size_t)(vt_thread_count() + 1) * STACK_ROOM;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK | MAP_FIXED_NOREPLACE;
    void *stack = (void *)raw(SYS_mmap, top - size - guard, size + guard, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (stack != top - size - guard) return;
    raw(SYS_mprotect, stack, guard, PROT_NONE);
    thread->stack = stack;
    thread->stack_size = size + guard;
    thread->guard_size = guard;
    pthread_attr_setstack(attributes, top - size, size);
}

/* libc reports no guard for a stack that the caller has set; Rust's threads refuse to run without one. */
EXPORT int pthread_getattr_np(pthread_t handle, pthread_attr_t *attributes) {
    int error = REAL(pthread_getattr_np)(handle, attributes);
    struct vt_thread *thread = error || !vt_active() ? 0 : vt_thread_of(handle);
    if (thread && thread->stack) pthread_attr_setguardsize(attributes, thread->guard_size);
    return error;
}

static int create(pthread_t *handle, const pthread_attr_t *requested, struct vt_thread *thread) {
    REAL(pthread_once)(&key_once, make_key);
    pthread_attr_t attributes;
    if (requested) attributes = *requested;
    else pthread_attr_init(&attributes);
    int detached = 0;
    pthread_attr_getdetachstate(&attributes, &detached);
    thread->is_detached = detached == PTHREAD_CREATE_DETACHED;
    place_stack(&attributes, thread);
    int error = REAL(pthread_create)(handle, &attributes, run, thread);
    if (error) {
        free(thread);
        return error;
    }
    thread->handle = *handle;
    vt_add_thread(thread);
    return 0;
}

EXPORT int pthread_create(pthread_t *handle, const pthread_attr_t *attributes, void *(*start)(void *), void *argument) {
    if (!vt_active()) return REAL(pthread_create)(handle, attributes, start, argument);
    struct vt_thread *thread = vt_new_thread();
    thread->start = start;
    thread->argument = argument;
    return create(handle, attributes, thread);
}

EXPORT int thrd_create(thrd_t *handle, thrd_start_t start, void *argument) {
    if (!vt_active()) return REAL(thrd_create)(handle, start, argument);
    struct vt_thread *thread = vt_new_thread();
    thread->start_c11 = start;
    thread->argument = argument;
    return create(handle, 0, thread) ? thrd_error : thrd_success;
}

static int join(pthread_t handle, void **result, int64_t deadline_ns) {
    struct vt_thread *thread = vt_thread_of(handle);
    if (!thread) return REAL(pthread_join)(handle, result);
    while (__atomic_load_n(&thread->state, __ATOMIC_ACQUIRE) != EXITED)
        if (VT_WAIT(.call = "pthread_join", .address = thread, .deadline_ns = deadline_ns) == TIMED_OUT)
            return ETIMEDOUT;
    int error = REAL(pthread_join)(handle, result);
    vt_remove_thread(thread);
    if (thread->stack) raw(SYS_munmap, thread->stack, thread->stack_size);
    free(thread);
    return error;
}

EXPORT int pthread_join(pthread_t handle, void **result) {
    return vt_active() ? join(handle, result, NEVER) : REAL(pthread_join)(handle, result);
}

EXPORT int pthread_timedjoin_np(pthread_t handle, void **result, const struct timespec *until) {
    if (!vt_active()) return REAL(pthread_timedjoin_np)(handle, result, until);
    return join(handle, result, vt_deadline(CLOCK_REALTIME, until));
}

EXPORT int thrd_join(thrd_t handle, int *result) {
    if (!vt_active()) return REAL(thrd_join)(handle, result);
    void *value = 0;
    int error = join(handle, &value, NEVER);
    if (result) *result = (int)(intptr_t)value;
    return error ? thrd_error : thrd_success;
}

EXPORT int pthread_detach(pthread_t handle) {
    struct vt_thread *thread = vt_active() ? vt_thread_of(handle) : 0;
    if (thread) {
        thread->is_detached = 1;
        if (thread->state == EXITED) vt_remove_thread(thread);
    }
    return REAL(pthread_detach)(handle);
}

EXPORT int thrd_detach(thrd_t handle) { return pthread_detach(handle) ? thrd_error : thrd_success; }

EXPORT int sched_yield(void) {
    if (!vt_active()) return (int)with_errno(raw(SYS_sched_yield));
    vt_yield();
    return 0;
}

EXPORT void thrd_yield(void) { sched_yield(); }
