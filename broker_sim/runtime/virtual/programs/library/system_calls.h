/* System calls made by this library itself; libc's functions cannot be used, because the library replaces them. */
#ifndef SYSTEM_CALLS_H
#define SYSTEM_CALLS_H
#include <errno.h>
#include <sys/syscall.h>

/* Make a system call; return its result, or a negative errno. */
static inline long vt_system_call(long number, long a, long b, long c, long d, long e, long f) {
#if defined __x86_64__
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
#elif defined __aarch64__
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
#else
#error "programs in virtual time run on x86-64 and aarch64"
#endif
}

/* raw(SYS_close, fd): up to six arguments of any type. */
#define raw(...) RAW_PICK(__VA_ARGS__, RAW_6, RAW_5, RAW_4, RAW_3, RAW_2, RAW_1, RAW_0, )(__VA_ARGS__)
#define RAW_PICK(_0, _1, _2, _3, _4, _5, _6, NAME, ...) NAME
#define RAW_0(n) vt_system_call(n, 0, 0, 0, 0, 0, 0)
#define RAW_1(n, a) vt_system_call(n, (long)(a), 0, 0, 0, 0, 0)
#define RAW_2(n, a, b) vt_system_call(n, (long)(a), (long)(b), 0, 0, 0, 0)
#define RAW_3(n, a, b, c) vt_system_call(n, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define RAW_4(n, a, b, c, d) vt_system_call(n, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define RAW_5(n, a, b, c, d, e) vt_system_call(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)
#define RAW_6(n, a, b, c, d, e, f) vt_system_call(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

/* Return the result of a system call as libc does: -1 and errno. */
static inline long with_errno(long result) {
    if (result >= 0 || result <= -4096) return result;
    errno = (int)-result;
    return -1;
}
#endif
