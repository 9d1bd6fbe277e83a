/* Signals: the simulator decides when they arrive, and the main thread takes them while it waits.
 *
 * The kernel may send SIGCHLD at any moment, so its disposition stays the default, which ignores it, and the
 * program's handler is kept here. Signals to other processes go to the simulator.
 */
#include "library.h"
#include <fcntl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define MOST_SIGNAL_FILES 8
#define SIGSET_BYTES 8

static struct sigaction on_child;  /* the program's own action for SIGCHLD */

static int is_handled(const struct sigaction *action) {
    return action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
}

EXPORT int sigaction(int number, const struct sigaction *restrict action, struct sigaction *restrict before) {
    if (number != SIGCHLD || !vt_enabled) return REAL(sigaction)(number, action, before);
    struct sigaction previous = on_child;
    if (action) {
        on_child = *action;
        struct sigaction kernels = {
            .sa_handler = is_handled(action) ? SIG_DFL : action->sa_handler, .sa_flags = action->sa_flags & SA_NOCLDWAIT};
        REAL(sigaction)(SIGCHLD, &kernels, 0);
    }
    if (before) *before = previous;
    return 0;
}

EXPORT sighandler_t signal(int number, sighandler_t handler) {
    if (number != SIGCHLD || !vt_enabled) return REAL(signal)(number, handler);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART}, before;
    sigaction(number, &action, &before);
    return before.sa_handler;
}

static int is_blocked(int number) {
    sigset_t blocked;
    REAL(pthread_sigmask)(SIG_BLOCK, 0, &blocked);
    return sigismember(&blocked, number);
}

int vt_is_signal_ignored(int number) { return number == SIGCHLD && !is_handled(&on_child) && !is_blocked(SIGCHLD); }

/* Deliver a signal to the calling thread now; return 0 if the thread blocks it. */
int vt_take_signal(int number, pid_t thread) {
    struct sigaction action;
    if (is_blocked(number)) return 0;
    REAL(sigaction)(number, 0, &action);
    if (number == SIGCHLD) {
        REAL(sigaction)(SIGCHLD, &on_child, &action);
    }
    raw(SYS_tgkill, vt_pid, thread, number);
    if (number == SIGCHLD) {
        REAL(sigaction)(SIGCHLD, &action, 0);
        action = on_child;
    }
    vt_restarts = action.sa_flags & SA_RESTART;
    return 1;
}

EXPORT int kill(pid_t pid, int number) {
    if (!vt_active()) return (int)with_errno(raw(SYS_kill, pid, number));
    vt_count_call();
    if (number == SIGSTOP || number == SIGTSTP) vt_refuse("kill with SIGSTOP", "freeze the whole program from the test");
    if (pid == vt_pid) return number && number != SIGKILL ? vt_raise(number) : (int)with_errno(raw(SYS_kill, pid, number));
    int error = vt_send_signal(pid, number);
    return (int)with_errno(error == NOT_OURS ? raw(SYS_kill, pid, number) : -error);
}

EXPORT int killpg(pid_t group, int number) { return kill(group ? -group : 0, number); }

static int wait_for_signal(const char *call) {
    VT_WAIT(.call = call, .deadline_ns = NEVER);
    return (int)with_errno(-EINTR);
}

EXPORT int pause(void) { return vt_active() ? wait_for_signal("pause") : REAL(pause)(); }

EXPORT int sigsuspend(const sigset_t *mask) {
    if (!vt_active()) return REAL(sigsuspend)(mask);
    return WITH_MASK(mask, wait_for_signal("sigsuspend"));
}

/* -- masks -- */

EXPORT int pthread_sigmask(int how, const sigset_t *restrict set, sigset_t *restrict before) {
    int error = REAL(pthread_sigmask)(how, set, before);
    if (vt_active() && set) vt_take_pending();
    return error;
}

EXPORT int sigprocmask(int how, const sigset_t *restrict set, sigset_t *restrict before) {
    return (int)with_errno(-pthread_sigmask(how, set, before));
}

int vt_enter_mask(const sigset_t *mask, sigset_t *before) {
    if (!mask) return 0;
    REAL(pthread_sigmask)(SIG_SETMASK, mask, before);
    return vt_take_pending();
}

void vt_leave_mask(const sigset_t *mask, const sigset_t *before) {
    if (mask) REAL(pthread_sigmask)(SIG_SETMASK, before, 0);
}

/* -- signals that threads wait for -- */

EXPORT int sigtimedwait(const sigset_t *restrict set, siginfo_t *restrict news, const struct timespec *restrict timeout) {
    if (!vt_active()) return REAL(sigtimedwait)(set, news, timeout);
    const struct timespec no_time = {0, 0};
    long number = raw(SYS_rt_sigtimedwait, set, news, &no_time, SIGSET_BYTES);
    if (number > 0) return (int)number;
    number = vt_take_held(set);
    if (!number) {
        int64_t deadline_ns = timeout ? vt_deadline_after(timeout) : NEVER;
        enum vt_outcome outcome = VT_WAIT(.call = "sigwait", .signals = set, .deadline_ns = deadline_ns);
        if (outcome != WOKEN) return (int)with_errno(outcome == TIMED_OUT ? -EAGAIN : -EINTR);
        number = vt_self->awaited_signal;
    }
    if (news) *news = (siginfo_t){.si_signo = (int)number};
    return (int)number;
}

EXPORT int sigwaitinfo(const sigset_t *restrict set, siginfo_t *restrict news) { return sigtimedwait(set, news, 0); }

EXPORT int sigwait(const sigset_t *restrict set, int *restrict number) {
    if (!vt_active()) return REAL(sigwait)(set, number);
    do *number = sigtimedwait(set, 0, 0);
    while (*number < 0 && errno == EINTR);
    return *number < 0 ? errno : 0;
}

/* A signalfd is one end of a pipe: the record of a signal is written to it when the signal arrives. */
static struct {
    int fd, source;  /* 0: free */
    sigset_t set;
} files[MOST_SIGNAL_FILES];

void vt_forget_signals(int fd) {
    for (int i = 0; i < MOST_SIGNAL_FILES; i++)
        if (files[i].source && files[i].fd == fd) {
            raw(SYS_close, files[i].source);
            files[i].source = 0;
        }
}

int vt_write_signal(int number) {
    for (int i = 0; i < MOST_SIGNAL_FILES; i++) {
        if (!files[i].source || !sigismember(&files[i].set, number)) continue;
        struct signalfd_siginfo news = {.ssi_signo = (uint32_t)number};
        raw(SYS_write, files[i].source, &news, sizeof news);
        return 1;
    }
    return 0;
}

EXPORT int signalfd(int fd, const sigset_t *set, int flags) {
    if (!vt_active()) return REAL(signalfd)(fd, set, flags);
    int ends[2], slot = 0;
    while (slot < MOST_SIGNAL_FILES && (fd < 0 ? files[slot].source : files[slot].fd != fd)) slot++;
    if (slot == MOST_SIGNAL_FILES) return (int)with_errno(fd < 0 ? -ENFILE : -EINVAL);
    files[slot].set = *set;
    if (fd >= 0) return fd;
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK)) return -1;
    if (!(flags & SFD_NONBLOCK)) raw(SYS_fcntl, ends[0], F_SETFL, O_RDONLY);
    if (!(flags & SFD_CLOEXEC)) raw(SYS_fcntl, ends[0], F_SETFD, 0);
    files[slot].source = (int)raw(SYS_fcntl, ends[1], F_DUPFD_CLOEXEC, CONTROL_FD_FROM);
    raw(SYS_close, ends[1]);
    return files[slot].fd = ends[0];
}
