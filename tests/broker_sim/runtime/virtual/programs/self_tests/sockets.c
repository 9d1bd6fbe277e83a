#include "self_test.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

static char much[2000000];

static struct sockaddr_in at_port(int port) {
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int error_of(int fd) {
    int error = -1;
    socklen_t size = sizeof error;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    return error;
}

static long echo(int fd, size_t size) {
    size_t sent = 0, back = 0;
    while (back < size) {
        size_t part = size - sent < 60000 ? size - sent : 60000;
        while (sent < size && part) sent += (size_t)send(fd, much + sent, part, 0), part = 0;
        back += (size_t)recv(fd, much, size - back, 0);
    }
    return (long)back;
}

static void test_blocking(void) {
    struct sockaddr_in address = at_port(echo_port), peer = {0};
    socklen_t length = sizeof peer;
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    RESULT("setsockopt", setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one));
    RESULT("connect", connect(fd, (struct sockaddr *)&address, sizeof address));
    RESULT("connect again", connect(fd, (struct sockaddr *)&address, sizeof address) == -1 && errno == EISCONN);
    RESULT("getpeername", getpeername(fd, (struct sockaddr *)&peer, &length) || ntohs(peer.sin_port) != echo_port);
    length = sizeof peer;
    RESULT("getsockname", getsockname(fd, (struct sockaddr *)&peer, &length) || !peer.sin_port);
    int domain = 0;
    length = sizeof domain;
    RESULT("SO_DOMAIN", getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) || domain != AF_INET);
    RESULT("setsockopt of a connection", setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one));
    struct iovec part = {"hello", 5};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    RESULT("sendmsg", sendmsg(fd, &message, 0));
    RESULT("recv, all of it", recv(fd, much, 5, MSG_WAITALL) == 5 && !memcmp(much, "hello", 5));
    RESULT("writev", writev(fd, &part, 1));
    message.msg_iov = &(struct iovec){much, 5};
    RESULT("recvmsg", recvmsg(fd, &message, MSG_WAITALL));
    RESULT("sendto", sendto(fd, "x", 1, 0, 0, 0));
    RESULT("recvfrom", recvfrom(fd, much, 1, 0, 0, 0));
    RESULT("write", write(fd, "y", 1));
    RESULT("read", read(fd, much, 1));
    RESULT("recv without data", recv(fd, much, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    RESULT("more than a buffer there and back", echo(fd, sizeof much));
    RESULT("shutdown", shutdown(fd, SHUT_WR));
    RESULT("end of file", recv(fd, much, 1, 0));
    RESULT("close", close(fd));
}

static void test_limits_of_blocking_calls(void) {
    struct sockaddr_in address = at_port(echo_port);
    struct timeval limit = {0, 20000};
    int fd = socket(AF_INET, SOCK_STREAM, 0), ends[2];
    RESULT("SO_RCVTIMEO", setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
    connect(fd, (struct sockaddr *)&address, sizeof address);
    TIMED("recv of nothing", 20, recv(fd, much, 1, 0) == -1 && errno == EAGAIN);
    TIMED("read of nothing", 20, read(fd, much, 1) == -1 && errno == EAGAIN);
    send(fd, "x", 1, 0);
    limit = (struct timeval){60, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    WOKEN("recv before its limit", 0, recv(fd, much, 1, 0));
    close(fd);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) return;
    while (send(ends[0], much, sizeof much, MSG_DONTWAIT) > 0) {}
    limit = (struct timeval){0, 20000};
    setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    TIMED("send to a full socket", 20, send(ends[0], "x", 1, 0) == -1 && errno == EAGAIN);
    close(ends[0]), close(ends[1]);
}

static void test_server(void) {
    struct sockaddr_in address = at_port(0), peer = {0};
    socklen_t length = sizeof address;
    int server = socket(AF_INET, SOCK_STREAM, 0), one = 1, answer = 0;
    RESULT("SO_REUSEADDR", setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one));
    RESULT("bind", bind(server, (struct sockaddr *)&address, sizeof address));
    RESULT("listen", listen(server, 10));
    RESULT("getsockname of a server", getsockname(server, (struct sockaddr *)&address, &length) || !address.sin_port);
    length = sizeof answer;
    RESULT("SO_ACCEPTCONN", getsockopt(server, SOL_SOCKET, SO_ACCEPTCONN, &answer, &length) || answer != 1);
    int client = socket(AF_INET, SOCK_STREAM, 0);
    RESULT("connect to itself", connect(client, (struct sockaddr *)&address, sizeof address));
    struct pollfd waiting = {server, POLLIN, 0};
    RESULT("poll of a server", poll(&waiting, 1, 60000));
    length = sizeof peer;
    int accepted = accept4(server, (struct sockaddr *)&peer, &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
    RESULT("accept4 of a connection", accepted >= 0 && peer.sin_family == AF_INET && peer.sin_port);
    RESULT("its flags", !(fcntl(accepted, F_GETFL) & O_NONBLOCK) || !(fcntl(accepted, F_GETFD) & FD_CLOEXEC));
    RESULT("getsockname of a connection", getsockname(accepted, (struct sockaddr *)&peer, &length) ||
                                              peer.sin_port != address.sin_port);
    RESULT("send to itself", send(client, "z", 1, 0));
    waiting.fd = accepted;
    RESULT("poll of a connection", poll(&waiting, 1, 60000));
    RESULT("recv from itself", recv(accepted, much, 1, 0));
    close(client);
    close(accepted);
    fcntl(server, F_SETFL, O_NONBLOCK);
    RESULT("accept of none", accept(server, 0, 0) == -1 && errno == EAGAIN);
    RESULT("close of a server", close(server));
    client = socket(AF_INET, SOCK_STREAM, 0);
    RESULT("connect to nobody", connect(client, (struct sockaddr *)&address, sizeof address) == -1 && errno == ECONNREFUSED);
    close(client);
}

static void test_non_blocking(void) {
    struct sockaddr_in address = at_port(echo_port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    RESULT("connect, begun", connect(fd, (struct sockaddr *)&address, sizeof address) == -1 && errno == EINPROGRESS);
    struct pollfd one = {fd, POLLOUT, 0};
    RESULT("poll of a connect", poll(&one, 1, 60000));
    RESULT("SO_ERROR", error_of(fd));
    RESULT("connect, established", connect(fd, (struct sockaddr *)&address, sizeof address));
    RESULT("connect, once more", connect(fd, (struct sockaddr *)&address, sizeof address) == -1 && errno == EISCONN);
    RESULT("send", send(fd, "z", 1, 0));
    one.events = POLLIN;
    RESULT("poll of an answer", poll(&one, 1, 60000));
    RESULT("recv", recv(fd, much, 1, 0));
    close(fd);
}

/* Clients register a socket before they connect it; other files of the epoll have room for two reads of its list. */
static void test_registered_before_connect(void) {
    struct sockaddr_in address = at_port(echo_port);
    int epoll = epoll_create1(0), other = epoll_create1(0), pairs[60][2];
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 7};
    for (int i = 0; i < 60; i++)
        if (!pipe(pairs[i])) epoll_ctl(epoll, EPOLL_CTL_ADD, pairs[i][0], &event);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    event = (struct epoll_event){.events = EPOLLOUT, .data.u64 = 0x123456789abcdefULL};
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
    event = (struct epoll_event){.events = EPOLLIN, .data.u64 = 8};
    epoll_ctl(other, EPOLL_CTL_ADD, fd, &event);
    connect(fd, (struct sockaddr *)&address, sizeof address);
    RESULT("epoll_wait of a connect", epoll_wait(epoll, &event, 1, 60000));
    RESULT("its event", event.events == EPOLLOUT && event.data.u64 == 0x123456789abcdefULL);
    RESULT("send", send(fd, "z", 1, 0));
    RESULT("epoll_wait of an answer", epoll_wait(other, &event, 1, 60000));
    RESULT("its event", event.events == EPOLLIN && event.data.u64 == 8);
    RESULT("epoll_ctl of a connection", epoll_ctl(epoll, EPOLL_CTL_DEL, fd, &event));
    for (int i = 0; i < 60; i++) close(pairs[i][0]), close(pairs[i][1]);
    close(fd), close(epoll), close(other);
}

static void test_refused(void) {
    struct sockaddr_in nobody = at_port(1);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    RESULT("connect, refused", connect(fd, (struct sockaddr *)&nobody, sizeof nobody) == -1 && errno == ECONNREFUSED);
    close(fd);
    fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    connect(fd, (struct sockaddr *)&nobody, sizeof nobody);
    struct pollfd one = {fd, POLLOUT, 0};
    poll(&one, 1, 60000);
    RESULT("SO_ERROR of a refused one", error_of(fd) == ECONNREFUSED);
    close(fd);
}

static void test_names(void) {
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *result = 0;
    RESULT("getaddrinfo of localhost", getaddrinfo("localhost", "80", &hints, &result));
    RESULT("its address", ((struct sockaddr_in *)result->ai_addr)->sin_addr.s_addr == htonl(INADDR_LOOPBACK));
    freeaddrinfo(result);
    RESULT("getaddrinfo of a number", getaddrinfo("127.0.0.1", "80", &hints, &result));
    freeaddrinfo(result);
    hints.ai_flags = AI_NUMERICHOST;
    RESULT("getaddrinfo of no number", getaddrinfo("localhost", "80", &hints, &result) == EAI_NONAME);
}

void test_sockets(void) {
    test_blocking();
    test_server();
    test_limits_of_blocking_calls();
    test_non_blocking();
    test_registered_before_connect();
    test_refused();
    test_names();
    int pair[2];
    RESULT("socketpair", socketpair(AF_UNIX, SOCK_STREAM, 0, pair) || send(pair[0], "u", 1, 0) != 1);
    RESULT("recv of a Unix socket", recv(pair[1], much, 8, 0));
    close(pair[0]), close(pair[1]);

    struct sockaddr_un path = {.sun_family = AF_UNIX, .sun_path = "\0broker-sim-self-test"};
    int server = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(path.sun_path + 1, sizeof path.sun_path - 1, "broker-sim-self-test-%d-%d", getpid(), is_virtual);
    RESULT("bind of a Unix socket", bind(server, (struct sockaddr *)&path, sizeof path));
    RESULT("listen of a Unix socket", listen(server, 1));
    RESULT("connect of a Unix socket", connect(client, (struct sockaddr *)&path, sizeof path));
    int first = accept(server, 0, 0);
    RESULT("accept", first >= 0);
    close(client), client = socket(AF_UNIX, SOCK_STREAM, 0);
    connect(client, (struct sockaddr *)&path, sizeof path);
    int second = accept4(server, 0, 0, SOCK_CLOEXEC);
    RESULT("accept4", second >= 0);
    close(server), close(client), close(first), close(second);
}
