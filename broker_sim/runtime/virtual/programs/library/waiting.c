/* Waiting for files, and blocking reads: the kernel reports what is ready, and time is virtual. */
#include "library.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define SIGSET_BYTES 8

static long poll_now(struct pollfd *fds, nfds_t count) {
    const struct timespec no_time = {0, 0};
    return raw(SYS_ppoll, fds, count, &no_time, 0, 0);
}

int vt_poll(const char *call, struct pollfd *fds, nfds_t count, int64_t deadline_ns) {
    long ready = poll_now(fds, count);
    if (ready) return (int)with_errno(ready);
    if (deadline_ns <= vt_now_ns) {
        vt_yield();
        return (int)with_errno(poll_now(fds, count));
    }
    for (;;) {
        enum vt_outcome outcome = VT_WAIT(.call = call, .fds = fds, .fd_count = count, .deadline_ns = deadline_ns);
        if (outcome == INTERRUPTED) return (int)with_errno(-EINTR);
        ready = poll_now(fds, count);
        if (ready || outcome == TIMED_OUT) return (int)with_errno(ready);
    }
}

static int64_t after_ms(int ms) { return ms < 0 ? NEVER : vt_now_ns + ms * NS_PER_MS; }

/* -- poll -- */

EXPORT int poll(struct pollfd *fds, nfds_t count, int timeout_ms) {
    if (!vt_active()) return REAL(poll)(fds, count, timeout_ms);
    return vt_poll("poll", fds, count, after_ms(timeout_ms));
}

EXPORT int __poll_chk(struct pollfd *fds, nfds_t count, int timeout_ms, size_t size) {
    (void)size;
    return poll(fds, count, timeout_ms);
}

EXPORT int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask) {
    if (!vt_active()) return REAL(ppoll)(fds, count, timeout, mask);
    int64_t deadline_ns = timeout ? vt_deadline_after(timeout) : NEVER;
    return WITH_MASK(mask, vt_poll("ppoll", fds, count, deadline_ns));
}

/* -- select -- */

static int wait_for_sets(
    const char *call, int count, fd_set *reads, fd_set *writes, fd_set *others, int64_t deadline_ns) {
    struct pollfd *fds = alloca(sizeof *fds * (size_t)(count + 1));
    nfds_t used = 0;
    for (int fd = 0; fd < count; fd++) {
        int events = (reads && FD_ISSET(fd, reads) ? POLLIN : 0) | (writes && FD_ISSET(fd, writes) ? POLLOUT : 0) |
                     (others && FD_ISSET(fd, others) ? POLLPRI : 0);
        if (events) fds[used++] = (struct pollfd){fd, (short)events, 0};
    }
    int ready = vt_poll(call, fds, used, deadline_ns), bits = 0;
    if (ready < 0) return ready;
    size_t bytes = (size_t)(count + 63) / 64 * 8;
    if (reads) memset(reads, 0, bytes);
    if (writes) memset(writes, 0, bytes);
    if (others) memset(others, 0, bytes);
    for (nfds_t i = 0; i < used; i++) {
        short events = fds[i].events, seen = fds[i].revents;
        if ((events & POLLIN) && (seen & (POLLIN | POLLHUP | POLLERR))) FD_SET(fds[i].fd, reads), bits++;
        if ((events & POLLOUT) && (seen & (POLLOUT | POLLERR))) FD_SET(fds[i].fd, writes), bits++;
        if ((events & POLLPRI) && (seen & POLLPRI)) FD_SET(fds[i].fd, others), bits++;
    }
    return bits;
}

EXPORT int select(int count, fd_set *reads, fd_set *writes, fd_set *others, struct timeval *timeout) {
    if (!vt_active()) return REAL(select)(count, reads, writes, others, timeout);
    int64_t deadline_ns = timeout ? vt_now_ns + timeout->tv_sec * NS_PER_S + timeout->tv_usec * 1000 : NEVER;
    return wait_for_sets("select", count, reads, writes, others, deadline_ns);
}

EXPORT int pselect(
    int count, fd_set *reads, fd_set *writes, fd_set *others, const struct timespec *timeout, const sigset_t *mask) {
    if (!vt_active()) return REAL(pselect)(count, reads, writes, others, timeout, mask);
    int64_t deadline_ns = timeout ? vt_deadline_after(timeout) : NEVER;
    return WITH_MASK(mask, wait_for_sets("pselect", count, reads, writes, others, deadline_ns));
}

/* -- epoll -- */

static int wait_for_epoll(const char *call, int epoll, struct epoll_event *events, int size, int64_t deadline_ns) {
    for (;;) {
        long ready = raw(SYS_epoll_pwait, epoll, events, size, 0, 0, SIGSET_BYTES);
        if (ready) return (int)with_errno(ready);
        struct pollfd one = {epoll, POLLIN, 0};
        int result = vt_poll(call, &one, 1, deadline_ns);
        if (result < 0) return -1;
        if (!result) return (int)with_errno(raw(SYS_epoll_pwait, epoll, events, size, 0, 0, SIGSET_BYTES));
    }
}

EXPORT int epoll_wait(int epoll, struct epoll_event *events, int size, int timeout_ms) {
    if (!vt_active()) return REAL(epoll_wait)(epoll, events, size, timeout_ms);
    return wait_for_epoll("epoll_wait", epoll, events, size, after_ms(timeout_ms));
}

EXPORT int epoll_pwait(int epoll, struct epoll_event *events, int size, int timeout_ms, const sigset_t *mask) {
    if (!vt_active()) return REAL(epoll_pwait)(epoll, events, size, timeout_ms, mask);
    return WITH_MASK(mask, wait_for_epoll("epoll_pwait", epoll, events, size, after_ms(timeout_ms)));
}

EXPORT int epoll_pwait2(
    int epoll, struct epoll_event *events, int size, const struct timespec *timeout, const sigset_t *mask) {
    if (!vt_active()) return REAL(epoll_pwait2)(epoll, events, size, timeout, mask);
    int64_t deadline_ns = timeout ? vt_deadline_after(timeout) : NEVER;
    return WITH_MASK(mask, wait_for_epoll("epoll_pwait2", epoll, events, size, deadline_ns));
}

/* -- blocking reads -- */

int64_t vt_deadline_of(int fd, short events) {
    struct timeval limit = {0, 0};
    socklen_t size = sizeof limit;
    raw(SYS_getsockopt, fd, SOL_SOCKET, events & POLLIN ? SO_RCVTIMEO : SO_SNDTIMEO, &limit, &size);
    return limit.tv_sec || limit.tv_usec ? vt_now_ns + limit.tv_sec * NS_PER_S + limit.tv_usec * 1000 : NEVER;
}

int vt_await(const char *call, int fd, short events) {
    vt_count_call();
    if (!vt_active()) return 0;
    struct pollfd one = {fd, events, 0};
    if (poll_now(&one, 1)) return 0;
    if (raw(SYS_fcntl, fd, F_GETFL, 0) & O_NONBLOCK) return 0;
    int64_t deadline_ns = vt_deadline_of(fd, events);
    int ready;
    while ((ready = vt_poll(call, &one, 1, deadline_ns)) < 0)
        if (errno != EINTR || !vt_restarts || deadline_ns != NEVER) return -1;
    return ready ? 0 : (int)with_errno(-EAGAIN);
}

EXPORT ssize_t read(int fd, void *buffer, size_t size) {
    if (vt_active() && vt_is_chance(fd)) return getrandom(buffer, size, 0);
    if (vt_await("read", fd, POLLIN)) return -1;
    return with_errno(raw(SYS_read, fd, buffer, size));
}

EXPORT ssize_t __read_chk(int fd, void *buffer, size_t size, size_t room) {
    (void)room;
    return read(fd, buffer, size);
}

EXPORT ssize_t readv(int fd, const struct iovec *parts, int count) {
    if (vt_await("readv", fd, POLLIN)) return -1;
    return with_errno(raw(SYS_readv, fd, parts, count));
}

EXPORT ssize_t recvfrom(
    int fd, void *restrict buffer, size_t size, int flags, struct sockaddr *restrict from, socklen_t *restrict length) {
    if (!(flags & MSG_DONTWAIT) && vt_await("recv", fd, POLLIN)) return -1;
    return with_errno(raw(SYS_recvfrom, fd, buffer, size, flags, from, length));
}

EXPORT ssize_t recv(int fd, void *buffer, size_t size, int flags) { return recvfrom(fd, buffer, size, flags, 0, 0); }

EXPORT ssize_t __recv_chk(int fd, void *buffer, size_t size, size_t room, int flags) {
    (void)room;
    return recv(fd, buffer, size, flags);
}

EXPORT ssize_t recvmsg(int fd, struct msghdr *message, int flags) {
    if (!(flags & MSG_DONTWAIT) && vt_await("recvmsg", fd, POLLIN)) return -1;
    return with_errno(raw(SYS_recvmsg, fd, message, flags));
}
