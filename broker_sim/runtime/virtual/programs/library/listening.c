/* Servers: a bound socket is one end of a pair, whose other end the simulator has.
 *
 *   bind()     the simulator binds the port on the program's host; the pair replaces the socket
 *   listen()   the simulator accepts connections
 *   accept()   each connection arrives as a message with one end of its own pair: the kernel reports "readable"
 */
#include "library.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

struct bound {
    struct sockaddr_in address;
    int family;  /* 0: the file is not bound */
    int listens;
};

struct arrival {  /* an incoming connection */
    uint32_t number, port, address;
};

static struct bound servers[MAX_FDS];

static struct bound *server_of(int fd) {
    return vt_active() && fd >= 0 && fd < MAX_FDS && servers[fd].family ? &servers[fd] : 0;
}

int vt_listens(int fd) {
    struct bound *server = server_of(fd);
    return server && server->listens;
}

int vt_bound_address(int fd, struct sockaddr_in *address) {
    struct bound *server = server_of(fd);
    if (server) *address = server->address;
    return server ? server->family : 0;
}

void vt_forget_server(int fd) {
    if (servers[fd].family) vt_has_sent = 1;
    servers[fd].family = servers[fd].listens = 0;
}

void vt_copy_server(int from, int to) { servers[to] = servers[from]; }

static int take_port(int fd, struct sockaddr_in address, int family) {
    int64_t port = vt_bind(ntohs(address.sin_port));
    if (port < 0) return (int)with_errno(port);
    int far_end = vt_replace_by_pair(fd, SOCK_SEQPACKET, raw(SYS_fcntl, fd, F_GETFL, 0));
    if (far_end < 0) return (int)with_errno(far_end);
    address.sin_port = htons((uint16_t)port);
    servers[fd] = (struct bound){address, family, 0};
    vt_on_socket(fd);
    vt_send_server((int)port, far_end);
    raw(SYS_close, far_end);
    return 0;
}

int vt_describe_server(int fd, char *text, size_t size) {
    struct bound *server = server_of(fd);
    if (!server) return 0;
    unsigned address = ntohl(server->address.sin_addr.s_addr), port = ntohs(server->address.sin_port);
    return snprintf(text, size, "%d server %d %d %u %u;", fd, server->family, server->listens, address, port);
}

void vt_inherit_server(int fd, const char *text) {
    unsigned address, port;
    struct bound server = {.address.sin_family = AF_INET};
    if (sscanf(text, "%d %d %u %u", &server.family, &server.listens, &address, &port) != 4) return;
    server.address.sin_addr.s_addr = htonl(address);
    server.address.sin_port = htons((uint16_t)port);
    servers[fd] = server;
}

EXPORT int bind(int fd, const struct sockaddr *address, socklen_t length) {
    int family = address->sa_family;
    if (!vt_active() || fd < 0 || fd >= MAX_FDS || (family != AF_INET && family != AF_INET6))
        return (int)with_errno(raw(SYS_bind, fd, address, length));
    if (server_of(fd)) return (int)with_errno(-EINVAL);
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = ((const struct sockaddr_in *)address)->sin_port};
    if (family == AF_INET) four = *(const struct sockaddr_in *)address;
    else if (IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)address)->sin6_addr))
        four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (!vt_is_stream(fd)) {
        /* The local port that a client chooses has no effect. */
        if (four.sin_port) vt_refuse("bind of a datagram socket", "the virtual network has TCP only");
        return 0;
    }
    return take_port(fd, four, family);
}

EXPORT int listen(int fd, int backlog) {
    int family = vt_active() && !server_of(fd) ? vt_family(fd) : 0, of_internet = family == AF_INET || family == AF_INET6;
    if (!server_of(fd) && !of_internet) return (int)with_errno(raw(SYS_listen, fd, backlog));
    if (!server_of(fd) && take_port(fd, (struct sockaddr_in){.sin_family = AF_INET}, family)) return -1;
    if (servers[fd].listens) return 0;
    servers[fd].listens = 1;
    vt_send_listen(ntohs(servers[fd].address.sin_port));
    return 0;
}

static int take_connection(int fd, struct sockaddr *place, socklen_t *length, int flags) {
    struct arrival arrival;
    struct iovec part = {&arrival, sizeof arrival};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } extra;
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &extra, .msg_controllen = sizeof extra.space};
    long size = raw(SYS_recvmsg, fd, &message, MSG_DONTWAIT | (flags & SOCK_CLOEXEC ? MSG_CMSG_CLOEXEC : 0));
    if (size < 0) return (int)with_errno(size);
    if (size != sizeof arrival || message.msg_controllen < CMSG_LEN(sizeof(int))) return (int)with_errno(-EINVAL);
    int connection;
    memcpy(&connection, CMSG_DATA(&extra.header), sizeof connection);
    if (flags & SOCK_NONBLOCK) raw(SYS_fcntl, connection, F_SETFL, O_RDWR | O_NONBLOCK);
    struct sockaddr_in peer = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)arrival.port), .sin_addr.s_addr = htonl(arrival.address)};
    vt_adopt(connection, arrival.number, servers[fd].family, peer, servers[fd].address);
    if (place) getpeername(connection, place, length);
    return connection;
}

EXPORT int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags) {
    if (vt_await("accept", fd, POLLIN)) return -1;
    if (vt_listens(fd)) return take_connection(fd, address, length, flags);
    return (int)with_errno(raw(SYS_accept4, fd, address, length, flags));
}

EXPORT int accept(int fd, struct sockaddr *address, socklen_t *length) { return accept4(fd, address, length, 0); }
