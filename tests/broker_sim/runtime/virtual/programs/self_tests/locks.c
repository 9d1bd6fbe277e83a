#include "self_test.h"
#include <dlfcn.h>
#include <link.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <threads.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static mtx_t mutex_c11;
static cnd_t condition_c11;
static uint32_t word;
static int is_set, once_count;
static sem_t is_held, may_release;

static int answer(struct dl_phdr_info *object, size_t size, void *argument) {
    (void)object, (void)size;
    return *(int *)argument;
}

static void hold(void) {
    sem_post(&is_held);
    sem_wait(&may_release);
}

static void *hold_mutex(void *unused) {
    pthread_mutex_lock(&mutex);
    hold();
    pthread_mutex_unlock(&mutex);
    return unused;
}

static void *hold_rwlock(void *unused) {
    pthread_rwlock_wrlock(&rwlock);
    hold();
    pthread_rwlock_unlock(&rwlock);
    return unused;
}

static void *hold_mutex_c11(void *unused) {
    mtx_lock(&mutex_c11);
    hold();
    mtx_unlock(&mutex_c11);
    return unused;
}

static void *set_all(void *unused) {
    usleep(10000);
    pthread_mutex_lock(&mutex);
    is_set = 1;
    pthread_cond_broadcast(&condition);
    pthread_mutex_unlock(&mutex);
    usleep(10000);
    sem_post(&semaphore);
    usleep(10000);
    mtx_lock(&mutex_c11);
    is_set = 2;
    cnd_signal(&condition_c11);
    mtx_unlock(&mutex_c11);
    usleep(10000);
    __atomic_store_n(&word, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &word, FUTEX_WAKE, 1, 0, 0, 0);
    return unused;
}

static void once_slowly(void) {
    usleep(10000);
    once_count++;
}
static pthread_once_t once = PTHREAD_ONCE_INIT;
static once_flag once_c11 = ONCE_FLAG_INIT;
static void *call_it_once(void *unused) {
    pthread_once(&once, once_slowly);
    return unused;
}

static pthread_barrier_t barrier;
static void *arrive_twice(void *last) {
    for (int round = 0; round < 2; round++) {
        usleep(5000);
        if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) (*(int *)last)++;
    }
    return 0;
}

static void test_barrier(void) {
    pthread_t threads[2];
    int last[2] = {0, 0}, mine = 0;
    RESULT("pthread_barrier_init of nobody", pthread_barrier_init(&barrier, 0, 0) == EINVAL);
    RESULT("pthread_barrier_init", pthread_barrier_init(&barrier, 0, 3));
    for (int each = 0; each < 2; each++) pthread_create(&threads[each], 0, arrive_twice, &last[each]);
    for (int round = 0; round < 2; round++) mine += pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD;
    for (int each = 0; each < 2; each++) pthread_join(threads[each], 0);
    RESULT("pthread_barrier_wait, one thread a round is told", last[0] + last[1] + mine);
    RESULT("pthread_barrier_destroy", pthread_barrier_destroy(&barrier));
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    RESULT("pthread_rwlockattr_setpshared", pthread_rwlockattr_setpshared(&attributes, PTHREAD_PROCESS_PRIVATE));
}

static int wait_until_set(int value) {
    while (is_set < value) pthread_cond_wait(&condition, &mutex);
    return is_set;
}

static int wait_c11(void) {
    mtx_lock(&mutex_c11);
    while (is_set < 2) cnd_wait(&condition_c11, &mutex_c11);
    return mtx_unlock(&mutex_c11) == thrd_success;
}

static void test_held_locks(void) {
    pthread_t holder;
    struct timespec soon;
    pthread_create(&holder, 0, hold_mutex, 0);
    sem_wait(&is_held);
    soon = in_ms(CLOCK_REALTIME, 5);
    TIMED("pthread_mutex_timedlock, held", 5, pthread_mutex_timedlock(&mutex, &soon) == ETIMEDOUT);
    soon = in_ms(CLOCK_MONOTONIC, 2);
    TIMED("pthread_mutex_clocklock, held", 2, pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &soon) == ETIMEDOUT);
    sem_post(&may_release);
    RESULT("pthread_mutex_lock", pthread_mutex_lock(&mutex));
    RESULT("pthread_mutex_unlock", pthread_mutex_unlock(&mutex));
    pthread_join(holder, 0);

    pthread_create(&holder, 0, hold_rwlock, 0);
    sem_wait(&is_held);
    soon = in_ms(CLOCK_REALTIME, 5);
    TIMED("pthread_rwlock_timedrdlock, held", 5, pthread_rwlock_timedrdlock(&rwlock, &soon) == ETIMEDOUT);
    soon = in_ms(CLOCK_REALTIME, 2);
    TIMED("pthread_rwlock_timedwrlock, held", 2, pthread_rwlock_timedwrlock(&rwlock, &soon) == ETIMEDOUT);
    sem_post(&may_release);
    RESULT("pthread_rwlock_rdlock", pthread_rwlock_rdlock(&rwlock));
    RESULT("pthread_rwlock_unlock", pthread_rwlock_unlock(&rwlock));
    RESULT("pthread_rwlock_wrlock", pthread_rwlock_wrlock(&rwlock));
    pthread_rwlock_unlock(&rwlock);
    pthread_join(holder, 0);

    mtx_init(&mutex_c11, mtx_timed);
    pthread_create(&holder, 0, hold_mutex_c11, 0);
    sem_wait(&is_held);
    soon = in_ms(CLOCK_REALTIME, 5);
    TIMED("mtx_timedlock, held", 5, mtx_timedlock(&mutex_c11, &soon) == thrd_timedout);
    sem_post(&may_release);
    RESULT("mtx_lock", mtx_lock(&mutex_c11) == thrd_success);
    RESULT("mtx_unlock", mtx_unlock(&mutex_c11) == thrd_success);
    pthread_join(holder, 0);
}

static void test_timeouts(void) {
    struct timespec soon = in_ms(CLOCK_REALTIME, 10);
    pthread_mutex_lock(&mutex);
    TIMED("pthread_cond_timedwait", 10, pthread_cond_timedwait(&condition, &mutex, &soon) == ETIMEDOUT);
    TIMED("pthread_cond_timedwait, past", 0, pthread_cond_timedwait(&condition, &mutex, &soon) == ETIMEDOUT);
    soon = in_ms(CLOCK_MONOTONIC, 10);
    TIMED("pthread_cond_clockwait", 10,
          pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &soon) == ETIMEDOUT);
    pthread_condattr_t attributes;
    pthread_cond_t monotonic;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&monotonic, &attributes);
    soon = in_ms(CLOCK_MONOTONIC, 10);
    TIMED("a condition of the monotonic clock", 10, pthread_cond_timedwait(&monotonic, &mutex, &soon) == ETIMEDOUT);
    pthread_mutex_unlock(&mutex);
    soon = in_ms(CLOCK_REALTIME, 10);
    TIMED("sem_timedwait", 10, sem_timedwait(&semaphore, &soon) == -1 && errno == ETIMEDOUT);
    soon = in_ms(CLOCK_MONOTONIC, 10);
    TIMED("sem_clockwait", 10, sem_clockwait(&semaphore, CLOCK_MONOTONIC, &soon) == -1 && errno == ETIMEDOUT);
    soon = in_ms(-1, 10);
    TIMED("futex with a timeout", 10, syscall(SYS_futex, &word, FUTEX_WAIT, 0, &soon, 0, 0) == -1 && errno == ETIMEDOUT);
    RESULT("futex of another value", syscall(SYS_futex, &word, FUTEX_WAIT, 9, 0, 0, 0) == -1 && errno == EAGAIN);
    mtx_lock(&mutex_c11);
    soon = in_ms(CLOCK_REALTIME, 10);
    TIMED("cnd_timedwait", 10, cnd_timedwait(&condition_c11, &mutex_c11, &soon) == thrd_timedout);
    mtx_unlock(&mutex_c11);
}

void test_locks(void) {
    pthread_t thread;
    sem_init(&semaphore, 0, 0);
    sem_init(&is_held, 0, 0);
    sem_init(&may_release, 0, 0);
    cnd_init(&condition_c11);
    test_held_locks();
    test_timeouts();
    test_barrier();
    pthread_create(&thread, 0, set_all, 0);
    pthread_mutex_lock(&mutex);
    WOKEN("pthread_cond_wait, pthread_cond_broadcast", 10, wait_until_set(1));
    pthread_mutex_unlock(&mutex);
    RESULT("sem_wait, sem_post", sem_wait(&semaphore));
    RESULT("cnd_wait, cnd_signal", wait_c11());
    long waited = word ? 0 : syscall(SYS_futex, &word, FUTEX_WAIT, 0, 0, 0, 0);
    RESULT("futex, woken", waited == 0 || errno == EAGAIN);
    pthread_join(thread, 0);
    cnd_broadcast(&condition_c11);
    pthread_cond_signal(&condition);

    pthread_create(&thread, 0, call_it_once, 0);
    pthread_once(&once, once_slowly);
    pthread_join(thread, 0);
    RESULT("pthread_once", once_count);
    call_once(&once_c11, once_slowly);
    call_once(&once_c11, once_slowly);
    RESULT("call_once", once_count);

    RESULT("ftrylockfile", ftrylockfile(stdout));
    flockfile(stdout);
    funlockfile(stdout);
    funlockfile(stdout);
    RESULT("dl_iterate_phdr", dl_iterate_phdr(answer, &once_count));
    RESULT("dlclose", dlclose(dlopen("libm.so.6", RTLD_NOW)));
}
