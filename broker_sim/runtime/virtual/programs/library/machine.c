/* What the machine tells about itself. Other programs change it, and a JVM, for one, starts its threads by the free
 * memory and reads all mounts: each run sees the same memory, and only those mounts that limits are read from. */
#include "library.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

EXPORT int sysinfo(struct sysinfo *info) {
    long result = raw(SYS_sysinfo, info);
    if (!vt_active() || result) return (int)with_errno(result);
    struct timespec up;
    clock_gettime(CLOCK_BOOTTIME, &up);
    info->uptime = up.tv_sec;
    info->freeram = info->totalram;
    info->freeswap = info->totalswap;
    info->sharedram = info->bufferram = info->freehigh = 0;
    info->procs = 1;
    memset(info->loads, 0, sizeof info->loads);
    return 0;
}

/* A list of mounts: its first line here, and what the lines of control groups contain. */
static const struct mounts {
    const char *path, *root, *of_control_group;
} LISTS[] = {
    {"/proc/self/mountinfo", "1 0 0:1 / / rw - rootfs rootfs rw\n", " - cgroup"},
    {"/proc/self/mounts", "rootfs / rootfs rw 0 0\n", " cgroup"},
    {"/proc/mounts", "rootfs / rootfs rw 0 0\n", " cgroup"},
};

static void copy_control_groups(int from, int to, const char *kept) {
    char text[4096], *end;
    size_t size = 0;
    for (long got; (got = raw(SYS_read, from, text + size, sizeof text - 1 - size)) > 0;) {
        size += (size_t)got;
        text[size] = 0;
        while ((end = memchr(text, '\n', size))) {
            size_t length = (size_t)(end + 1 - text);
            *end = 0;
            if (strstr(text, kept)) {
                *end = '\n';
                raw(SYS_write, to, text, length);
            }
            memmove(text, end + 1, size -= length);
        }
        if (size == sizeof text - 1) size = 0;  /* a line that is too long is that of an overlay */
    }
}

int vt_open_mounts(const char *path, int flags) {
    if (!path || !vt_active()) return -1;
    const struct mounts *list = LISTS, *end = LISTS + sizeof LISTS / sizeof *LISTS;
    while (list < end && strcmp(list->path, path)) list++;
    if (list == end) return -1;
    int from = (int)raw(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    int to = (int)raw(SYS_memfd_create, "mounts", flags & O_CLOEXEC ? MFD_CLOEXEC : 0);
    raw(SYS_write, to, list->root, strlen(list->root));
    copy_control_groups(from, to, list->of_control_group);
    raw(SYS_close, from);
    raw(SYS_lseek, to, 0, SEEK_SET);
    return to;
}

static FILE *open_mounts_stream(const char *path, const char *mode) {
    int fd = vt_open_mounts(path, strchr(mode, 'e') ? O_CLOEXEC : 0);
    return fd < 0 ? NULL : fdopen(fd, mode);
}

EXPORT FILE *fopen(const char *restrict path, const char *restrict mode) {
    FILE *mounts = open_mounts_stream(path, mode);
    return mounts ? mounts : REAL(fopen)(path, mode);
}

EXPORT FILE *fopen64(const char *restrict path, const char *restrict mode) {
    FILE *mounts = open_mounts_stream(path, mode);
    return mounts ? mounts : REAL(fopen64)(path, mode);
}
