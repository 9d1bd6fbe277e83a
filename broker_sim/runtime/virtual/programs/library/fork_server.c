/* A fork server: a program that has started, and waits to be copied. Each copy goes on as a program of its own. */
#include "library.h"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_FD 899  /* of the file for the copy: see fork_hook/sitecustomize.py */

static int64_t microseconds(struct timeval time) { return time.tv_sec * 1000000LL + time.tv_usec; }

static void wait_for_copy(pid_t pid) {
    struct rusage usage = {0};
    int status = 0;
    while (raw(SYS_wait4, pid, &status, 0, &usage) == -EINTR) continue;
    vt_send_ended(status, microseconds(usage.ru_utime) + microseconds(usage.ru_stime));
}

static void become_copy(const struct vt_request *request, const int fds[FORK_FDS]) {
    unsetenv("VT_SERVES");
    raw(SYS_dup3, fds[1], STDOUT_FILENO, 0);
    raw(SYS_dup3, fds[1], STDERR_FILENO, 0);
    raw(SYS_dup3, fds[2], START_FD, O_CLOEXEC);
    raw(SYS_close, fds[1]);
    raw(SYS_close, fds[2]);
    vt_become_program(request->seed);
    vt_begin_order(request->order);
    vt_begin_conversation_of_copy(fds[0]);
}

/* Return 0 in each copy, -1 if the program cannot be copied. The fork server does not return; it only waits and forks,
 * so that all copies have the same memory. It ends with the conversation, whichever thread has started it. */
pid_t vt_serve_forks(void) {
    if (vt_threads->next) return (pid_t)with_errno(-EAGAIN);
    raw(SYS_prctl, PR_SET_PDEATHSIG, 0, 0, 0, 0);
    vt_send_serves();
    for (;;) {
        struct vt_request request;
        int fds[FORK_FDS];
        vt_receive_request(&request, fds);
        if (request.kind == WAIT) {
            wait_for_copy(request.pid);
            continue;
        }
        pid_t pid = REAL(fork)();
        if (!pid) {
            become_copy(&request, fds);
            return 0;
        }
        for (int i = 0; i < FORK_FDS; i++) raw(SYS_close, fds[i]);
        vt_send_forked(pid < 0 ? -errno : pid);
    }
}
