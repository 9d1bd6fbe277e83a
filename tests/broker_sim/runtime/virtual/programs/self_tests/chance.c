#include "self_test.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

/* Print whether bytes are not all zero; in virtual time the bytes too, on stderr: they repeat with the seed. */
static void show(const char *name, const unsigned char *bytes, size_t size) {
    int any = 0;
    for (size_t i = 0; i < size; i++) any |= bytes[i];
    RESULT(name, any != 0);
    if (!is_virtual) return;
    fprintf(stderr, "%s ", name);
    for (size_t i = 0; i < size; i++) fprintf(stderr, "%02x", bytes[i]);
    fprintf(stderr, "\n");
}

/* In virtual time there are only the root, under its constant name, and the control groups. */
static void show_mounts(const char *name, FILE *mounts) {
    char line[8192];
    int count = 0, others = 0;
    while (fgets(line, sizeof line, mounts)) {
        int is_root = strstr(line, " / ") && strstr(line, "rootfs");
        others += !is_root && !strstr(line, "cgroup");
        count++;
    }
    RESULT(name, count > 0 && (!is_virtual || others == 0));
    fclose(mounts);
}

void test_chance(void) {
    unsigned char bytes[13] = {0};
    RESULT("getrandom gives", getrandom(bytes, sizeof bytes, 0));
    show("getrandom", bytes, sizeof bytes);
    RESULT("getentropy gives", getentropy(bytes, sizeof bytes));
    show("getentropy", bytes, sizeof bytes);
    RESULT("the system call gives", syscall(SYS_getrandom, bytes, sizeof bytes, 0));
    show("the system call", bytes, sizeof bytes);
    int file = open("/dev/urandom", O_RDONLY);
    RESULT("/dev/urandom gives", read(file, bytes, sizeof bytes));
    show("/dev/urandom", bytes, sizeof bytes);
    int copy = dup(file);
    close(file);
    RESULT("a copy of it gives", read(copy, bytes, sizeof bytes));
    show("a copy of it", bytes, sizeof bytes);
    close(copy);
    unsigned seed = 1;
    int drawn = rand_r(&seed);
    show("rand_r", (unsigned char *)&drawn, sizeof drawn);
    uint32_t (*draw)(void) = (uint32_t(*)(void))dlsym(RTLD_DEFAULT, "arc4random");
    void (*fill)(void *, size_t) = (void (*)(void *, size_t))dlsym(RTLD_DEFAULT, "arc4random_buf");
    if (draw) drawn = (int)draw();
    show("arc4random", (unsigned char *)&drawn, sizeof drawn);
    if (fill) fill(bytes, sizeof bytes);
    show("arc4random_buf", bytes, sizeof bytes);
    struct sysinfo info;
    RESULT("sysinfo", sysinfo(&info));
    RESULT("free memory that repeats", !is_virtual || (info.freeram == info.totalram && !info.loads[0]));
    show_mounts("mounts by open", fdopen(open("/proc/self/mountinfo", O_RDONLY), "r"));
    show_mounts("mounts by fopen", fopen("/proc/self/mountinfo", "r"));
    show_mounts("mounts in short", fopen("/proc/mounts", "re"));
    RESULT("dlopen", dlopen("libm.so.6", RTLD_NOW) != 0);
}
