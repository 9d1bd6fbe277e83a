/* Calls that are not supported in virtual time end the program at once, with the call's name and the caller's stack.
 *
 * Otherwise the program would hang, or its runs would differ, without any hint why.
 */
#include "library.h"
#include <netdb.h>
#include <netinet/in.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

void vt_refuse(const char *call, const char *advice) {
    char text[512];
    snprintf(text, sizeof text, "%s has no virtual form: %s", call, advice);
    vt_send_refusal(text);
    abort();  /* prints the stack: report.c */
}

#define CHILDREN "keep the program in the foreground"
#define TIMERS "use a timeout of poll, of epoll_wait or of a condition"

/* NAME(arguments) of a function that returns `type`. */
#define REFUSED(type, name, parameters, arguments, advice)                                                             \
    EXPORT type name parameters {                                                                                      \
        if (vt_active()) vt_refuse(#name, advice);                                                                     \
        return REAL(name) arguments;                                                                                   \
    }

REFUSED(int, daemon, (int stays, int keeps_streams), (stays, keeps_streams), CHILDREN)
REFUSED(pid_t, forkpty,
        (int *end, char *name, const struct termios *terminal, const struct winsize *size), (end, name, terminal, size),
        CHILDREN)

EXPORT int timer_create(clockid_t clock, struct sigevent *restrict event, timer_t *restrict timer) {
    if (!vt_active()) return REAL(timer_create)(clock, event, timer);
    if (event) vt_refuse("timer_create", TIMERS);
    return (int)with_errno(-ENOSYS);  /* timeout(1) uses alarm then */
}

REFUSED(int, pthread_cancel, (pthread_t thread), (thread), "let the thread end by itself")
