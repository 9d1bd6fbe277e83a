/* OpenSSL's random bytes follow from the seed too, even if OpenSSL is linked into a library, as into librdkafka.
 *
 * It takes its seed from the system, which chance.c replaces, but mixes in heap addresses, which differ with the size
 * of the environment. A library calls its own functions directly, so their first bytes become a jump. They are found
 * in the symbol table of each loaded file.
 */
#include "library.h"
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define MOST_OBJECTS 1024

/* Not under OpenSSL's names: in a program with OpenSSL linked in, those are the program's own. */
static int draw_bytes(unsigned char *buffer, int size) {
    vt_fill_with_chance(buffer, (size_t)size);
    return 1;
}

static int draw_bytes_ex(void *context, unsigned char *buffer, size_t size, unsigned strength) {
    (void)context, (void)strength;
    vt_fill_with_chance(buffer, size);
    return 1;
}

static const struct {
    const char *name;
    uintptr_t replacement;
} REPLACED[] = {
    {"RAND_bytes", (uintptr_t)draw_bytes},
    {"RAND_priv_bytes", (uintptr_t)draw_bytes},
    {"RAND_bytes_ex", (uintptr_t)draw_bytes_ex},
    {"RAND_priv_bytes_ex", (uintptr_t)draw_bytes_ex},
};

static void replace_in_table(const char *file, const Elf64_Shdr *sections, const Elf64_Shdr *table, uintptr_t base) {
    const Elf64_Sym *symbols = (const void *)(file + table->sh_offset);
    const char *names = file + sections[table->sh_link].sh_offset;
    for (size_t i = 0; i < table->sh_size / sizeof *symbols; i++) {
        const char *name = names + symbols[i].st_name;
        if (name[0] != 'R' || name[1] != 'A' || !symbols[i].st_value) continue;
        if (ELF64_ST_TYPE(symbols[i].st_info) != STT_FUNC) continue;
        for (size_t each = 0; each < sizeof REPLACED / sizeof *REPLACED; each++)
            if (!strcmp(name, REPLACED[each].name))
                vt_write_jump((char *)(base + symbols[i].st_value), REPLACED[each].replacement);
    }
}

static void replace_in_file(const char *path, uintptr_t base) {
    struct stat status;
    int fd = (int)raw(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0) return;
    long mapped = -1;
    if (!fstat(fd, &status)) mapped = raw(SYS_mmap, 0, status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    raw(SYS_close, fd);
    if (mapped < 0 && mapped > -4096) return;
    const char *file = (const char *)mapped;
    const Elf64_Ehdr *header = (const void *)file;
    const Elf64_Shdr *sections = (const void *)(file + header->e_shoff);
    for (int i = 0; header->e_shoff && i < header->e_shnum; i++)
        if (sections[i].sh_type == SHT_SYMTAB || sections[i].sh_type == SHT_DYNSYM)
            replace_in_table(file, sections, &sections[i], base);
    raw(SYS_munmap, file, status.st_size);
}

static int look_at(struct dl_phdr_info *object, size_t size, void *unused) {
    static uintptr_t seen[MOST_OBJECTS];
    static int seen_count;
    (void)size, (void)unused;
    for (int i = 0; i < seen_count; i++)
        if (seen[i] == object->dlpi_addr) return 0;
    if (seen_count < MOST_OBJECTS) seen[seen_count++] = object->dlpi_addr;
    replace_in_file(object->dlpi_name[0] ? object->dlpi_name : "/proc/self/exe", object->dlpi_addr);
    return 0;
}

void vt_replace_openssl(void) { dl_iterate_phdr(look_at, 0); }

EXPORT void *dlopen(const char *file, int mode) {
    vt_hold_libc_lock(1);
    void *handle = REAL(dlopen)(file, mode);
    vt_hold_libc_lock(-1);
    if (handle && vt_enabled) vt_replace_openssl();
    return handle;
}
