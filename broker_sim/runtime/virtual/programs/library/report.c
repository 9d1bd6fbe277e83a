/* Texts for errors: what each thread waits for, and the stack of a thread that never waits. */
#include "library.h"
#include <execinfo.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define MOST_FRAMES 16

static void name_of(const struct vt_thread *thread, char *name, size_t size) {
    if (pthread_getname_np(thread->handle, name, size)) snprintf(name, size, "?");
}

static const struct vt_thread *holder_of(const pthread_mutex_t *mutex) {
    for (struct vt_thread *each = vt_threads; each; each = each->next)
        if (each->tid == mutex->__data.__owner) return each;
    return 0;
}

static size_t describe_wait(const struct vt_thread *thread, char *text, size_t size) {
    const struct vt_wait *wait = &thread->wait;
    size_t used = (size_t)snprintf(text, size, "waits in %s", wait->call ? wait->call : "?");
    for (nfds_t i = 0; wait->fds && i < wait->fd_count && used < size; i++) {
        if (wait->fds[i].fd < 0) continue;
        used += (size_t)snprintf(text + used, size - used, "%s %d", i ? "," : " for file", wait->fds[i].fd);
        if (used < size) used += (size_t)vt_describe_connection(wait->fds[i].fd, text + used, size - used);
    }
    const struct vt_thread *holder = 0;
    if (wait->is_for_lock && wait->call && !strncmp(wait->call, "pthread_mutex", 13)) holder = holder_of(wait->address);
    if (holder && used < size) used += (size_t)snprintf(text + used, size - used, ", held by thread %d", holder->number);
    if (wait->deadline_ns < NEVER && used < size)
        used += (size_t)snprintf(text + used, size - used, " until %.6f s", (double)wait->deadline_ns / NS_PER_S);
    return used;
}

/* Write one line for each thread; return the number of bytes. */
size_t vt_describe_threads(char *text, size_t size) {
    size_t used = 0;
    for (struct vt_thread *each = vt_threads; each && used + 256 < size; each = each->next) {
        char name[32];
        if (each->state == EXITED) continue;
        name_of(each, name, sizeof name);
        used += (size_t)snprintf(text + used, size - used, "  thread %d (%s) ", each->number, name);
        if (each->state == BLOCKED) used += describe_wait(each, text + used, size - used);
        else used += (size_t)snprintf(text + used, size - used, "is about to run");
        if (used + 1 < size) used += (size_t)snprintf(text + used, size - used, "\n");
    }
    return used < size ? used : size;
}

/* The simulator sends SIGABRT to a program that never waits. Python's own handler, which its environment switches on,
 * prints the lines of the program first and then calls this one. */
static void on_abort(int number) {
    void *frames[MOST_FRAMES];
    int count = backtrace(frames, MOST_FRAMES);
    static const char title[] = "broker-sim: stack of the running thread:\n";
    raw(SYS_write, STDERR_FILENO, title, sizeof title - 1);
    backtrace_symbols_fd(frames, count, STDERR_FILENO);
    struct sigaction usual = {.sa_handler = SIG_DFL};
    sigaction(number, &usual, 0);
    raw(SYS_tgkill, vt_pid, raw(SYS_gettid), number);
}

void vt_begin_reports(void) {
    void *frame;
    backtrace(&frame, 1);  /* loads its library now, and not in a signal handler */
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    struct sigaction action = {.sa_handler = on_abort};
    sigaction(SIGABRT, &action, 0);
}
