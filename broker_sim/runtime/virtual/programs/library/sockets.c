/* TCP connections: each is one end of a pair of Unix sockets, whose other end the simulator has.
 *
 *   connect()   the pair replaces the program's socket, full of filler: the kernel reports "not writable"
 *   handshake   the simulator connects over the virtual network, then reads the filler: "writable"
 *   refused     the simulator sends the error and closes its end
 *
 * So the kernel itself implements connect, poll, EAGAIN and end of file, blocking and non-blocking.
 */
#include "library.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#define BUFFER_BYTES (128 * 1024)
#define FIRST_LOCAL_PORT 40000
#define LOCAL_PORTS 20000
#define EPOLL_FILE "anon_inode:[eventpoll]"
#define MAX_REGISTRATIONS 16

struct connection {
    uint32_t number;  /* 0: the file is not a connection */
    int family, error;
    struct sockaddr_in peer, own;
    int is_begun;  /* connect has returned EINPROGRESS; once it is established, the next call returns 0 */
};

static struct connection connections[MAX_FDS];
static uint32_t connection_count;
static int highest_fd;

static struct connection *connection_of(int fd) {
    return vt_active() && fd >= 0 && fd < MAX_FDS && connections[fd].number ? &connections[fd] : 0;
}

void vt_on_connected(uint32_t number, int error) {
    for (int fd = 0; fd <= highest_fd; fd++)
        if (connections[fd].number == number) connections[fd].error = error;
}

void vt_number_connections_from(uint32_t number) { connection_count = number; }

void vt_on_close(int fd) {
    if (connections[fd].number) vt_has_sent = 1;
    connections[fd].number = 0;
    vt_forget_server(fd);
}

void vt_on_socket(int fd) {
    if (fd > highest_fd) highest_fd = fd;
}

void vt_on_copy(int from, int to) {
    connections[to] = connections[from];
    vt_copy_server(from, to);
    vt_on_socket(to);
}

/* -- files that exec leaves open: their descriptions are passed to the new program -- */

static int describe(int fd, char *text, size_t size) {
    struct connection *each = &connections[fd];
    if (!each->number) return vt_describe_server(fd, text, size);
    unsigned peer = ntohl(each->peer.sin_addr.s_addr), own = ntohl(each->own.sin_addr.s_addr);
    return snprintf(text, size, "%d connection %u %d %d %u %u %u %u;", fd, each->number, each->family, each->error, peer,
                    ntohs(each->peer.sin_port), own, ntohs(each->own.sin_port));
}

size_t vt_describe_files(char *text, size_t size) {
    size_t used = 0;
    for (int fd = 0; fd <= highest_fd && used < size; fd++)
        if (!(raw(SYS_fcntl, fd, F_GETFD, 0) & FD_CLOEXEC)) used += (size_t)describe(fd, text + used, size - used);
    text[used] = 0;
    return used;
}

void vt_inherit_files(const char *text) {
    for (; text && *text; text = strchr(text, ';') + 1) {
        int fd = 0, begin = 0;
        struct connection each = {.peer.sin_family = AF_INET, .own.sin_family = AF_INET};
        unsigned peer, peer_port, own, own_port;
        sscanf(text, "%d server %n", &fd, &begin);
        if (begin) vt_inherit_server(fd, text + begin);
        else if (sscanf(text, "%d connection %u %d %d %u %u %u %u", &fd, &each.number, &each.family, &each.error, &peer,
                        &peer_port, &own, &own_port) == 8) {
            each.peer.sin_addr.s_addr = htonl(peer), each.own.sin_addr.s_addr = htonl(own);
            each.peer.sin_port = htons((uint16_t)peer_port), each.own.sin_port = htons((uint16_t)own_port);
            connections[fd] = each;
        }
        vt_on_socket(fd);
    }
}

int vt_describe_connection(int fd, char *text, size_t size) {
    struct connection *connection = fd >= 0 && fd < MAX_FDS && connections[fd].number ? &connections[fd] : 0;
    if (!connection) return 0;
    char address[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &connection->peer.sin_addr, address, sizeof address);
    return snprintf(text, size, " (a connection to %s:%d)", address, ntohs(connection->peer.sin_port));
}

/* -- connect -- */

static int is_of_internet(int family) { return family == AF_INET || family == AF_INET6; }

void vt_adopt(int fd, uint32_t number, int family, struct sockaddr_in peer, struct sockaddr_in own) {
    if (fd >= MAX_FDS) return;
    connections[fd] = (struct connection){number, family, 0, peer, own, 0};
    vt_on_socket(fd);
}

static int kind_of(int fd, int option) {
    int value = 0;
    socklen_t size = sizeof value;
    return raw(SYS_getsockopt, fd, SOL_SOCKET, option, &value, &size) < 0 ? -1 : value;
}

int vt_is_stream(int fd) { return kind_of(fd, SO_TYPE) == SOCK_STREAM; }

int vt_family(int fd) { return kind_of(fd, SO_DOMAIN); }

/* The IPv4 address of any address: the virtual network has no IPv6, but ::1 and mapped addresses work. */
static int to_ipv4(const struct sockaddr *address, struct sockaddr_in *peer) {
    if (address->sa_family == AF_INET) {
        *peer = *(const struct sockaddr_in *)address;
        return 0;
    }
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;
    *peer = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = six->sin6_port};
    if (IN6_IS_ADDR_LOOPBACK(&six->sin6_addr)) peer->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    else if (IN6_IS_ADDR_V4MAPPED(&six->sin6_addr)) memcpy(&peer->sin_addr, six->sin6_addr.s6_addr + 12, 4);
    else return -1;
    return 0;
}

/* Fill the buffer until the socket is not writable; return the number of bytes. */
static int64_t fill(int fd) {
    static const char filler[4096];
    const struct timespec no_time = {0, 0};
    struct pollfd one = {fd, POLLOUT, 0};
    int64_t bytes = 0;
    while (raw(SYS_ppoll, &one, 1, &no_time, 0, 0) > 0) {
        long sent = raw(SYS_sendto, fd, filler, sizeof filler, MSG_DONTWAIT, 0, 0);
        if (sent <= 0) break;
        bytes += sent;
    }
    return bytes;
}

/* -- registrations with epoll: the kernel attaches them to the file, not to its number -- */

struct registration {
    int epoll;
    struct epoll_event event;
};

/* Find `fd` among the files of an epoll, which /proc lists one per line. */
static int is_registered(int epoll, int fd, struct registration *registration) {
    static char text[4096];
    char path[48];
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", epoll);
    int info = (int)raw(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC), is_found = 0;
    size_t used = 0;
    for (long bytes; !is_found && (bytes = raw(SYS_read, info, text + used, sizeof text - 1 - used)) > 0;) {
        char *line = text, *end;
        text[used += (size_t)bytes] = 0;
        for (; !is_found && (end = strchr(line, '\n')); line = end + 1) {
            unsigned long long data;
            int number;
            unsigned events;
            is_found = sscanf(line, "tfd: %d events: %x data: %llx", &number, &events, &data) == 3 && number == fd;
            if (is_found) *registration = (struct registration){epoll, {.events = events, .data.u64 = data}};
        }
        memmove(text, line, used = strlen(line));
    }
    raw(SYS_close, info);
    return is_found;
}

/* Return the number of registrations of `fd`, at most `size`. */
static int find_registrations(int fd, struct registration *registrations, int size) {
    char name[32];
    int count = 0, folder = (int)raw(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct {
        uint64_t inode, offset;
        uint16_t length;
        uint8_t type;
        char name[];
    } *entry;
    char entries[2048] __attribute__((aligned(8)));
    for (long bytes; (bytes = raw(SYS_getdents64, folder, entries, sizeof entries)) > 0;)
        for (char *place = entries; place < entries + bytes && count < size; place += entry->length) {
            entry = (void *)place;
            long length = raw(SYS_readlinkat, folder, entry->name, name, sizeof name);
            int is_epoll = length == sizeof EPOLL_FILE - 1 && !memcmp(name, EPOLL_FILE, (size_t)length);
            if (is_epoll) count += is_registered(atoi(entry->name), fd, &registrations[count]);
        }
    raw(SYS_close, folder);
    return count;
}

static const int LIMITS[] = {SO_RCVTIMEO, SO_SNDTIMEO};  /* timeouts of blocking reads and writes */

/* Replace the program's socket by one end of a new pair; return the other end, or a negative errno. */
int vt_replace_by_pair(int fd, int kind, long status) {
    int ends[2], bytes = BUFFER_BYTES;
    long error = raw(SYS_socketpair, AF_UNIX, kind | SOCK_CLOEXEC, 0, ends);
    if (error < 0) return (int)error;
    raw(SYS_setsockopt, ends[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    for (size_t i = 0; i < sizeof LIMITS / sizeof *LIMITS; i++) {
        struct timeval limit;
        socklen_t size = sizeof limit;
        raw(SYS_getsockopt, fd, SOL_SOCKET, LIMITS[i], &limit, &size);
        raw(SYS_setsockopt, ends[0], SOL_SOCKET, LIMITS[i], &limit, size);
    }
    struct registration registrations[MAX_REGISTRATIONS];
    int count = find_registrations(fd, registrations, MAX_REGISTRATIONS);
    long flags = raw(SYS_fcntl, fd, F_GETFD, 0);
    raw(SYS_dup3, ends[0], fd, flags & FD_CLOEXEC ? O_CLOEXEC : 0);
    raw(SYS_close, ends[0]);
    for (int i = 0; i < count; i++)
        raw(SYS_epoll_ctl, registrations[i].epoll, EPOLL_CTL_ADD, fd, &registrations[i].event);
    raw(SYS_fcntl, fd, F_SETFL, status);
    return ends[1];
}

EXPORT int connect(int fd, const struct sockaddr *address, socklen_t length) {
    if (!vt_active() || fd < 0 || fd >= MAX_FDS || !is_of_internet(address->sa_family))
        return (int)with_errno(raw(SYS_connect, fd, address, length));
    struct connection *connection = &connections[fd];
    if (connection->number) {
        int error = connection->error == EINPROGRESS ? EALREADY : connection->error;
        if (!error && !connection->is_begun) error = EISCONN;
        connection->is_begun = error == EALREADY;
        return (int)with_errno(-error);
    }
    struct sockaddr_in own;
    int is_bound = vt_bound_address(fd, &own);
    if (!is_bound && kind_of(fd, SO_TYPE) != SOCK_STREAM)
        vt_refuse("connect of a datagram socket", "the virtual network has TCP only");
    struct sockaddr_in peer;
    if (to_ipv4(address, &peer)) return (int)with_errno(-ENETUNREACH);
    long status = raw(SYS_fcntl, fd, F_GETFL, 0);
    int far_end = vt_replace_by_pair(fd, SOCK_STREAM, status);
    if (far_end < 0) return (int)with_errno(far_end);
    if (!is_bound) {
        own = peer;
        own.sin_port = htons((uint16_t)(FIRST_LOCAL_PORT + (connection_count + 1) % LOCAL_PORTS));
    }
    vt_forget_server(fd);
    *connection = (struct connection){++connection_count, address->sa_family, EINPROGRESS, peer, own, !!(status & O_NONBLOCK)};
    vt_on_socket(fd);
    int64_t target = (int64_t)ntohl(peer.sin_addr.s_addr) << 16 | ntohs(peer.sin_port);
    vt_send_connect(connection->number, target, fill(fd), far_end);
    raw(SYS_close, far_end);
    if (status & O_NONBLOCK) return (int)with_errno(-EINPROGRESS);
    struct pollfd one = {fd, POLLOUT, 0};
    if (vt_poll("connect", &one, 1, NEVER) < 0) return -1;
    return (int)with_errno(-connection->error);
}

/* -- calls for which a Unix socket differs from TCP -- */

EXPORT int socket(int domain, int kind, int protocol) {
    long fd = raw(SYS_socket, domain, kind, protocol);
    if (vt_enabled && fd >= 0 && fd < MAX_FDS) vt_on_close((int)fd);  /* a close inside of libc goes unnoticed */
    return (int)with_errno(fd);
}

EXPORT int getsockopt(int fd, int level, int option, void *restrict value, socklen_t *restrict size) {
    struct connection *connection = connection_of(fd);
    struct sockaddr_in own;
    int family = connection || level != SOL_SOCKET ? 0 : vt_bound_address(fd, &own);
    if (family && (option == SO_DOMAIN || option == SO_ACCEPTCONN || option == SO_TYPE || option == SO_PROTOCOL)) {
        int answer = option == SO_DOMAIN     ? family
                     : option == SO_PROTOCOL ? IPPROTO_TCP
                     : option == SO_TYPE     ? SOCK_STREAM
                                             : vt_listens(fd);
        memcpy(value, &answer, *size < sizeof answer ? *size : sizeof answer);
        return 0;
    }
    if (!connection || (level == SOL_SOCKET && option != SO_ERROR && option != SO_DOMAIN && option != SO_PROTOCOL))
        return (int)with_errno(raw(SYS_getsockopt, fd, level, option, value, size));
    int answer = 0;
    if (level == SOL_SOCKET && option == SO_ERROR) answer = connection->error == EINPROGRESS ? 0 : connection->error;
    if (level == SOL_SOCKET && option == SO_DOMAIN) answer = connection->family;
    if (level == SOL_SOCKET && option == SO_PROTOCOL) answer = IPPROTO_TCP;
    memset(value, 0, *size);
    memcpy(value, &answer, *size < sizeof answer ? *size : sizeof answer);
    return 0;
}

EXPORT int setsockopt(int fd, int level, int option, const void *value, socklen_t size) {
    struct sockaddr_in own;
    if ((connection_of(fd) || vt_bound_address(fd, &own)) && (level != SOL_SOCKET || option == SO_SNDBUF || option == SO_RCVBUF)) return 0;
    return (int)with_errno(raw(SYS_setsockopt, fd, level, option, value, size));
}

static int give_address(struct sockaddr_in address, int family, struct sockaddr *place, socklen_t *length) {
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = address.sin_port, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    const void *source = family == AF_INET6 ? (const void *)&six : &address;
    socklen_t size = family == AF_INET6 ? sizeof six : sizeof address;
    memcpy(place, source, *length < size ? *length : size);
    *length = size;
    return 0;
}

EXPORT int getpeername(int fd, struct sockaddr *restrict place, socklen_t *restrict length) {
    struct connection *connection = connection_of(fd);
    if (!connection) return (int)with_errno(raw(SYS_getpeername, fd, place, length));
    if (connection->error) return (int)with_errno(-ENOTCONN);
    return give_address(connection->peer, connection->family, place, length);
}

EXPORT int getsockname(int fd, struct sockaddr *restrict place, socklen_t *restrict length) {
    struct connection *connection = connection_of(fd);
    if (connection) return give_address(connection->own, connection->family, place, length);
    struct sockaddr_in bound;
    int family = vt_bound_address(fd, &bound);
    if (family) return give_address(bound, family, place, length);
    return (int)with_errno(raw(SYS_getsockname, fd, place, length));
}

EXPORT int shutdown(int fd, int how) {
    if (connection_of(fd)) vt_has_sent = 1;
    return (int)with_errno(raw(SYS_shutdown, fd, how));
}

/* -- writing: a blocking write of more than the buffer holds lets the simulator read -- */

static ssize_t write_all(int fd, const struct iovec *parts, size_t count, int flags) {
    vt_count_call();
    vt_has_sent = 1;
    int blocks = !(flags & MSG_DONTWAIT) && !(raw(SYS_fcntl, fd, F_GETFL, 0) & O_NONBLOCK);
    ssize_t written = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t done = 0; done < parts[i].iov_len;) {
            const char *rest = (const char *)parts[i].iov_base + done;
            long sent = raw(SYS_sendto, fd, rest, parts[i].iov_len - done, flags | MSG_DONTWAIT, 0, 0);
            if (sent == -EAGAIN && blocks) {
                struct pollfd one = {fd, POLLOUT, 0};
                if (!vt_poll("send", &one, 1, vt_deadline_of(fd, POLLOUT))) return written ? written : with_errno(-EAGAIN);
            } else if (sent < 0) {
                return written ? written : with_errno(sent);
            } else {
                done += (size_t)sent;
                written += sent;
            }
        }
    }
    return written;
}

static int is_datagram_of_internet(int fd) {
    return vt_active() && kind_of(fd, SO_TYPE) == SOCK_DGRAM && is_of_internet(kind_of(fd, SO_DOMAIN));
}

EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    if (connection_of(fd)) return write_all(fd, message->msg_iov, message->msg_iovlen, flags);
    if (is_datagram_of_internet(fd)) vt_refuse("sendmsg of a datagram", "the virtual network has TCP only");
    if (!(flags & MSG_DONTWAIT) && vt_await("sendmsg", fd, POLLOUT)) return -1;
    return with_errno(raw(SYS_sendmsg, fd, message, flags));
}

EXPORT ssize_t sendto(
    int fd, const void *data, size_t size, int flags, const struct sockaddr *to, socklen_t length) {
    struct iovec part = {(void *)data, size};
    if (connection_of(fd)) return write_all(fd, &part, 1, flags);
    if (is_datagram_of_internet(fd)) vt_refuse("sendto of a datagram", "the virtual network has TCP only");
    if (!(flags & MSG_DONTWAIT) && vt_await("send", fd, POLLOUT)) return -1;
    return with_errno(raw(SYS_sendto, fd, data, size, flags, to, length));
}

EXPORT ssize_t send(int fd, const void *data, size_t size, int flags) { return sendto(fd, data, size, flags, 0, 0); }

/* Write to a file that is not a connection. A writable pipe accepts PIPE_BUF bytes without blocking. */
static ssize_t write_file(int fd, const char *data, size_t size) {
    vt_count_call();
    struct stat status;
    int is_pipe = vt_active() && !fstat(fd, &status) && S_ISFIFO(status.st_mode) &&
                  !(raw(SYS_fcntl, fd, F_GETFL, 0) & O_NONBLOCK);
    size_t done = 0;
    do {
        if (vt_await("write", fd, POLLOUT)) return done ? (ssize_t)done : -1;
        size_t part = is_pipe && size - done > PIPE_BUF ? PIPE_BUF : size - done;
        long written = raw(SYS_write, fd, data + done, part);
        if (written < 0) return done ? (ssize_t)done : with_errno(written);
        done += (size_t)written;
    } while (is_pipe && done < size);
    return (ssize_t)done;
}

EXPORT ssize_t write(int fd, const void *data, size_t size) {
    return connection_of(fd) ? send(fd, data, size, 0) : write_file(fd, data, size);
}

EXPORT ssize_t writev(int fd, const struct iovec *parts, int count) {
    if (connection_of(fd)) return write_all(fd, parts, (size_t)count, 0);
    ssize_t written = 0;
    for (int i = 0; i < count; i++) {
        ssize_t part = write_file(fd, parts[i].iov_base, parts[i].iov_len);
        if (part < 0) return written ? written : part;
        written += part;
        if ((size_t)part < parts[i].iov_len) break;
    }
    return written;
}

/* -- name resolution: names of the virtual network, and numeric addresses -- */

EXPORT int getaddrinfo(
    const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **result) {
    struct in_addr four;
    struct in6_addr six;
    if (!vt_active() || !node || inet_pton(AF_INET, node, &four) == 1 || inet_pton(AF_INET6, node, &six) == 1)
        return REAL(getaddrinfo)(node, service, hints, result);
    if (hints && (hints->ai_flags & AI_NUMERICHOST)) return EAI_NONAME;
    int64_t address = vt_resolve(node);
    if (address < 0) return EAI_NONAME;
    char text[INET_ADDRSTRLEN];
    four.s_addr = htonl((uint32_t)address);
    inet_ntop(AF_INET, &four, text, sizeof text);
    return REAL(getaddrinfo)(text, service, hints, result);
}
