/* Processes that a program starts: each has its own conversation with the simulator, which decides when it runs.
 *
 *   fork     the simulator gets its end of a new conversation; the child sends HELLO there and waits for its turn
 *   exec     the environment makes the new program load this library and use the same conversation
 *   wait     the kernel reports which child has ended; the simulator waits until it has
 */
#include "library.h"
#include <fcntl.h>
#include <pty.h>
#include <sched.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_STREAMS 64
#define MOST_ARGUMENTS 256
#define OWN_VARIABLES 5
#define MOST_FILES_TEXT 16384

static char seed[MOST_SEED];
static int children;

void vt_begin_processes(const char *text) {
    snprintf(seed, sizeof seed, "%s", text ? text : "");
    children = 0;
}

void vt_become_program(const char *text) {
    vt_begin_processes(text);
    vt_become_child();
    vt_begin_chance(seed);
}

static void seed_of_child(char text[MOST_SEED]) {
    if (snprintf(text, MOST_SEED, "%s/%d", seed, ++children) >= MOST_SEED)
        vt_refuse("fork", "processes are nested too deeply");
}

/* -- fork -- */

EXPORT pid_t fork(void) {
    if (!vt_active()) return REAL(fork)();
    if (getenv("VT_SERVES")) return vt_serve_forks();
    vt_count_call();
    char text[MOST_SEED];
    seed_of_child(text);
    int ends[2], error = vt_open_conversation(ends);
    if (error) return (pid_t)with_errno(error);
    pid_t pid = REAL(fork)();
    if (pid) {
        vt_send_child(pid, ends);
        return pid;
    }
    vt_become_program(text);
    vt_join_conversation(ends);
    return 0;
}

EXPORT pid_t _Fork(void) { return fork(); }

/* A function that returns twice cannot be wrapped; fork fulfils vfork's guarantees too. */
EXPORT pid_t vfork(void) { return fork(); }

/* -- exec -- */

static int is_own_variable(const char *entry) {
    return !strncmp(entry, "VT_FD=", 6) || !strncmp(entry, "VT_SEED=", 8) || !strncmp(entry, "VT_ORDER=", 9) ||
           !strncmp(entry, "VT_FILES=", 9) || !strncmp(entry, "LD_PRELOAD=", 11);
}

static char *join(const char *name, const char *value, const char *more) {
    char *entry = malloc(strlen(name) + strlen(value) + strlen(more) + 2);
    if (entry) sprintf(entry, "%s%s%s%s", name, value, *more ? ":" : "", more);
    return entry;
}

static char *preload_entry(char *const given[]) {
    static char anchor;
    Dl_info library;
    dladdr(&anchor, &library);
    const char *more = "";
    for (; given && *given; given++)
        if (!strncmp(*given, "LD_PRELOAD=", 11)) more = *given + 11;
    return join("LD_PRELOAD=", library.dli_fname, strstr(more, library.dli_fname) ? "" : more);
}

/* The environment of a new program: the given one, and the variables for this library. Freed with the process. */
static char **environment_of(char *const given[], int conversation, const char *seed_text) {
    size_t count = 0, used = 0;
    while (given && given[count]) count++;
    char **own = malloc((count + OWN_VARIABLES + 1) * sizeof *own), number[16], files[MOST_FILES_TEXT];
    if (!own) return 0;
    for (size_t i = 0; i < count; i++)
        if (!is_own_variable(given[i])) own[used++] = given[i];
    const char *order = getenv("VT_ORDER");
    snprintf(number, sizeof number, "%d", conversation);
    own[used++] = preload_entry(given);
    own[used++] = join("VT_FD=", number, "");
    own[used++] = join("VT_SEED=", seed_text, "");
    if (order) own[used++] = join("VT_ORDER=", order, "");
    if (vt_describe_files(files, sizeof files)) own[used++] = join("VT_FILES=", files, "");
    own[used] = 0;
    return own;
}

static int become(const char *file, char *const arguments[], char *const environment[],
                  int (*exec)(const char *, char *const[], char *const[])) {
    if (!vt_active()) return exec(file, arguments, environment);
    vt_count_call();
    vt_send_bye();  /* reports the time */
    char **own = environment_of(environment, vt_let_conversation_pass(1), seed);
    int result = own ? exec(file, arguments, own) : (int)with_errno(-ENOMEM);
    vt_let_conversation_pass(0);
    return result;
}

EXPORT int execve(const char *path, char *const arguments[], char *const environment[]) {
    return become(path, arguments, environment, REAL(execve));
}
EXPORT int execvpe(const char *file, char *const arguments[], char *const environment[]) {
    return become(file, arguments, environment, REAL(execvpe));
}
EXPORT int execv(const char *path, char *const arguments[]) { return execve(path, arguments, environ); }
EXPORT int execvp(const char *file, char *const arguments[]) { return execvpe(file, arguments, environ); }
EXPORT int fexecve(int fd, char *const arguments[], char *const environment[]) {
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return execve(path, arguments, environment);
}

/* The arguments of a list that ends with 0. */
#define LISTED(first, values)                                                                                          \
    char *arguments[MOST_ARGUMENTS + 1] = {(char *)first};                                                             \
    int count_ = 0;                                                                                                    \
    va_start(values, first);                                                                                           \
    while (arguments[count_] && count_ < MOST_ARGUMENTS) arguments[++count_] = va_arg(values, char *);                 \
    if (arguments[count_]) {                                                                                           \
        va_end(values);                                                                                                \
        return (int)with_errno(-E2BIG);                                                                                \
    }

EXPORT int execl(const char *path, const char *first, ...) {
    va_list values;
    LISTED(first, values)
    va_end(values);
    return execv(path, arguments);
}

EXPORT int execlp(const char *file, const char *first, ...) {
    va_list values;
    LISTED(first, values)
    va_end(values);
    return execvp(file, arguments);
}

EXPORT int execle(const char *path, const char *first, ...) {
    va_list values;
    LISTED(first, values)
    char *const *environment = va_arg(values, char *const *);
    va_end(values);
    return execve(path, arguments, environment);
}

/* -- spawn -- */

typedef int spawn_function(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                           char *const[], char *const[]);

static int spawn(spawn_function *function, pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]) {
    if (!vt_active()) return function(pid, file, actions, attributes, arguments, environment);
    vt_count_call();
    char text[MOST_SEED];
    seed_of_child(text);
    int ends[2], error = vt_open_conversation(ends);
    if (error) return -error;
    raw(SYS_fcntl, ends[0], F_SETFD, 0);
    char **own = environment_of(environment, ends[0], text);
    pid_t child = 0;
    error = own ? function(&child, file, actions, attributes, arguments, own) : ENOMEM;
    vt_send_child(error ? 0 : child, ends);
    if (pid && !error) *pid = child;
    return error;
}

EXPORT int posix_spawn(pid_t *restrict pid, const char *restrict path, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *restrict attributes, char *const arguments[],
                       char *const environment[]) {
    return spawn(REAL(posix_spawn), pid, path, actions, attributes, arguments, environment);
}

EXPORT int posix_spawnp(pid_t *restrict pid, const char *restrict file, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *restrict attributes, char *const arguments[],
                        char *const environment[]) {
    return spawn(REAL(posix_spawnp), pid, file, actions, attributes, arguments, environment);
}

/* -- waiting for children -- */

struct child_wait {
    idtype_t kind;
    id_t id;
    int options;
};

static int has_changed(const struct vt_wait *place) {
    const struct child_wait *wait = place->address;
    siginfo_t news = {0};
    long error = raw(SYS_waitid, wait->kind, wait->id, &news, wait->options | WNOHANG | WNOWAIT, 0);
    return error < 0 || news.si_pid;
}

/* Wait for a state change of a matching child; return 0, or EINTR. */
static int wait_for_news(const char *call, struct child_wait wait) {
    for (;;) {
        enum vt_outcome outcome =
            VT_WAIT(.call = call, .address = &wait, .is_over = has_changed, .deadline_ns = NEVER);
        if (outcome == WOKEN) return 0;
        if (!vt_restarts) return EINTR;
    }
}

EXPORT pid_t wait4(pid_t pid, int *status, int options, struct rusage *usage) {
    if (!vt_active()) return (pid_t)with_errno(raw(SYS_wait4, pid, status, options, usage));
    struct child_wait wait = {P_ALL, 0, WEXITED | (options & (WUNTRACED | WCONTINUED))};
    if (pid > 0) wait.kind = P_PID, wait.id = (id_t)pid;
    if (!pid || pid < -1) wait.kind = P_PGID, wait.id = (id_t)(pid ? -pid : getpgrp());
    for (;;) {
        long changed = raw(SYS_wait4, pid, status, options | WNOHANG, usage);
        if (changed) return (pid_t)with_errno(changed);
        if (options & WNOHANG) {
            vt_yield();
            return 0;
        }
        int error = wait_for_news("waitpid", wait);
        if (error) return (pid_t)with_errno(-error);
    }
}

EXPORT pid_t waitpid(pid_t pid, int *status, int options) { return wait4(pid, status, options, 0); }
EXPORT pid_t wait(int *status) { return wait4(-1, status, 0, 0); }
EXPORT pid_t wait3(int *status, int options, struct rusage *usage) { return wait4(-1, status, options, usage); }

EXPORT int waitid(idtype_t kind, id_t id, siginfo_t *news, int options) {
    if (!vt_active()) return (int)with_errno(raw(SYS_waitid, kind, id, news, options, 0));
    siginfo_t unused;
    if (!news) news = &unused;
    for (;;) {
        news->si_pid = 0;
        long error = raw(SYS_waitid, kind, id, news, options | WNOHANG, 0);
        if (error || news->si_pid) return (int)with_errno(error);
        if (options & WNOHANG) {
            vt_yield();
            return 0;
        }
        int result = wait_for_news("waitid", (struct child_wait){kind, id, options & ~WNOWAIT});
        if (result) return (int)with_errno(-result);
    }
}

/* -- commands for a shell -- */

static void run_command(const char *command) {
    execl("/bin/sh", "sh", "-c", command, (char *)0);
    _exit(127);
}

EXPORT int system(const char *command) {
    if (!vt_active()) return REAL(system)(command);
    if (!command) return 1;
    pid_t pid = fork();
    if (!pid) run_command(command);
    int status = -1;
    while (pid > 0 && waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) return -1;
    return status;
}

static struct {
    FILE *stream;
    pid_t pid;
} streams[MOST_STREAMS];

EXPORT FILE *popen(const char *command, const char *mode) {
    if (!vt_active()) return REAL(popen)(command, mode);
    int reads = *mode == 'r', ends[2], slot = 0;
    while (slot < MOST_STREAMS && streams[slot].stream) slot++;
    if (slot == MOST_STREAMS || pipe2(ends, O_CLOEXEC)) {
        if (slot == MOST_STREAMS) errno = EMFILE;
        return 0;
    }
    pid_t pid = fork();
    if (!pid) {
        dup2(ends[reads], reads);
        run_command(command);
    }
    close(ends[reads]);
    FILE *stream = pid < 0 ? 0 : fdopen(ends[!reads], reads ? "r" : "w");
    if (!stream) {
        close(ends[!reads]);
        return 0;
    }
    if (!strchr(mode, 'e')) fcntl(ends[!reads], F_SETFD, 0);
    streams[slot].stream = stream;
    streams[slot].pid = pid;
    return stream;
}

EXPORT int pclose(FILE *stream) {
    int slot = 0, status = -1;
    while (slot < MOST_STREAMS && streams[slot].stream != stream) slot++;
    if (slot == MOST_STREAMS) return REAL(pclose)(stream);
    streams[slot].stream = 0;
    fclose(stream);
    while (waitpid(streams[slot].pid, &status, 0) < 0)
        if (errno != EINTR) return -1;
    return status;
}
