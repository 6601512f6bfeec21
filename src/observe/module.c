/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/module.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>
#include "base/compiler.h"

struct search {
    uintptr_t pc;
    struct blyi_module *out;
    bool found;
};

static bool covers(const struct dl_phdr_info *info, uintptr_t pc)
{
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD &&
            pc - (info->dlpi_addr + segment->p_vaddr) < segment->p_memsz)
            return true;
    }
    return false;
}

static void hex_text(char *to, const unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        snprintf(to + 2 * i, 3, "%02x", bytes[i]);
}

/* Notes are (name size, description size, type, name, description), padded to 4 bytes each. */
static bool note_build_id(const unsigned char *notes, size_t size, char *text)
{
    while (size >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        memcpy(&note, notes, sizeof(note));
        size_t name_size = blyi_align_up(note.n_namesz, 4);
        size_t whole = sizeof(note) + name_size + blyi_align_up(note.n_descsz, 4);
        if (whole > size)
            return false;
        const unsigned char *name = notes + sizeof(note);
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(name, "GNU", 4) == 0 &&
            2 * note.n_descsz < BLYI_BUILD_ID_TEXT) {
            hex_text(text, name + name_size, note.n_descsz);
            return true;
        }
        notes += whole;
        size -= whole;
    }
    return false;
}

static void read_build_id(const struct dl_phdr_info *info, char *text)
{
    text[0] = '\0';
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        const unsigned char *notes =
            (const unsigned char *)(uintptr_t)(info->dlpi_addr + segment->p_vaddr);
        if (segment->p_type == PT_NOTE && note_build_id(notes, segment->p_memsz, text))
            return;
    }
}

/* Without /proc, the name that the program was started by must do. */
static bool program_link(char *path)
{
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (n > 0) {
        path[n] = '\0';
        return true;
    }
    const char *started = (const char *)(uintptr_t)getauxval(AT_EXECFN);
    return started != NULL && realpath(started, path) != NULL;
}

void blyi_module_program(char path[PATH_MAX])
{
    if (!program_link(path))
        snprintf(path, PATH_MAX, "%s", program_invocation_name);
}

/* The helper is another process, so /proc/self would be its own. */
static bool program_path(char *path)
{
    if (!program_link(path))
        return false;
    if (access(path, R_OK) != 0)
        snprintf(path, PATH_MAX, "/proc/%d/exe", (int)getpid());
    return true;
}

/* A library may have been opened by a relative name; the vdso has a name and no file. */
static bool library_path(const char *name, char *path)
{
    return strchr(name, '/') != NULL && realpath(name, path) != NULL;
}

static int look_at(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    struct search *search = arg;
    if (!covers(info, search->pc))
        return 0;
    struct blyi_module *out = search->out;
    bool is_program = info->dlpi_name == NULL || info->dlpi_name[0] == '\0';
    if (is_program)
        search->found = program_path(out->path);
    else
        search->found = library_path(info->dlpi_name, out->path);
    out->offset = search->pc - info->dlpi_addr;
    read_build_id(info, out->build_id);
    return 1;
}

bool blyi_module_find(const void *pc, struct blyi_module *out)
{
    struct search search = {.pc = (uintptr_t)pc, .out = out};
    dl_iterate_phdr(look_at, &search);
    return search.found;
}
