#include "self_test.h"
#include <stdlib.h>

int is_virtual, echo_port;

int main(int count, char **words) {
    if (count != 3) return 2;
    is_virtual = !strcmp(words[1], "virtual");
    echo_port = atoi(words[2]);
    setvbuf(stdout, 0, _IONBF, 0);
    test_clocks();
    test_threads();
    test_locks();
    test_files();
    test_sockets();
    test_chance();
    test_processes();
    test_signals();
    return 0;
}
