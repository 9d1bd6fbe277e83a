/* File descriptors: what each number stands for, from open to close, and its copies. */
#include "library.h"
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

static unsigned char is_chance[MAX_FDS];  /* /dev/random and /dev/urandom */

int vt_is_chance(int fd) { return fd >= 0 && fd < MAX_FDS && is_chance[fd]; }

static int open_file(int folder, const char *path, int flags, mode_t mode) {
    vt_count_call();
    long fd = vt_open_mounts(path, flags);
    if (fd < 0) fd = raw(SYS_openat, folder, path, flags, mode);
    if (vt_enabled && fd >= 0 && fd < MAX_FDS)
        is_chance[fd] = !strcmp(path, "/dev/urandom") || !strcmp(path, "/dev/random");
    return (int)with_errno(fd);
}

#define MODE(last)                                                                                                     \
    ({                                                                                                                 \
        va_list values;                                                                                                \
        va_start(values, last);                                                                                        \
        mode_t mode = (mode_t)va_arg(values, int);                                                                     \
        va_end(values);                                                                                                \
        mode;                                                                                                          \
    })

EXPORT int open(const char *path, int flags, ...) { return open_file(AT_FDCWD, path, flags, MODE(flags)); }
EXPORT int open64(const char *path, int flags, ...) { return open_file(AT_FDCWD, path, flags, MODE(flags)); }
EXPORT int openat(int folder, const char *path, int flags, ...) { return open_file(folder, path, flags, MODE(flags)); }
EXPORT int openat64(int folder, const char *path, int flags, ...) { return open_file(folder, path, flags, MODE(flags)); }

static void on_close(int fd) {
    if (!vt_enabled || fd < 0 || fd >= MAX_FDS) return;
    is_chance[fd] = 0;
    vt_on_close(fd);
    vt_forget_timer(fd);
    vt_forget_signals(fd);
}

EXPORT int close(int fd) {
    vt_count_call();
    if (fd >= 0 && fd == vt_control_fd()) return 0;  /* a program that closes all files must not close this one */
    on_close(fd);
    return (int)with_errno(raw(SYS_close, fd));
}

EXPORT int close_range(unsigned first, unsigned last, int flags) {
    unsigned kept = (unsigned)vt_control_fd();
    if (!vt_enabled || flags & CLOSE_RANGE_CLOEXEC || kept < first || kept > last) {
        if (vt_enabled && !(flags & CLOSE_RANGE_CLOEXEC))
            for (unsigned fd = first; fd <= last && fd < MAX_FDS; fd++) on_close((int)fd);
        return (int)with_errno(raw(SYS_close_range, first, last, flags));
    }
    if (kept > first && close_range(first, kept - 1, flags)) return -1;
    return kept < last ? close_range(kept + 1, last, flags) : 0;
}

EXPORT void closefrom(int first) { close_range((unsigned)first, ~0U, 0); }

static int on_copy(int from, long to) {
    if (vt_enabled && to >= 0 && from != to && from < MAX_FDS && to < MAX_FDS) {
        is_chance[to] = is_chance[from];
        vt_on_copy(from, (int)to);
    }
    return (int)with_errno(to);
}

EXPORT int dup(int from) { return on_copy(from, raw(SYS_dup, from)); }
EXPORT int dup3(int from, int to, int flags) { return on_copy(from, raw(SYS_dup3, from, to, flags)); }
EXPORT int dup2(int from, int to) {
    if (from == to) return raw(SYS_fcntl, from, F_GETFD, 0) < 0 ? (int)with_errno(-EBADF) : to;
    return dup3(from, to, 0);
}

static int control_file(int fd, int command, long argument) {
    long result = raw(SYS_fcntl, fd, command, argument);
    int copies = command == F_DUPFD || command == F_DUPFD_CLOEXEC;
    return copies ? on_copy(fd, result) : (int)with_errno(result);
}

#define ARGUMENT(last)                                                                                                 \
    ({                                                                                                                 \
        va_list values;                                                                                                \
        va_start(values, last);                                                                                        \
        long argument = va_arg(values, long);                                                                          \
        va_end(values);                                                                                                \
        argument;                                                                                                      \
    })

EXPORT int fcntl(int fd, int command, ...) { return control_file(fd, command, ARGUMENT(command)); }
EXPORT int fcntl64(int fd, int command, ...) { return control_file(fd, command, ARGUMENT(command)); }
