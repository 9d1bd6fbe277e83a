/* The conversation with the simulator; library.h lists its messages. */
#include "library.h"
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define SIMULATOR_GONE 86  /* the exit code of a program whose simulator has ended */
#define MOST_RESULTS 256
#define MOST_TEXT 32768

enum {
    CONNECT = 1, IDLE, HELLO, BYE, RESOLVE, REFUSE, REPORT, BIND, SERVER, LISTEN, CHILD, SIGNAL, SERVES, FORKED, ENDED
};

struct message {
    uint32_t kind, number;
    int64_t first, second;
};

struct answer {
    uint32_t kind, signal, result_count, calls_left;
    int64_t now_ns, horizon_ns, wall_start_ns;
    struct {
        uint32_t number;
        int32_t error;
        int64_t value;
    } results[MOST_RESULTS];
};

static int control_fd = -1;
static struct answer answer;

static void on_simulator_gone(void) { raw(SYS_exit_group, SIMULATOR_GONE); }

static void send_message(struct message message, const char *text, size_t text_size, int fd) {
    struct iovec parts[2] = {{&message, sizeof message}, {(void *)text, text_size}};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } extra;
    memset(&extra, 0, sizeof extra);
    struct msghdr whole = {.msg_iov = parts, .msg_iovlen = text ? 2 : 1};
    if (fd >= 0) {
        whole.msg_control = &extra;
        whole.msg_controllen = sizeof extra.space;
        extra.header = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&extra.header), &fd, sizeof fd);
    }
    long sent;
    do sent = raw(SYS_sendmsg, control_fd, &whole, MSG_NOSIGNAL);
    while (sent == -EINTR);
    if (sent < 0) on_simulator_gone();
}

static void receive_answer(void) {
    for (;;) {
        long size = raw(SYS_recvfrom, control_fd, &answer, sizeof answer, 0, 0, 0);
        if (size == -EINTR) continue;
        if (size < (long)offsetof(struct answer, results)) on_simulator_gone();
        if (answer.kind == GO) return;
        static char text[MOST_TEXT];
        size_t length = vt_describe_threads(text, sizeof text);
        send_message((struct message){.kind = REPORT}, text, length, -1);
    }
}

static void receive_go(void) {
    receive_answer();
    vt_wall_start_ns = answer.wall_start_ns;
    if (answer.calls_left) vt_calls_left = answer.calls_left;
    vt_move_time(answer.now_ns, answer.horizon_ns);
    for (uint32_t i = 0; i < answer.result_count; i++) {
        if (answer.results[i].number) vt_on_connected(answer.results[i].number, answer.results[i].error);
        else vt_number_connections_from((uint32_t)answer.results[i].value);
    }
    if (answer.signal) vt_interrupt((int)answer.signal);
}

static void greet(void) {
    send_message((struct message){.kind = HELLO, .first = vt_pid}, 0, 0, -1);
    receive_go();
}

int vt_begin_conversation(void) {
    const char *number = getenv("VT_FD");
    if (!number) return 0;
    int fd = atoi(number);
    control_fd = (int)raw(SYS_fcntl, fd, F_DUPFD_CLOEXEC, CONTROL_FD_FROM);
    raw(SYS_close, fd);
    unsetenv("VT_FD");
    greet();
    /* A child would be killed when the thread that started it ends; it notices the end of the conversation instead. */
    int is_child = answer.result_count && !answer.results[0].number;
    if (!is_child) raw(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    return 1;
}

int vt_open_conversation(int ends[2]) {
    int pair[2];
    long error = raw(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair);
    if (error < 0) return (int)error;
    for (int i = 0; i < 2; i++) {  /* high numbers, which programs rarely close or replace */
        ends[i] = (int)raw(SYS_fcntl, pair[i], F_DUPFD_CLOEXEC, CONTROL_FD_FROM);
        raw(SYS_close, pair[i]);
    }
    return 0;
}

static void take_conversation(int fd) {
    raw(SYS_dup3, fd, control_fd, O_CLOEXEC);
    raw(SYS_close, fd);
    greet();
}

void vt_join_conversation(const int ends[2]) {
    raw(SYS_close, ends[1]);
    take_conversation(ends[0]);
}

void vt_send_child(pid_t pid, const int ends[2]) {
    raw(SYS_close, ends[0]);
    if (pid > 0) {
        vt_has_sent = 1;
        send_message((struct message){.kind = CHILD, .first = pid}, 0, 0, ends[1]);
        receive_answer();
    }
    raw(SYS_close, ends[1]);
}

int vt_let_conversation_pass(int passes) {
    raw(SYS_fcntl, control_fd, F_SETFD, passes ? 0 : FD_CLOEXEC);
    return control_fd;
}

int vt_send_signal(pid_t pid, int number) {
    send_message((struct message){.kind = SIGNAL, .number = (uint32_t)number, .first = pid}, 0, 0, -1);
    receive_answer();
    int error = answer.results[0].error;
    if (answer.signal) vt_raise((int)answer.signal);  /* such as SIGCHLD for a killed child */
    return error;
}

void vt_send_idle(int has_run, int may_wait_for_room, int64_t deadline_ns) {
    struct message message = {IDLE, (uint32_t)(has_run | may_wait_for_room << 1), vt_now_ns, deadline_ns};
    send_message(message, 0, 0, -1);
    receive_go();
}

void vt_send_connect(uint32_t number, int64_t address, int64_t filler, int fd) {
    vt_has_sent = 1;
    send_message((struct message){CONNECT, number, address, filler}, 0, 0, fd);
}

void vt_send_bye(void) { send_message((struct message){.kind = BYE, .first = vt_now_ns}, 0, 0, -1); }

void vt_send_refusal(const char *text) { send_message((struct message){.kind = REFUSE}, text, strlen(text), -1); }

int64_t vt_resolve(const char *name) {
    send_message((struct message){.kind = RESOLVE}, name, strlen(name), -1);
    receive_answer();
    return answer.results[0].error ? -1 : answer.results[0].value;
}

int64_t vt_bind(int port) {
    send_message((struct message){.kind = BIND, .number = (uint32_t)port}, 0, 0, -1);
    receive_answer();
    return answer.results[0].error ? -answer.results[0].error : answer.results[0].value;
}

void vt_send_server(int port, int fd) {
    vt_has_sent = 1;
    send_message((struct message){.kind = SERVER, .number = (uint32_t)port}, 0, 0, fd);
}

void vt_send_listen(int port) { send_message((struct message){.kind = LISTEN, .number = (uint32_t)port}, 0, 0, -1); }

int vt_control_fd(void) { return vt_enabled ? control_fd : -1; }

/* -- of a fork server -- */

void vt_send_serves(void) { send_message((struct message){.kind = SERVES, .first = vt_now_ns}, 0, 0, -1); }
void vt_send_forked(pid_t pid) { send_message((struct message){.kind = FORKED, .first = pid}, 0, 0, -1); }
void vt_send_ended(int status, int64_t cpu_us) { send_message((struct message){ENDED, 0, status, cpu_us}, 0, 0, -1); }

void vt_receive_request(struct vt_request *request, int fds[FORK_FDS]) {
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(FORK_FDS * sizeof(int))];
    } extra;
    struct iovec part = {request, sizeof *request};
    struct msghdr whole = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &extra,
                           .msg_controllen = sizeof extra.space};
    long size;
    do size = raw(SYS_recvmsg, control_fd, &whole, MSG_CMSG_CLOEXEC);
    while (size == -EINTR);
    if (size < (long)sizeof *request) on_simulator_gone();
    if (request->kind == FORK) memcpy(fds, CMSG_DATA(&extra.header), FORK_FDS * sizeof(int));
}

void vt_begin_conversation_of_copy(int fd) {
    raw(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    take_conversation(fd);
}
