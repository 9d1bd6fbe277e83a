#include "self_test.h"
#include <pthread.h>
#include <sched.h>
#include <threads.h>
#include <unistd.h>

static void *give_back(void *value) {
    usleep(10000);
    return value;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void *wait_for_mutex(void *unused) {
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    return unused;
}

static int give_seven(void *unused) {
    (void)unused;
    usleep(10000);
    return 7;
}

static int ends;
static void count_end(void *unused) {
    (void)unused;
    ends++;
}

static void *leave(void *key) {
    pthread_setspecific(*(pthread_key_t *)key, key);
    pthread_exit((void *)5);
}

static void *tell_stack(void *without_guard) {
    pthread_attr_t attributes;
    void *low = 0;
    size_t size = 0, guard = 0;
    RESULT("pthread_getattr_np", pthread_getattr_np(pthread_self(), &attributes));
    pthread_attr_getstack(&attributes, &low, &size);
    pthread_attr_getguardsize(&attributes, &guard);
    RESULT("its stack has this variable", (char *)&guard > (char *)low && (char *)&guard < (char *)low + size);
    RESULT("its guard", without_guard ? guard : guard == (size_t)sysconf(_SC_PAGESIZE));
    pthread_attr_destroy(&attributes);
    return 0;
}

static void test_guards(void) {
    pthread_t thread;
    pthread_attr_t without;
    pthread_attr_init(&without);
    pthread_attr_setguardsize(&without, 0);
    pthread_create(&thread, 0, tell_stack, 0);
    pthread_join(thread, 0);
    pthread_create(&thread, &without, tell_stack, (void *)1);
    pthread_join(thread, 0);
}

void test_threads(void) {
    pthread_t thread, twin;
    void *value = 0;
    pthread_create(&thread, 0, give_back, (void *)3);
    pthread_create(&twin, 0, give_back, (void *)4);
    WOKEN("pthread_join", 10, pthread_join(thread, &value));
    RESULT("its value", (long)value);
    WOKEN("pthread_join, both slept together", 0, pthread_join(twin, &value));

    pthread_mutex_lock(&mutex);
    pthread_create(&thread, 0, wait_for_mutex, 0);
    struct timespec soon = in_ms(CLOCK_REALTIME, 2);
    TIMED("pthread_timedjoin_np, too early", 2, pthread_timedjoin_np(thread, &value, &soon) == ETIMEDOUT);
    pthread_mutex_unlock(&mutex);
    struct timespec late = in_ms(CLOCK_REALTIME, 60000);
    RESULT("pthread_timedjoin_np", pthread_timedjoin_np(thread, &value, &late));

    pthread_key_t key;
    pthread_key_create(&key, count_end);
    pthread_create(&thread, 0, leave, &key);
    pthread_join(thread, &value);
    RESULT("pthread_exit", (long)value);
    RESULT("destructors of a thread", ends);

    pthread_create(&thread, 0, give_back, 0);
    RESULT("pthread_detach", pthread_detach(thread));
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    RESULT("pthread_create, detached", pthread_create(&thread, &detached, give_back, 0));
    usleep(20000);

    thrd_t of_c11;
    int seven = 0;
    RESULT("thrd_create", thrd_create(&of_c11, give_seven, 0) == thrd_success);
    RESULT("thrd_join", thrd_join(of_c11, &seven) == thrd_success);
    RESULT("its result", seven);
    thrd_create(&of_c11, give_seven, 0);
    RESULT("thrd_detach", thrd_detach(of_c11) == thrd_success);
    test_guards();
    RESULT("sched_yield", sched_yield());
    thrd_yield();
    usleep(20000);
}
