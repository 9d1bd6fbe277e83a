/* What has no virtual form ends the program at once, with the name of the call and the stack of its caller.
 *
 * The alternative is a program that hangs, or one whose run does not repeat, and nobody knows why.
 */
#include "library.h"
#include <netdb.h>
#include <netinet/in.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

void vt_refuse(const char *call, const char *advice) {
    char text[512];
    snprintf(text, sizeof text, "%s has no virtual form: %s", call, advice);
    vt_send_refusal(text);
    abort();  /* prints the stack: report.c */
}

#define CHILDREN "a process that the program starts would run in real time; start it as a program of its own"
#define TIMERS "use a timeout of poll, of epoll_wait or of a condition"
#define SIGNALS "use a handler, which runs at the exact virtual time"

/* NAME(arguments) of a function that returns `type`. */
#define REFUSED(type, name, parameters, arguments, advice)                                                             \
    EXPORT type name parameters {                                                                                      \
        if (vt_active()) vt_refuse(#name, advice);                                                                     \
        return REAL(name) arguments;                                                                                   \
    }

REFUSED(pid_t, fork, (void), (), CHILDREN)
/* A function that returns twice cannot be wrapped; what vfork promises holds for fork too. */
EXPORT pid_t vfork(void) {
    if (vt_active()) vt_refuse("vfork", CHILDREN);
    return REAL(fork)();
}
REFUSED(int, posix_spawn,
        (pid_t *restrict pid, const char *restrict path, const posix_spawn_file_actions_t *actions,
         const posix_spawnattr_t *restrict attributes, char *const argv[], char *const environment[]),
        (pid, path, actions, attributes, argv, environment), CHILDREN)
REFUSED(int, posix_spawnp,
        (pid_t *restrict pid, const char *restrict path, const posix_spawn_file_actions_t *actions,
         const posix_spawnattr_t *restrict attributes, char *const argv[], char *const environment[]),
        (pid, path, actions, attributes, argv, environment), CHILDREN)
REFUSED(int, system, (const char *command), (command), CHILDREN)
REFUSED(FILE *, popen, (const char *command, const char *mode), (command, mode), CHILDREN)

REFUSED(int, timerfd_create, (clockid_t clock, int flags), (clock, flags), TIMERS)
REFUSED(int, timer_create, (clockid_t clock, struct sigevent *restrict event, timer_t *restrict timer),
        (clock, event, timer), TIMERS)

REFUSED(int, signalfd, (int fd, const sigset_t *mask, int flags), (fd, mask, flags), SIGNALS)
REFUSED(int, sigwait, (const sigset_t *restrict set, int *restrict number), (set, number), SIGNALS)
REFUSED(int, sigwaitinfo, (const sigset_t *restrict set, siginfo_t *restrict info), (set, info), SIGNALS)
REFUSED(int, sigtimedwait,
        (const sigset_t *restrict set, siginfo_t *restrict info, const struct timespec *restrict timeout),
        (set, info, timeout), SIGNALS)
REFUSED(int, pause, (void), (), SIGNALS)
REFUSED(int, sigsuspend, (const sigset_t *mask), (mask), SIGNALS)
REFUSED(int, pthread_cancel, (pthread_t thread), (thread), "let the thread end by itself")
