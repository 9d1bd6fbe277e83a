/* Random bytes that follow from the seed. */
#include "library.h"
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static uint64_t state;

uint64_t vt_draw(void) {  /* splitmix64 */
    uint64_t z = (state += 0x9E3779B97F4A7C15ULL);
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ z >> 27) * 0x94D049BB133111EBULL;
    return z ^ z >> 31;
}

void vt_begin_chance(const char *seed) {  /* FNV-1a of the seed's text */
    state = 0xCBF29CE484222325ULL;
    for (; seed && *seed; seed++) state = (state ^ (unsigned char)*seed) * 0x100000001B3ULL;
}

void vt_fill_with_chance(void *buffer, size_t size) {
    for (size_t done = 0; done < size;) {
        uint64_t drawn = vt_draw();
        size_t part = size - done < sizeof drawn ? size - done : sizeof drawn;
        memcpy((char *)buffer + done, &drawn, part);
        done += part;
    }
}

EXPORT ssize_t getrandom(void *buffer, size_t size, unsigned flags) {
    if (!vt_enabled) return with_errno(raw(SYS_getrandom, buffer, size, flags));
    vt_fill_with_chance(buffer, size);
    return (ssize_t)size;
}

EXPORT int getentropy(void *buffer, size_t size) { return getrandom(buffer, size, 0) == (ssize_t)size ? 0 : -1; }

EXPORT uint32_t arc4random(void) {
    uint32_t drawn = 0;
    getrandom(&drawn, sizeof drawn, 0);
    return drawn;
}

EXPORT void arc4random_buf(void *buffer, size_t size) { getrandom(buffer, size, 0); }

/* librdkafka seeds this from OpenSSL and from addresses, which depend on all earlier allocations, so the caller's seed
 * is ignored. */
EXPORT int rand_r(unsigned *seed) { return vt_enabled ? (int)(vt_draw() >> 33) : REAL(rand_r)(seed); }
