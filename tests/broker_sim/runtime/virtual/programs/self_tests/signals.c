#include "self_test.h"
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int ended, told, alarms;
static void on_alarm(int number) { alarms += number == SIGALRM; }
static void on_child(int number) { ended += number == SIGCHLD; }
static void on_user(int number) { told = number; }

static void test_handlers(void) {
    struct sigaction action = {.sa_handler = on_child}, before;
    int status, ends[2];
    struct itimerval often = {{0, 10000}, {0, 10000}}, never = {{0, 0}, {0, 0}};
    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &often, 0);
    RESULT("pause", pause());
    setitimer(ITIMER_REAL, &never, 0);
    RESULT("its handler", alarms > 0);

    sigset_t blocked, none;
    sigemptyset(&none);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGCHLD);
    sigprocmask(SIG_BLOCK, &blocked, 0);
    RESULT("sigaction", sigaction(SIGCHLD, &action, &before) || before.sa_handler != SIG_DFL);
    pid_t pid = start_sleep();
    WOKEN("sigsuspend", 10, sigsuspend(&none));
    RESULT("handler of the end of a child", ended == 1 && waitpid(pid, &status, 0) == pid);
    pid = start_sleep();
    waitpid(pid, &status, 0);
    RESULT("handler while it is blocked", ended);
    RESULT("sigsuspend, told before", sigsuspend(&none));
    RESULT("handler then", ended);
    sigprocmask(SIG_UNBLOCK, &blocked, 0);
    RESULT("signal", signal(SIGCHLD, on_child) == on_child);
    pid = start_sleep();
    WOKEN("waitpid goes on", 10, waitpid(pid, &status, 0) == pid);
    RESULT("handler of it", ended);
    signal(SIGCHLD, SIG_DFL);

    signal(SIGUSR1, on_user);
    RESULT("kill of itself", kill(getpid(), SIGUSR1) == 0 && told == SIGUSR1);
    if (pipe(ends)) return;
    pid = fork();
    if (!pid) {
        told = setpgid(0, 0);
        signal(SIGTERM, on_user);
        if (write(ends[1], "r", 1) != 1) _exit(98);
        while (!told) usleep(1000);
        _exit(told);
    }
    char ready;
    RESULT("child is ready", read(ends[0], &ready, 1));
    RESULT("kill with 0", kill(pid, 0));
    RESULT("killpg", killpg(pid, SIGTERM));
    RESULT("what the child was told", waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == SIGTERM);
    pid = fork();
    if (!pid) for (;;) sleep(60);
    RESULT("SIGKILL", kill(pid, SIGKILL));
    RESULT("its status", waitpid(pid, &status, 0) == pid && WTERMSIG(status) == SIGKILL);
    close(ends[0]), close(ends[1]);
}

/* -- signals without a handler: they are blocked, and asked for -- */

static void *send_later(void *unused) {
    usleep(10000);
    kill(getpid(), SIGUSR2);
    return unused;
}

#define SEND_LATER(name, call)                                                                                         \
    do {                                                                                                               \
        pthread_t sender_;                                                                                             \
        pthread_create(&sender_, 0, send_later, 0);                                                                    \
        WOKEN(name, 10, call);                                                                                         \
        pthread_join(sender_, 0);                                                                                      \
    } while (0)

static void test_awaited(void) {
    sigset_t set, none;
    siginfo_t news;
    struct signalfd_siginfo record;
    struct timespec ten = {0, 10 * MS}, minute = {60, 0};
    struct epoll_event event = {.events = EPOLLIN};
    struct pollfd nothing = {-1, 0, 0};
    int number = 0, epoll = epoll_create1(0);
    sigemptyset(&none);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, 0);
    SEND_LATER("sigwait", sigwait(&set, &number));
    RESULT("its signal", number == SIGUSR2);
    SEND_LATER("sigwaitinfo", sigwaitinfo(&set, &news) == SIGUSR2 && news.si_signo == SIGUSR2);
    SEND_LATER("sigtimedwait", sigtimedwait(&set, &news, &minute) == SIGUSR2);
    TIMED("sigtimedwait without a signal", 10, sigtimedwait(&set, &news, &ten) == -1 && errno == EAGAIN);
    kill(getpid(), SIGUSR2);
    RESULT("sigwait of what has come", sigwait(&set, &number));
    int file = signalfd(-1, &set, SFD_CLOEXEC);
    SEND_LATER("signalfd", read(file, &record, sizeof record) == sizeof record && record.ssi_signo == SIGUSR2);
    close(file);

    signal(SIGUSR2, on_user);
    told = 0;
    SEND_LATER("ppoll with a mask", ppoll(&nothing, 1, &minute, &none) == -1 && errno == EINTR && told == SIGUSR2);
    SEND_LATER("pselect with a mask", pselect(0, 0, 0, 0, &minute, &none) == -1 && errno == EINTR);
    SEND_LATER("epoll_pwait with a mask", epoll_pwait(epoll, &event, 1, 60000, &none) == -1 && errno == EINTR);
    told = 0;
    pthread_t sender;
    pthread_create(&sender, 0, send_later, 0);
    TIMED("usleep while it is blocked", 20, usleep(20000));
    pthread_join(sender, 0);
    RESULT("its handler", told);
    sigprocmask(SIG_UNBLOCK, &set, 0);
    RESULT("its handler then", told == SIGUSR2);
    signal(SIGUSR2, SIG_DFL);
    close(epoll);
}

static void test_timers(void) {
    uint64_t times = 0;
    struct itimerspec in_ten = {{0, 0}, {0, 10 * MS}}, every_ten = {{0, 10 * MS}, {0, 10 * MS}}, never = {{0, 0}, {0, 0}}, left;
    int file = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    struct pollfd one = {file, POLLIN, 0};
    RESULT("timerfd_settime", timerfd_settime(file, 0, &in_ten, 0));
    RESULT("timerfd_gettime", timerfd_gettime(file, &left) == 0 && left.it_value.tv_nsec > 0 && !left.it_interval.tv_nsec);
    TIMED("timerfd", 10, read(file, &times, sizeof times) == 8 && times == 1);
    timerfd_settime(file, 0, &every_ten, 0);
    TIMED("timerfd, polled", 10, poll(&one, 1, 60000));
    RESULT("its times", read(file, &times, sizeof times) == 8 && times >= 1);
    WOKEN("timerfd again", 10, poll(&one, 1, 60000));
    RESULT("timerfd that is ended", timerfd_settime(file, 0, &never, &left) == 0 && left.it_interval.tv_nsec == 10 * MS);
    TIMED("no timer", 20, poll(&one, 1, 20));
    in_ten.it_value = in_ms(CLOCK_MONOTONIC, 10);
    timerfd_settime(file, TFD_TIMER_ABSTIME, &in_ten, 0);
    WOKEN("timerfd at a time", 10, poll(&one, 1, 60000));
    close(file);
}

void test_signals(void) {
    test_handlers();
    test_awaited();
    test_timers();
}
