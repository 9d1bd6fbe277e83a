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
#define LISTENING "programs in virtual time connect, and cannot listen yet"
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
REFUSED(unsigned, alarm, (unsigned seconds), (seconds), TIMERS)
REFUSED(int, setitimer,
        (__itimer_which_t which, const struct itimerval *restrict value, struct itimerval *restrict before),
        (which, value, before), TIMERS)

REFUSED(int, signalfd, (int fd, const sigset_t *mask, int flags), (fd, mask, flags), SIGNALS)
REFUSED(int, sigwait, (const sigset_t *restrict set, int *restrict number), (set, number), SIGNALS)
REFUSED(int, sigwaitinfo, (const sigset_t *restrict set, siginfo_t *restrict info), (set, info), SIGNALS)
REFUSED(int, sigtimedwait,
        (const sigset_t *restrict set, siginfo_t *restrict info, const struct timespec *restrict timeout),
        (set, info, timeout), SIGNALS)
REFUSED(int, pause, (void), (), SIGNALS)
REFUSED(int, sigsuspend, (const sigset_t *mask), (mask), SIGNALS)
REFUSED(int, pthread_cancel, (pthread_t thread), (thread), "let the thread end by itself")

EXPORT int bind(int fd, const struct sockaddr *address, socklen_t length) {
    int is_of_internet = address->sa_family == AF_INET || address->sa_family == AF_INET6;
    /* A port of its own choice changes nothing for a client. */
    int names_port = is_of_internet && ((const struct sockaddr_in *)address)->sin_port;
    if (vt_active() && names_port) vt_refuse("bind", LISTENING);
    if (vt_active() && is_of_internet) return 0;
    return (int)with_errno(raw(SYS_bind, fd, address, length));
}

EXPORT int listen(int fd, int backlog) {
    int family = 0;
    socklen_t size = sizeof family;
    raw(SYS_getsockopt, fd, SOL_SOCKET, SO_DOMAIN, &family, &size);
    if (vt_active() && (family == AF_INET || family == AF_INET6)) vt_refuse("listen", LISTENING);
    return (int)with_errno(raw(SYS_listen, fd, backlog));
}
