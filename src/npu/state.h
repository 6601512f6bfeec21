/* SPDX-License-Identifier: Apache-2.0
 *
 * state.h - the folder in which processes meet, and its files. Under the ledger's own order: used
 * while a process attaches and while a card is opened.
 */
#ifndef BLYI_STATE_H
#define BLYI_STATE_H

#include <belay/base.h>
#include <stdbool.h>

#define BLYI_STATE_PATH 256

/* Where the state is (option STATE): as given; by default $XDG_RUNTIME_DIR/belay if that is our
 * own, else /dev/shm/belay-UID, else /tmp/belay-UID; "" for `private`. E_IO: a path too long. Makes
 * nothing.
 */
bly_status blyi_state_path(char path[BLYI_STATE_PATH]);

/* BELAY_STATE=private: no folder, no other process. */
bool blyi_state_is_private(void);

/* Opens the folder, made with mode 0700 when it is not there; -1 in *folder for `private`.
 * E_IO with a sentence: cannot be made, is no folder, belongs to another user, is open to others.
 */
bly_status blyi_state_open(int *folder);
/* The same, but nothing is made. E_IO: there is none. */
bly_status blyi_state_find(int *folder);

/* Opens a file of the folder (mode 0600), a memfd when folder is -1. E_IO as above. */
bly_status blyi_state_file(int folder, const char *name, bool make, int *fd);
/* Sets the size and has the disk promise [0, backed) of it. E_IO: the disk is full. */
bly_status blyi_state_grow(int fd, const char *name, uint64_t size, uint64_t backed);
/* Has it promise more. */
bly_status blyi_state_back(int fd, const char *name, uint64_t at, uint64_t size);

#endif
