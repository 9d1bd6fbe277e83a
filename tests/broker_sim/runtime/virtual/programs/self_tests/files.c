#include "self_test.h"
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/uio.h>
#include <unistd.h>

static int ends[2];

static void *write_later(void *unused) {
    usleep(10000);
    if (write(ends[1], "abc", 3) != 3) return 0;
    return unused;
}

static void *read_later(void *unused) {
    static char buffer[200000];
    usleep(10000);
    for (size_t done = 0; done < sizeof buffer;) done += (size_t)read(ends[0], buffer, sizeof buffer);
    return unused;
}

static void test_no_news(void) {
    struct pollfd one = {ends[0], POLLIN, 0};
    struct timespec ten = {0, 10 * MS};
    struct timeval ten_us = {0, 10000};
    struct epoll_event event = {.events = EPOLLIN};
    fd_set set;
    TIMED("poll", 10, poll(&one, 1, 10));
    TIMED("poll without a wait", 0, poll(&one, 1, 0));
    TIMED("ppoll", 10, ppoll(&one, 1, &ten, 0));
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    TIMED("select", 10, select(ends[0] + 1, &set, 0, 0, &ten_us));
    RESULT("its set", FD_ISSET(ends[0], &set) != 0);
    FD_SET(ends[0], &set);
    TIMED("pselect", 10, pselect(ends[0] + 1, &set, 0, 0, &ten, 0));
    int epoll = epoll_create1(0);
    epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event);
    TIMED("epoll_wait", 10, epoll_wait(epoll, &event, 1, 10));
    TIMED("epoll_pwait", 10, epoll_pwait(epoll, &event, 1, 10, 0));
    TIMED("epoll_pwait2", 10, epoll_pwait2(epoll, &event, 1, &ten, 0));
    pthread_t writer;
    pthread_create(&writer, 0, write_later, 0);
    WOKEN("epoll_wait, woken", 10, epoll_wait(epoll, &event, 1, 60000));
    pthread_join(writer, 0);
    close(epoll);
}

void test_files(void) {
    char buffer[8] = "";
    pthread_t thread;
    if (pipe(ends)) return;
    test_no_news();
    RESULT("read", read(ends[0], buffer, sizeof buffer));
    pthread_create(&thread, 0, write_later, 0);
    struct iovec part = {buffer, sizeof buffer};
    WOKEN("readv, blocking", 10, readv(ends[0], &part, 1));
    pthread_join(thread, 0);

    static char much[200000];
    pthread_create(&thread, 0, read_later, 0);
    RESULT("write of more than a pipe holds", write(ends[1], much, sizeof much));
    pthread_join(thread, 0);
    part = (struct iovec){much, 5};
    RESULT("writev", writev(ends[1], &part, 1));
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    RESULT("fcntl", fcntl(ends[0], F_GETFL) & O_NONBLOCK);
    while (read(ends[0], much, sizeof much) > 0) {}
    RESULT("read without data", errno == EAGAIN);

    int copy = dup(ends[1]), other = dup2(ends[1], 77), third = dup3(ends[1], 78, O_CLOEXEC);
    RESULT("dup", write(copy, "a", 1));
    RESULT("dup2", other == 77 && write(other, "b", 1) == 1);
    RESULT("dup3", third == 78 && write(third, "c", 1) == 1);
    RESULT("what came by the copies", read(ends[0], buffer, sizeof buffer));
    close(copy), close(other), close(third);

    uint64_t count = 3;
    int event = eventfd(0, 0);
    RESULT("eventfd", write(event, &count, sizeof count) == 8 && read(event, &count, sizeof count) == 8 && count == 3);
    close(event), close(ends[0]), close(ends[1]);
    RESULT("close of a closed file", close(ends[0]));

    int file = open("/dev/null", O_RDONLY), twin = openat(AT_FDCWD, "/dev/null", O_RDONLY);
    RESULT("open", file >= 0 && twin >= 0 && read(file, buffer, 1) == 0);
    close(file), close(twin);
    RESULT("open of a file that is not there", open("/dev/there-is-none", O_RDONLY));
}
