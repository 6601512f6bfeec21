/* SPDX-License-Identifier: Apache-2.0
 *
 * vmm_inside.h - what vmm.c, physical*.c, mapping.c and mapping_use.c share.
 */
#ifndef BLYI_VMM_INSIDE_H
#define BLYI_VMM_INSIDE_H

#include "base/list.h"
#include "base/lock.h"
#include "base/tree.h"
#include "npu/backing.h"
#include "npu/frame.h"
#include "npu/freed.h"
#include "npu/mapping.h"
#include "npu/physical.h"
#include "npu/shortage.h"
#include "npu/share.h"
#include "npu/span.h"
#include "npu/vmm.h"
#include "npu/window.h"

struct blyi_physical {
    struct blyi_list link;  /* of its card, or of the host; under the card's lock or VMM */
    struct blyi_card *card; /* NULL: the host's memory */
    uint64_t asked, size, time_ns;
    enum blyi_page_kind page_kind;
    bool contiguous, on_node;
    bool of_pool;
    uint32_t numa, site;
    void *id;     /* the first handle; names it in probes */
    void *handle; /* NULL: the program's references are gone */
    /* Under VMM; n_mappings is read under the card's lock too, hence atomic. */
    uint32_t refs, n_mappings;
    uint32_t retained;         /* of_pool: of refs, the program's */
    struct blyi_list mappings; /* by `link`; under VMM */
    struct blyi_run *runs;     /* under the card's lock, changed with VMM held too */
    uint32_t n_runs, max_runs;
    /* Under VMM and the card's lock. */
    struct blyi_hold hold; /* exported or imported: its frames are a share's */
    bool imported;
    uint32_t freed_site; /* where the program's last reference went */
    int for_card; /* imported: whose work it is for; that card too may touch a mapping at once */
};

static inline int blyi_physical_for(const struct blyi_physical *p)
{
    return p->imported ? p->for_card : p->card ? p->card->id : BLYI_PHYSICAL_HOST;
}

struct blyi_reservation {
    struct blyi_tree_node node; /* key: address */
    uint64_t size, time_ns;
    uint32_t site, n_mappings;
    bool of_pool;
    bool broken; /* the kernel refused to unmap in it: its addresses are out of use */
};

struct blyi_mapping {
    struct blyi_tree_node node; /* key: address */
    struct blyi_physical *physical;
    struct blyi_reservation *reservation;
    struct blyi_list link; /* in its physical memory's mappings */
    uint64_t time_ns;
    uint64_t cards; /* bit per card that may touch it */
    bool host;      /* host code may */
    bool mapped;    /* on the host: from the first grant on */
    uint32_t site;
};

struct blyi_vmm {
    struct blyi_lock lock;      /* rank VMM; guards all here */
    struct blyi_window *window; /* made at the first reservation */
    struct blyi_tree reservations, mappings;
    struct blyi_list host; /* physical memory of the host */
    struct blyi_frames *host_frames;
    struct blyi_backing *host_backing;
    struct blyi_freed *unmapped; /* made with the window */
    uint64_t reserved, mapped;   /* bytes */
    bool away;                   /* memory of the cards is elsewhere, or on the way (away.h) */
};
extern struct blyi_vmm blyi_vmm;

static inline struct blyi_reservation *blyi_reservation_of(const struct blyi_tree_node *node)
{
    return BLYI_TREE_ENTRY(node, struct blyi_reservation, node);
}

static inline struct blyi_mapping *blyi_mapping_of(const struct blyi_tree_node *node)
{
    return BLYI_TREE_ENTRY(node, struct blyi_mapping, node);
}

/* All below with VMM held. Around an address, or NULL. */
struct blyi_reservation *blyi_reservation_find_locked(uintptr_t address);
struct blyi_mapping *blyi_mapping_find_locked(uintptr_t address);
/* Adds to the thread's sentence "; unmapped 12 us ago at f+0x3 (prog): range 0x... of 64 MiB ...".
 */
void blyi_mapping_append_unmapped_locked(uintptr_t bad);
/* Takes a mapping away; site 0 and by_reset: not the program did. Frees the physical memory when
 * nothing else refers to it. */
void blyi_mapping_remove_locked(struct blyi_mapping *mapping, uint32_t site, bool by_reset);
/* The object of a handle, which stays while VMM is held; NULL with a sentence. */
struct blyi_physical *blyi_physical_get_locked(void *handle);
/* Frees the memory when neither references nor mappings are left. began_ns  of the call that gave
 * up the last reference, for the probe; 0: another one. */
void blyi_physical_settle_locked(struct blyi_physical *physical, bool by_reset, uint64_t began_ns);
void blyi_physical_free_list_locked(struct blyi_list *list);
/* share_physical.c: the hold of an exported or imported one ends. The card's lock is held. */
void blyi_share_free_physical_locked(struct blyi_physical *physical);
/* The runs as they were, but for `count` frames from the `index`th on, which are `first`...
 * E_HOST_MEMORY. Freed with blyi_host_free(). */
bly_status blyi_physical_runs_with(const struct blyi_physical *physical, uint32_t index,
                                   uint32_t first, uint32_t count, struct blyi_run **runs,
                                   uint32_t *n_runs);
/* physical_frames.c; the lock of the frames is held: the card's, or VMM. take: E_NO_MEMORY without
 * a sentence where there are too few, *is_short says so; E_HOST_MEMORY. Nothing is taken then. */
bly_status blyi_physical_take_frames_locked(struct blyi_physical *physical, enum blyi_short kind,
                                            bool *is_short);
void blyi_physical_give_frames_locked(struct blyi_physical *physical);
/* Bytes more (or less) that live on the card, whose lock is held. */
void blyi_physical_account_locked(struct blyi_card *card, int64_t bytes);
/* To probes: made, or gone. Of a pool's nothing. */
void blyi_physical_tell(const struct blyi_physical *physical, bool create, bool by_reset,
                        uint64_t began_ns);
bly_status blyi_vmm_open_host_locked(void);
bool blyi_physical_audit(const struct blyi_physical *physical);

#endif
