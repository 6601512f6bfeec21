/* SPDX-License-Identifier: Apache-2.0
 *
 * state.c - the folder: where it is, and that it is ours alone.
 */
#include "npu/state.h"
#include "base/compiler.h"
#include "base/fail.h"
#include "base/option.h"
#include "base/size.h"
#include "base/sys.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define OTHERS (S_IRWXG | S_IRWXO)

bool blyi_state_is_private(void)
{
    return strcmp(blyi_option_text(BLYI_OPT_STATE), "private") == 0;
}

#define OF_ANOTHER     (-1)
#define OPEN_TO_OTHERS (-2)

/* A folder of ours alone, that is there. 0, an errno, or one of the above. */
static int check_folder(const char *path, int *folder)
{
    struct stat st;
    int fd = blyi_sys_open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    int error = fstat(fd, &st) != 0          ? errno
                : st.st_uid != geteuid()     ? OF_ANOTHER
                : (st.st_mode & OTHERS) != 0 ? OPEN_TO_OTHERS
                                             : 0;
    if (error != 0)
        close(fd);
    else
        *folder = fd;
    return error;
}

static bool has_room(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode) && access(path, W_OK | X_OK) == 0;
}

/* After `sudo -E` or `su` it may be that of the user before, where root could make what then is in
 * that user's way. */
static bool is_own(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && st.st_uid == geteuid();
}

/* The name that `n` others may have taken before us in a folder where everybody writes. */
static void name_shared(char path[BLYI_STATE_PATH], const char *parent, int n)
{
    if (n == 0)
        snprintf(path, BLYI_STATE_PATH, "%s/belay-%u", parent, (unsigned)geteuid());
    else
        snprintf(path, BLYI_STATE_PATH, "%s/belay-%u-%d", parent, (unsigned)geteuid(), n);
}

/* Another user can take our name in /dev/shm or /tmp: the next one that is free or ours. */
static void choose_shared(char path[BLYI_STATE_PATH], const char *parent)
{
    struct stat st;
    for (int n = 0; n < 16; n++) {
        name_shared(path, parent, n);
        if (lstat(path, &st) != 0 || st.st_uid == geteuid())
            return;
    }
}

bly_status blyi_state_path(char path[BLYI_STATE_PATH])
{
    const char *given = blyi_option_text(BLYI_OPT_STATE);
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    path[0] = '\0';
    if (blyi_state_is_private())
        return BLY_OK;
    if (strlen(given) >= BLYI_STATE_PATH - 32)
        return blyi_fail(BLY_E_IO, "BELAY_STATE: a path of %zu characters is too long, at most %d",
                         strlen(given), BLYI_STATE_PATH - 33);
    if (given[0] != '\0')
        snprintf(path, BLYI_STATE_PATH, "%s", given);
    else if (runtime && runtime[0] == '/' && strlen(runtime) < BLYI_STATE_PATH - 32 &&
             has_room(runtime) && is_own(runtime))
        snprintf(path, BLYI_STATE_PATH, "%s/belay", runtime);
    else
        choose_shared(path, has_room("/dev/shm") ? "/dev/shm" : "/tmp");
    return BLY_OK;
}

static bly_status word_folder(const char *path, int error)
{
    switch (error) {
    case OF_ANOTHER:
        return blyi_fail(BLY_E_IO,
                         "the state folder %s belongs to another user; name one of your own with "
                         "BELAY_STATE",
                         path);
    case OPEN_TO_OTHERS:
        return blyi_fail(
            BLY_E_IO,
            "the state folder %s is open to other users; chmod 700 it, or name another "
            "with BELAY_STATE",
            path);
    default:
        return blyi_fail(BLY_E_IO, "the state folder %s (BELAY_STATE) cannot be used: %s", path,
                         strerror(error));
    }
}

/* Parents of a folder that was named may be missing; what is made belongs to this user alone. */
static int make_folders(char *path)
{
    for (char *at = path + 1; *at; at++) {
        if (*at != '/')
            continue;
        *at = '\0';
        int error = mkdir(path, S_IRWXU) != 0 && errno != EEXIST ? errno : 0;
        *at = '/';
        if (error != 0 && error != EACCES && error != EROFS) /* the next one may be there */
            return error;
    }
    return mkdir(path, S_IRWXU) != 0 && errno != EEXIST ? errno : 0;
}

static bly_status open_folder(bool make, int *folder)
{
    char path[BLYI_STATE_PATH];
    bly_status status = blyi_state_path(path);
    if (status != BLY_OK)
        return status;
    *folder = -1;
    if (path[0] == '\0')
        return BLY_OK;
    int error = make ? make_folders(path) : 0;
    if (error == 0)
        error = check_folder(path, folder);
    return error == 0 ? BLY_OK : word_folder(path, error);
}

bly_status blyi_state_open(int *folder)
{
    return open_folder(true, folder);
}

bly_status blyi_state_find(int *folder)
{
    return open_folder(false, folder);
}

bly_status blyi_state_file(int folder, const char *name, bool make, int *fd)
{
    struct stat st;
    if (folder < 0) {
        *fd = blyi_sys_memfd_create(name, MFD_CLOEXEC);
        return *fd >= 0 ? BLY_OK
                        : blyi_fail(BLY_E_SYSTEM, "memfd_create of %s: %s", name, strerror(errno));
    }
    int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | (make ? O_CREAT : 0);
    int file = openat(folder, name, flags, S_IRUSR | S_IWUSR);
    if (file < 0)
        return blyi_fail(BLY_E_IO, "the state's file %s cannot be opened: %s", name,
                         strerror(errno));
    if (fstat(file, &st) != 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
        (st.st_mode & OTHERS) != 0) {
        close(file);
        return blyi_fail(BLY_E_IO,
                         "the state's file %s is not a file of this user alone; remove it, or name "
                         "another folder with BELAY_STATE",
                         name);
    }
    *fd = file;
    return BLY_OK;
}

bly_status blyi_state_back(int fd, const char *name, uint64_t at, uint64_t size)
{
    char text[BLYI_SIZE_TEXT];
    int refused = blyi_sys_fallocate(fd, 0, (off_t)at, (off_t)size) == 0 ? 0 : errno;
    if (refused == EOPNOTSUPP) /* a file system without: written through by libc */
        refused = posix_fallocate(fd, (off_t)at, (off_t)size);
    if (refused == 0)
        return BLY_OK;
    return blyi_fail(BLY_E_IO,
                     "no room on the disk of the state folder: %s of its file %s were refused: %s; "
                     "free some, or name another folder with BELAY_STATE",
                     blyi_size_text(size, text), name, strerror(refused));
}

bly_status blyi_state_grow(int fd, const char *name, uint64_t size, uint64_t backed)
{
    char text[BLYI_SIZE_TEXT];
    if (blyi_sys_ftruncate(fd, (off_t)size) != 0)
        return blyi_fail(BLY_E_IO, "the state's file %s cannot be made %s long: %s", name,
                         blyi_size_text(size, text), strerror(errno));
    return backed > 0 ? blyi_state_back(fd, name, 0, backed) : BLY_OK;
}
