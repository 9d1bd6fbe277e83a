#include "self_test.h"
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static char *const SLEEP[] = {"sleep", "0.01", 0};
static char *const FAIL[] = {"sh", "-c", "exit $CODE", 0};
static char *const CODE[] = {"CODE=5", "PATH=/usr/bin:/bin", 0};

static int code_of(pid_t pid) {
    int status = 0;
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#define CHILD(name, code)                                                                                              \
    do {                                                                                                               \
        pid_t pid_ = fork();                                                                                           \
        if (!pid_) {                                                                                                   \
            code;                                                                                                      \
            _exit(99);                                                                                                 \
        }                                                                                                              \
        RESULT(name, code_of(pid_));                                                                                   \
    } while (0)

static void test_exec(void) {
    CHILD("execve", execve("/bin/sh", FAIL, CODE));
    CHILD("execvpe", execvpe("sh", FAIL, CODE));
    CHILD("fexecve", fexecve(open("/bin/sh", O_RDONLY), FAIL, CODE));
    CHILD("execle", execle("/bin/sh", "sh", "-c", "exit $CODE", (char *)0, CODE));
    setenv("CODE", "6", 1);
    CHILD("execv", execv("/bin/sh", FAIL));
    CHILD("execvp", execvp("sh", FAIL));
    CHILD("execl", execl("/bin/sh", "sh", "-c", "exit $CODE", (char *)0));
    CHILD("execlp", execlp("sh", "sh", "-c", "exit $CODE", (char *)0));
    CHILD("exec of what is not there", _exit(execv("/bin/there-is-none", FAIL) + 10));
    pid_t pid;
    RESULT("posix_spawn", posix_spawn(&pid, "/bin/sh", 0, 0, FAIL, CODE) ? -1 : code_of(pid));
    RESULT("posix_spawnp", posix_spawnp(&pid, "sh", 0, 0, FAIL, environ) ? -1 : code_of(pid));
    RESULT("posix_spawn of what is not there", posix_spawn(&pid, "/bin/there-is-none", 0, 0, FAIL, CODE) != 0);
    pid = vfork();
    if (!pid) _exit(7);
    RESULT("vfork", code_of(pid));
    pid = _Fork();
    if (!pid) _exit(8);
    RESULT("_Fork", code_of(pid));
}

pid_t start_sleep(void) {
    pid_t pid;
    posix_spawnp(&pid, "sleep", 0, 0, SLEEP, environ);
    return pid;
}

/* A process starts and ends in real time; in virtual time only what it sleeps counts. */
static void test_waiting(void) {
    struct rusage usage;
    siginfo_t news = {0};
    int status;
    int ends[2];
    if (pipe(ends)) return;
    pid_t pid = fork();
    if (!pid) {
        char byte;
        close(ends[1]);
        _exit((int)read(ends[0], &byte, 1));
    }
    RESULT("waitpid without a wait", waitpid(pid, &status, WNOHANG));
    close(ends[1]);
    RESULT("waitpid of a reader", waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 0);
    close(ends[0]);
    pid = start_sleep();
    WOKEN("waitpid", 10, waitpid(pid, &status, 0) == pid);
    pid = start_sleep();
    WOKEN("wait", 10, wait(&status) == pid);
    pid = start_sleep();
    WOKEN("wait3", 10, wait3(&status, 0, &usage) == pid);
    pid = start_sleep();
    WOKEN("wait4", 10, wait4(pid, &status, 0, &usage) == pid);
    pid = start_sleep();
    WOKEN("waitid", 10, waitid(P_PID, (id_t)pid, &news, WEXITED | WNOWAIT));
    RESULT("its news", news.si_pid == pid && news.si_code == CLD_EXITED && waitpid(pid, &status, WNOHANG) == pid);
    RESULT("wait without a child", wait(&status) == -1 && errno == ECHILD);
    WOKEN("system", 10, WEXITSTATUS(system("sleep 0.01; exit 3")));
}

static void test_streams(void) {
    char line[32] = "";
    FILE *stream = popen("sleep 0.01; echo one; exit 4", "r");
    WOKEN("fgets", 10, fgets(line, sizeof line, stream) && !strcmp(line, "one\n"));
    RESULT("pclose", WEXITSTATUS(pclose(stream)));
    stream = popen("read word; test \"$word\" = two", "w");
    fprintf(stream, "two\n");
    RESULT("pclose of what was written", pclose(stream));
}

struct shared {
    pthread_mutex_t mutex;
    sem_t semaphore;
};

static void test_shared_memory(void) {
    struct shared *shared = mmap(0, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&shared->mutex, &attributes);
    sem_init(&shared->semaphore, 1, 0);
    pid_t pid = fork();
    if (!pid) {
        pthread_mutex_lock(&shared->mutex);
        sem_post(&shared->semaphore);
        usleep(10000);
        pthread_mutex_unlock(&shared->mutex);
        usleep(10000);
        sem_post(&shared->semaphore);
        _exit(0);
    }
    RESULT("semaphore of another process", sem_wait(&shared->semaphore));
    WOKEN("mutex of another process", 10, pthread_mutex_lock(&shared->mutex));
    WOKEN("semaphore of another process, later", 10, sem_wait(&shared->semaphore));
    RESULT("its end", code_of(pid));
    munmap(shared, sizeof *shared);
}

struct room {
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    int waiting, is_open;
};

static int wait_in(struct room *room) {
    int error = 0;
    pthread_mutex_lock(&room->mutex);
    room->waiting++;
    pthread_cond_broadcast(&room->condition);
    while (!error && !room->is_open) error = pthread_cond_wait(&room->condition, &room->mutex);
    room->is_open--;
    pthread_mutex_unlock(&room->mutex);
    return error;
}

static void open_for(struct room *room, int members, int (*wake)(pthread_cond_t *)) {
    pthread_mutex_lock(&room->mutex);
    while (room->waiting < members) pthread_cond_wait(&room->condition, &room->mutex);
    room->is_open = members;
    room->waiting = 0;
    wake(&room->condition);
    pthread_mutex_unlock(&room->mutex);
}

static void test_shared_conditions(void) {
    struct room *room = mmap(0, sizeof *room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t of_mutex;
    pthread_mutexattr_init(&of_mutex);
    pthread_mutexattr_setpshared(&of_mutex, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&room->mutex, &of_mutex);
    pthread_condattr_t of_condition;
    pthread_condattr_init(&of_condition);
    pthread_condattr_setpshared(&of_condition, PTHREAD_PROCESS_SHARED);
    pthread_condattr_setclock(&of_condition, CLOCK_MONOTONIC);
    pthread_cond_init(&room->condition, &of_condition);
    pid_t first = fork();
    if (!first) _exit(wait_in(room));
    open_for(room, 1, pthread_cond_signal);
    RESULT("signal to another process", code_of(first));
    first = fork();
    if (!first) _exit(wait_in(room));
    pid_t second = fork();
    if (!second) _exit(wait_in(room));
    open_for(room, 2, pthread_cond_broadcast);
    RESULT("broadcast to another process", code_of(first));
    RESULT("broadcast to a third process", code_of(second));
    pid_t late = fork();
    if (!late) {
        usleep(10000);
        open_for(room, 1, pthread_cond_signal);
        _exit(0);
    }
    WOKEN("signal of another process, later", 10, wait_in(room));
    RESULT("end of the process that sent it", code_of(late));
    pthread_mutex_lock(&room->mutex);
    struct timespec until = in_ms(CLOCK_MONOTONIC, 10);
    TIMED("shared condition without a signal", 10, pthread_cond_timedwait(&room->condition, &room->mutex, &until));
    pthread_mutex_unlock(&room->mutex);
    munmap(room, sizeof *room);
}

static uint32_t await_word(uint32_t *word) {
    while (!__atomic_load_n(word, __ATOMIC_ACQUIRE)) syscall(SYS_futex, word, FUTEX_WAIT, 0, 0, 0, 0);
    return *word;
}

static void test_shared_futexes(void) {
    uint32_t *word = mmap(0, sizeof *word, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid = fork();
    if (!pid) {
        usleep(10000);
        __atomic_store_n(word, 1, __ATOMIC_RELEASE);
        syscall(SYS_futex, word, FUTEX_WAKE, 1, 0, 0, 0);
        _exit(0);
    }
    WOKEN("futex of another process", 10, await_word(word));
    RESULT("end of the process that woke it", code_of(pid));
    struct timespec limit = {0, 10000000};
    TIMED("futex of processes that nobody wakes", 10, syscall(SYS_futex, word, FUTEX_WAIT, 1, &limit, 0, 0));
    munmap(word, sizeof *word);
}

/* A child that has closed all files can wait, and end. */
static void test_closing(void) {
    CHILD("closefrom", closefrom(3); usleep(1000); _exit(fcntl(2, F_GETFD) < 0));
    CHILD("close_range", close_range(3, ~0U, 0); usleep(1000); _exit(9));
}

void test_processes(void) {
    test_exec();
    test_waiting();
    test_streams();
    test_shared_memory();
    test_shared_conditions();
    test_shared_futexes();
    test_closing();
}
