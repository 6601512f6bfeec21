/* SPDX-License-Identifier: Apache-2.0
 *
 * context_here.c - the context that a thread works on, and what calls read of it.
 */
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/assert.h"
#include "base/fail.h"
#include "npu/card.h"
#include "npu/context.h"
#include "npu/context_inside.h"
#include "npu/runtime.h"

_Thread_local struct blyi_thread_state blyi_thread_state;

void blyi_thread_set_explicit(struct blyi_context *context)
{
    blyi_thread_state.explicit_context = context;
    blyi_thread_state.explicit_generation = context != NULL ? blyi_context_generation(context) : 0;
}

void blyi_thread_set_primary(struct blyi_context *context)
{
    blyi_thread_state.primary_context = context;
    blyi_thread_state.primary_generation = context != NULL ? blyi_context_generation(context) : 0;
}

/* "no card", "card 1", "cards 0, 1": where the process has contexts. */
static void name_cards(char *text, size_t size)
{
    uint64_t used = 0;
    blyi_lock_take(&blyi_contexts_lock);
    BLYI_LIST_FOR(node, &blyi_contexts)
    {
        const struct blyi_context *context = BLYI_CONTAINER(node, struct blyi_context, link);
        if (blyi_context_is_alive(context))
            used |= (uint64_t)1 << context->card->id;
    }
    blyi_lock_drop(&blyi_contexts_lock);
    if (used == 0) {
        snprintf(text, size, "no card");
        return;
    }
    size_t length = (size_t)snprintf(text, size, blyi_is_pow2(used) ? "card" : "cards");
    const char *separator = " ";
    for (int card = 0; card < BLYI_CARD_MAX && length < size; card++)
        if (used >> card & 1) {
            length += (size_t)snprintf(text + length, size - length, "%s%d", separator, card);
            separator = ", ";
        }
}

static bly_status no_context(const struct blyi_context *gone)
{
    long tid = syscall(SYS_gettid);
    if (gone != NULL)
        return blyi_fail(BLY_E_NO_CONTEXT,
                         "the context of this thread (tid %ld) was destroyed or reset", tid);
    char cards[512];
    name_cards(cards, sizeof(cards));
    return blyi_fail(BLY_E_NO_CONTEXT,
                     "no device set on this thread (tid %ld); the process uses %s", tid, cards);
}

bly_status blyi_context_get(void **handle)
{
    struct blyi_context_here here;
    bly_status status = blyi_context_look(&here, 0);
    if (status != BLY_OK)
        return status;
    void *found = __atomic_load_n(&here.context->handle, __ATOMIC_ACQUIRE);
    if (blyi_context_generation(here.context) != here.generation)
        return no_context(here.context);
    *handle = found;
    return BLY_OK;
}

bly_status blyi_context_look(struct blyi_context_here *out, uint32_t site)
{
    bly_status status = blyi_runtime_enter();
    if (unlikely(status != BLY_OK))
        return status;
    const struct blyi_thread_state *here = &blyi_thread_state;
    if (unlikely(here->explicit_context == NULL && here->primary_context == NULL)) {
        int card = blyi_device_default();
        if (card < 0)
            return no_context(NULL);
        status = blyi_device_set_implicit(card, site);
        if (status != BLY_OK)
            return status;
    }
    bool own = here->explicit_context != NULL;
    struct blyi_context *context = own ? here->explicit_context : here->primary_context;
    uint64_t generation = own ? here->explicit_generation : here->primary_generation;
    if (unlikely(context == NULL || !blyi_context_is_alive(context)))
        return no_context(context);
    /* Acquire: what a later use of the structure wrote shows the moved generation (begin_use). */
    struct blyi_card *card = __atomic_load_n(&context->card, __ATOMIC_ACQUIRE);
    void *default_handle = __atomic_load_n(&context->default_handle, __ATOMIC_ACQUIRE);
    if (unlikely(blyi_context_generation(context) != generation))
        return no_context(context);
    *out = (struct blyi_context_here){context, card, default_handle, generation};
    return BLY_OK;
}

bly_status blyi_context_still_locked(const struct blyi_context_here *here)
{
    bly_assert(blyi_lock_held(&here->context->lock));
    if (likely(blyi_context_is_alive(here->context) &&
               blyi_context_generation(here->context) == here->generation))
        return BLY_OK;
    return no_context(here->context);
}

bly_status blyi_context_here_site(struct blyi_context **out, uint32_t site)
{
    struct blyi_context_here here;
    bly_status status = blyi_context_look(&here, site);
    if (likely(status == BLY_OK))
        *out = here.context;
    return status;
}

bly_status blyi_context_here_card(struct blyi_card **card)
{
    struct blyi_context_here here;
    bly_status status = blyi_context_look(&here, 0);
    if (likely(status == BLY_OK))
        *card = here.card;
    return status;
}

bly_status blyi_context_here(struct blyi_context **out)
{
    return blyi_context_here_site(out, 0);
}

bly_status blyi_context_here_default(void **stream, struct blyi_card **card)
{
    struct blyi_context_here here;
    bly_status status = blyi_context_look(&here, 0);
    if (status != BLY_OK)
        return status;
    *stream = here.default_handle;
    if (card != NULL)
        *card = here.card;
    return BLY_OK;
}

/* Locks the current context, while it is alive, for a look at one of its parameters. */
static bly_status lock_param(int option, struct blyi_context **context)
{
    struct blyi_context_here here;
    bly_status status = blyi_context_look(&here, 0);
    if (status != BLY_OK)
        return status;
    if (option < 0 || option >= BLYI_CONTEXT_PARAMS)
        return blyi_fail(BLY_E_INVALID, "a context has no system parameter %d", option);
    blyi_lock_take(&here.context->lock);
    status = blyi_context_still_locked(&here);
    if (status != BLY_OK)
        blyi_lock_drop(&here.context->lock);
    *context = here.context;
    return status;
}

bly_status blyi_context_set_param(int option, int64_t value)
{
    struct blyi_context *context;
    bly_status status = lock_param(option, &context);
    if (status != BLY_OK)
        return status;
    context->params[option] = value;
    context->params_set |= 1u << option;
    blyi_lock_drop(&context->lock);
    return BLY_OK;
}

bly_status blyi_context_get_param(int option, int64_t *value)
{
    struct blyi_context *context;
    bly_status status = lock_param(option, &context);
    if (status != BLY_OK)
        return status;
    bool is_set = context->params_set >> option & 1;
    int64_t found = context->params[option];
    blyi_lock_drop(&context->lock);
    if (!is_set)
        return blyi_fail(BLY_E_STATE, "system parameter %d of the context was never set", option);
    *value = found;
    return BLY_OK;
}
