/* A fork server: a program that has started, and waits to be copied. Each copy goes on as a program of its own. */
#include "library.h"
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_OUTPUTS 256  /* descriptors that may be copies of the standard output */

/* Give each copy of the standard output, such as one that a test tool keeps, the new file. */
static void replace_output(int output) {
    struct stat old, each;
    fstat(STDOUT_FILENO, &old);
    for (int fd = STDOUT_FILENO; fd < MOST_OUTPUTS; fd++) {
        if (fd == output || fstat(fd, &each) || each.st_dev != old.st_dev || each.st_ino != old.st_ino) continue;
        raw(SYS_dup3, output, fd, raw(SYS_fcntl, fd, F_GETFD, 0) & FD_CLOEXEC ? O_CLOEXEC : 0);
    }
    raw(SYS_close, output);
}

static int64_t microseconds(struct timeval time) { return time.tv_sec * 1000000LL + time.tv_usec; }

static void become_copy(const struct vt_request *request, const int fds[2]) {
    replace_output(fds[1]);
    vt_begin_processes(request->seed);
    vt_become_child();
    vt_begin_order(request->order);
    vt_begin_chance(request->seed);
    vt_begin_conversation_of_copy(fds[0]);
}

/* Return the descriptor of a file for the copy in each of them, -1 if the program cannot be copied. The fork server does
 * not return; it only waits and forks, so that all copies have the same memory. */
EXPORT int virtual_time_serve_forks(void) {
    if (!vt_active() || vt_threads->next) return -1;
    vt_send_serves();
    for (;;) {
        struct vt_request request;
        int fds[FORK_FDS], status = 0;
        vt_receive_request(&request, fds);
        if (request.kind == WAIT) {
            struct rusage usage = {0};
            while (raw(SYS_wait4, request.pid, &status, 0, &usage) == -EINTR) continue;
            vt_send_ended(status, microseconds(usage.ru_utime) + microseconds(usage.ru_stime));
            continue;
        }
        pid_t pid = REAL(fork)();
        if (!pid) {
            become_copy(&request, fds);
            return fds[2];
        }
        for (int i = 0; i < FORK_FDS; i++) raw(SYS_close, fds[i]);
        vt_send_forked(pid < 0 ? -errno : pid);
    }
}
