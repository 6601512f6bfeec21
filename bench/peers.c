/* SPDX-License-Identifier: Apache-2.0
 *
 * peers.c - finds allocators by their shared objects. Each is loaded apart (RTLD_LOCAL, DEEPBIND),
 * so that the program's own malloc stays libc's.
 */
#include "bench/peers.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

static const struct {
    const char *name, *object, *alloc, *free;
} known[] = {
    {"jemalloc", "libjemalloc.so.2", "malloc", "free"},
    {"mimalloc", "libmimalloc.so.2", "mi_malloc", "mi_free"},
    {"mimalloc", "libmimalloc.so.2.0", "mi_malloc", "mi_free"},
    {"tcmalloc", "libtcmalloc_minimal.so.4", "tc_malloc", "tc_free"},
    {"tbbmalloc", "libtbbmalloc.so.2", "scalable_malloc", "scalable_free"},
};

size_t peers_find(struct peer peers[PEERS_MAX])
{
    size_t n = 0;
    peers[n++] = (struct peer){"libc", malloc, free};
    for (size_t i = 0; i < BLYI_COUNT(known) && n < PEERS_MAX; i++) {
        if (strcmp(known[i].name, peers[n - 1].name) == 0)
            continue;
        void *object = dlopen(known[i].object, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
        void *alloc = object != NULL ? dlsym(object, known[i].alloc) : NULL;
        void *release = object != NULL ? dlsym(object, known[i].free) : NULL;
        if (alloc == NULL || release == NULL)
            continue;
        struct peer peer = {.name = known[i].name};
        memcpy(&peer.alloc, &alloc, sizeof(alloc));
        memcpy(&peer.free, &release, sizeof(release));
        peers[n++] = peer;
    }
    return n;
}
