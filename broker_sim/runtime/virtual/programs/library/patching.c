/* Functions patched in place: their first bytes become a jump. This also catches calls inside a library, which
 * LD_PRELOAD does not reach. */
#include "library.h"
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE_UNIT ((uintptr_t)sysconf(_SC_PAGESIZE))

void vt_write_jump(char *code, uintptr_t target) {
#if defined __x86_64__
    unsigned char jump[12] = {0x48, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xE0};  /* mov rax, target; jmp rax */
    memcpy(jump + 2, &target, sizeof target);
#else
    unsigned char jump[16] = {0x50, 0, 0, 0x58, 0, 0x02, 0x1F, 0xD6};  /* ldr x16, [pc + 8]; br x16; target */
    memcpy(jump + 8, &target, sizeof target);
#endif
    uintptr_t page = (uintptr_t)code & ~(PAGE_UNIT - 1), end = (uintptr_t)code + sizeof jump;
    raw(SYS_mprotect, page, end - page, PROT_READ | PROT_WRITE | PROT_EXEC);
    memcpy(code, jump, sizeof jump);
    raw(SYS_mprotect, page, end - page, PROT_READ | PROT_EXEC);
    __builtin___clear_cache(code, (char *)end);
}

/* fread, fgets, getline and puts block inside of libc until another process writes or reads. */
void vt_replace_inside_libc(void) {
    vt_write_jump((char *)REAL(read), (uintptr_t)read);
    vt_write_jump((char *)REAL(write), (uintptr_t)write);
}
