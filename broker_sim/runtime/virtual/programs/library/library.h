/* Virtual time for an unmodified program: declarations shared by the files of this library.
 *
 * LD_PRELOAD loads the library before libc. It replaces functions for clocks, waits, connections and random bytes.
 *
 *   scheduler.c     which thread runs            waiting.c   poll, select, epoll, blocking reads
 *   conversation.c  messages to the simulator    sockets.c   TCP connections
 *   clocks.c        clocks, sleeps and timers    files.c     open, close and copies of file descriptors
 *   threads.c       threads                      chance.c    random bytes
 *   locks.c         mutexes, conditions, ...     openssl.c   OpenSSL's random bytes
 *   processes.c     child processes              signals.c   signals, between processes too
 *   fork_server.c   copies of a started program  report.c    texts for errors
 *   refusals.c      unsupported calls            machine.c   memory and mounts of the machine
 *   patching.c      patches functions in place
 *
 * Rules
 * 1. Threads take turns. One holds the token and gives it up only in a call that waits, so the library's data is used
 *    by one thread at a time and needs no lock.
 * 2. Time moves only while no thread can run: to the first deadline if nothing happens outside before it (the
 *    horizon), else as far as the simulator says. Code that never waits is charged small costs, or it would spin for
 *    ever.
 * 3. The kernel decides whether a file is ready: a connection is a Unix socket whose other end the simulator has, and
 *    all that the simulator writes has arrived before it sends GO.
 * 4. The library makes system calls by `raw`, and calls libc's own functions by `REAL`.
 * 5. A call that is neither virtual nor harmless ends the program by `vt_refuse`, with the name of the call.
 *
 * The protocol: datagrams over one SOCK_SEQPACKET pair for each process, whose descriptor is in the variable VT_FD. The
 * program sends first, then each side waits for the other.
 *
 *   HELLO    pid                          the library has been loaded, maybe again after exec; GO answers
 *   IDLE     flags, now, deadline         all threads wait until then; GO answers. Flags: 1 if any has run, 2 if one
 *                                         may wait for room to write
 *   CONNECT  number, address, filler, fd  a TCP connection: the fd is its other end, full of `filler` bytes, and
 *                                         it is connected once the simulator has read them
 *   RESOLVE  name                         GO answers at once, with the address as its result
 *   BIND     port                         bind a port, 0 for a free one; GO answers at once, with errno or the port
 *   SERVER   port, fd                     the fd is the other end of a socket pair: each connection is a message to it
 *                                         of number, port and address of the peer, with an fd that is connected
 *   LISTEN   port                         accept connections from now on
 *   CHILD    pid, fd                      a process was started: fd is the simulator's end of its conversation; GO
 *                                         answers at once
 *   SIGNAL   number, pid                  GO answers at once, with errno or NOT_OURS
 *   REFUSE   text                         the call is not supported in virtual time; the program ends
 *   REPORT   text                         answers DESCRIBE: what each thread waits for
 *   BYE      now                          the program ends or execs another one
 *   SERVES   now                          it forks with VT_SERVES in its environment: FORK and WAIT follow
 *   FORKED   pid or a negative errno      answers FORK: a copy is a program of its own, and sends HELLO next
 *   ENDED    status, CPU time in us       answers WAIT, as wait4 gives them
 *
 *   GO        now, horizon, wall clock, signal, calls until it is killed (0: never), results of connections;
 *             a child's first GO has the base of its connection numbers as result of connection 0
 *   DESCRIBE                              report what each thread waits for, and go on waiting
 *   FORK      order, seed, fds            fork; the fds are the copy's conversation, its output, and a file for it
 *   WAIT      pid                         wait until this copy has ended
 */
#ifndef LIBRARY_H
#define LIBRARY_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "system_calls.h"
#include <dlfcn.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))
#define NEVER INT64_MAX
#define NS_PER_S 1000000000LL
#define NS_PER_MS 1000000LL
#define ALL INT32_MAX
#define MAX_FDS 65536
#define CONTROL_FD_FROM 900

/* -- libc's own functions -- */

#define REAL(name)                                                                                                     \
    ({                                                                                                                 \
        static __typeof__(&name) real_;                                                                                \
        if (!real_) real_ = (__typeof__(&name))dlsym(RTLD_NEXT, #name);                                                \
        real_;                                                                                                         \
    })
/* The newer of two versions: glibc on x86-64 still has the condition functions from before 2.3.2. */
#if defined __x86_64__
#define REAL_CONDITION(name)                                                                                           \
    ({                                                                                                                 \
        static __typeof__(&name) real_;                                                                                \
        if (!real_) real_ = (__typeof__(&name))dlvsym(RTLD_NEXT, #name, "GLIBC_2.3.2");                                \
        real_;                                                                                                         \
    })
#else
#define REAL_CONDITION(name) REAL(name)
#endif

/* -- scheduler.c -- */

enum vt_outcome { WOKEN, TIMED_OUT, INTERRUPTED };
enum vt_state { RUNNING, READY, BLOCKED, EXITED };

/* What a thread waits for: an object in memory, or files; and until when. */
struct vt_wait {
    const char *call;  /* the function that the program has called, for reports */
    const void *address;
    int (*is_over)(const struct vt_wait *wait);  /* if another process may end the wait */
    uint32_t value;    /* of the word at the address when the wait began, for `is_over` */
    struct pollfd *fds;
    nfds_t fd_count;
    const sigset_t *signals;
    int64_t deadline_ns;
    int is_for_lock;
};

struct vt_thread {
    struct vt_thread *next;  /* of all threads, in the order of creation */
    struct vt_thread *next_ready;
    int number;
    pid_t tid;
    pthread_t handle;
    int is_detached;
    int has_token;  /* a futex */
    enum vt_state state;
    struct vt_wait wait;
    uint64_t turn;  /* the longest-waiting thread is woken first */
    enum vt_outcome outcome;
    int pending_signal, awaited_signal;
    sigset_t blocked;  /* while the main thread waits */
    void *(*start)(void *);
    int (*start_c11)(void *);
    void *argument;
    int clock_reads, locks;  /* since a wait in which time moved */
    int yields;              /* since it last waited */
    int libc_locks;          /* number of libc's own locks that it may hold, for which others would wait in real time */
    int exit_rounds;
    void *stack;
    size_t stack_size, guard_size;
};

extern int vt_enabled;
extern int64_t vt_now_ns;  /* since the simulator's loop was created */
extern int vt_has_sent;    /* whether the simulator has to read connections before time moves */
extern int vt_restarts;    /* whether calls interrupted by the last signal are restarted: SA_RESTART */
extern pid_t vt_pid;
extern uint32_t vt_calls_left;  /* number of calls until the program is killed; 0: never */
extern struct vt_thread *vt_threads;
extern __thread struct vt_thread *vt_self;

/* Whether the calling thread takes part; a thread created without the library does not. */
static inline int vt_active(void) { return __builtin_expect(vt_enabled && vt_self != 0, 1); }

void vt_die(void);
/* Count a call with an effect outside of the program: a kill there falls between two statements. */
static inline void vt_count_call(void) {
    if (__builtin_expect(vt_calls_left != 0, 0) && vt_active() && !--vt_calls_left) vt_die();
}

enum vt_outcome vt_wait(struct vt_wait wait);
#define VT_WAIT(...) vt_wait((struct vt_wait){__VA_ARGS__})
/* Wait for a condition; the mutex is released once the thread is waiting. */
enum vt_outcome vt_wait_releasing(struct vt_wait wait, pthread_mutex_t *mutex);
int vt_wake(const void *address, int count);
void vt_wake_for_lock(const void *address);
void vt_yield(void);    /* let other threads run now; costs time if there are none */
void vt_on_clock_read(void);  /* count what a busy loop does; it may cost time */
void vt_on_lock(void);
static inline void vt_hold_libc_lock(int change) {
    if (vt_self) vt_self->libc_locks += change;
}
void vt_interrupt(int signal);
int vt_raise(int signal);  /* send it to this process */
int vt_take_pending(void);  /* take a signal that was blocked until now; returns whether there was one */
extern int64_t vt_alarm_ns, vt_alarm_every_ns;  /* time of SIGALRM, NEVER without one; interval, 0: once */
void vt_move_time(int64_t now_ns, int64_t horizon_ns);
void vt_become_child(void);  /* after fork: there is one thread, and it has the token */
void vt_begin_order(uint64_t number);  /* of threads, 0: first come, first served */

struct vt_thread *vt_new_thread(void);
int vt_thread_count(void);
void vt_add_thread(struct vt_thread *thread);
void vt_remove_thread(struct vt_thread *thread);
void vt_begin_thread(struct vt_thread *thread);
void vt_end_thread(struct vt_thread *thread);
struct vt_thread *vt_thread_of(pthread_t handle);

/* -- conversation.c -- */

int vt_begin_conversation(void);  /* 0 outside of virtual time */
void vt_send_idle(int has_run, int may_wait_for_room, int64_t deadline_ns);
void vt_send_connect(uint32_t number, int64_t address, int64_t filler, int fd);
void vt_send_bye(void);
void vt_send_refusal(const char *text);
int64_t vt_resolve(const char *name);  /* an IPv4 address, -1 if there is none */
int64_t vt_bind(int port);  /* the port, or a negative errno */
void vt_send_server(int port, int fd);
void vt_send_listen(int port);
int vt_control_fd(void);  /* -1 outside of virtual time */
int vt_open_conversation(int ends[2]);  /* for a child: its end and the simulator's; 0 or a negative errno */
void vt_join_conversation(const int ends[2]);
void vt_send_child(pid_t pid, const int ends[2]);  /* does nothing but close the ends unless pid > 0 */
int vt_let_conversation_pass(int passes);  /* whether exec's program inherits it; returns its descriptor */
int vt_send_signal(pid_t pid, int number);  /* errno, or NOT_OURS if the kernel has to send it */
#define NOT_OURS 1000
#define MOST_SEED 1024
struct vt_request {  /* for a fork server */
    uint32_t kind;
    int32_t pid;
    uint64_t order;
    char seed[MOST_SEED];
};
enum { GO = 1, DESCRIBE, FORK, WAIT };  /* kinds of the simulator's messages */
#define FORK_FDS 3
void vt_send_serves(void);
void vt_receive_request(struct vt_request *request, int fds[FORK_FDS]);
void vt_send_forked(pid_t pid);
void vt_send_ended(int status, int64_t cpu_us);
void vt_begin_conversation_of_copy(int fd);

/* -- fork_server.c -- */

pid_t vt_serve_forks(void);

/* -- clocks.c -- */

extern int64_t vt_wall_start_ns;  /* the wall clock at time 0 */
int64_t vt_deadline(clockid_t clock, const struct timespec *absolute);
int64_t vt_deadline_after(const struct timespec *relative);
int64_t vt_next_timer_ns(void);
void vt_run_timers(void);
void vt_forget_timer(int fd);

/* -- processes.c, signals.c -- */

void vt_begin_processes(const char *seed);
void vt_become_program(const char *seed);  /* in a new process: one thread, and the chance of this seed */
int vt_take_held(const sigset_t *set);  /* a pending signal of the set that the main thread blocks; 0 if none */
void vt_forget_signals(int fd);
int vt_write_signal(int number);
int vt_enter_mask(const sigset_t *mask, sigset_t *before);  /* whether a signal arrived that was blocked before */
void vt_leave_mask(const sigset_t *mask, const sigset_t *before);
/* The result of a call that waits with a signal mask, 0 for the thread's own. */
#define WITH_MASK(mask, call)                                                                                          \
    ({                                                                                                                 \
        sigset_t before_;                                                                                              \
        int result_ = vt_enter_mask(mask, &before_) ? (int)with_errno(-EINTR) : (call);                                \
        vt_leave_mask(mask, &before_);                                                                                 \
        result_;                                                                                                       \
    })
int vt_is_signal_ignored(int number);
int vt_take_signal(int number, pid_t thread);

/* -- waiting.c, sockets.c, listening.c, files.c, chance.c, machine.c, openssl.c, patching.c, refusals.c, report.c -- */

int vt_poll(const char *call, struct pollfd *fds, nfds_t count, int64_t deadline_ns);
int vt_await(const char *call, int fd, short events);
int64_t vt_deadline_of(int fd, short events);  /* of a blocking call that starts now: SO_RCVTIMEO or SO_SNDTIMEO */
void vt_on_connected(uint32_t number, int error);
void vt_number_connections_from(uint32_t number);
void vt_on_close(int fd);
void vt_on_copy(int from, int to);
int vt_is_stream(int fd);
int vt_family(int fd);
void vt_on_socket(int fd);
int vt_replace_by_pair(int fd, int kind, long status);
size_t vt_describe_files(char *text, size_t size);  /* for the program that exec starts */
void vt_inherit_files(const char *text);
int vt_describe_server(int fd, char *text, size_t size);
void vt_inherit_server(int fd, const char *text);
void vt_adopt(int fd, uint32_t number, int family, struct sockaddr_in peer, struct sockaddr_in own);
int vt_listens(int fd);
int vt_bound_address(int fd, struct sockaddr_in *address);  /* its family; 0 if it is not bound */
void vt_forget_server(int fd);
void vt_copy_server(int from, int to);
int vt_describe_connection(int fd, char *text, size_t size);
void vt_begin_chance(const char *seed);
uint64_t vt_draw(void);
void vt_fill_with_chance(void *buffer, size_t size);
int vt_is_chance(int fd);
int vt_open_mounts(const char *path, int flags);  /* -1 for what is no list of mounts */
void vt_replace_openssl(void);
void vt_write_jump(char *code, uintptr_t target);
void vt_replace_inside_libc(void);
__attribute__((noreturn)) void vt_refuse(const char *call, const char *advice);
void vt_begin_reports(void);
size_t vt_describe_threads(char *text, size_t size);

#endif
