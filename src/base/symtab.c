/* SPDX-License-Identifier: Apache-2.0
 *
 * symtab.c - reads .symtab of a mapped ELF file. Every offset is checked against the file's
 * size: the file on disk may have been replaced since it was loaded.
 */
#include "base/symtab.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct image {
    const char *bytes;
    size_t size;
};

static const void *part(const struct image *image, uint64_t offset, uint64_t size)
{
    if (offset > image->size || size > image->size - offset)
        return NULL;
    return image->bytes + offset;
}

/* The nth section header, or NULL. */
static const ElfW(Shdr) * section(const struct image *image, const ElfW(Ehdr) * head, uint64_t n)
{
    uint64_t offset;
    if (n >= head->e_shnum || head->e_shentsize != sizeof(ElfW(Shdr)) ||
        __builtin_add_overflow(head->e_shoff, n * sizeof(ElfW(Shdr)), &offset))
        return NULL;
    return part(image, offset, sizeof(ElfW(Shdr)));
}

static bool covers(const ElfW(Sym) * symbol, uint64_t address)
{
    return (symbol->st_info & 0xf) == STT_FUNC && symbol->st_shndx != SHN_UNDEF &&
           address - symbol->st_value < (symbol->st_size ? symbol->st_size : 1);
}

static bool find_in(const struct image *image, uint64_t address, char *name, uint64_t *offset)
{
    const ElfW(Ehdr) *head = part(image, 0, sizeof(*head));
    if (head == NULL || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 ||
        head->e_ident[EI_CLASS] != ELFCLASS64)
        return false;
    for (uint64_t i = 0; i < head->e_shnum; i++) {
        const ElfW(Shdr) *table = section(image, head, i);
        if (table == NULL)
            return false;
        if (table->sh_type != SHT_SYMTAB)
            continue;
        const ElfW(Shdr) *text = section(image, head, table->sh_link);
        const ElfW(Sym) *symbols = part(image, table->sh_offset, table->sh_size);
        const char *strings = text ? part(image, text->sh_offset, text->sh_size) : NULL;
        if (symbols == NULL || strings == NULL || (uintptr_t)symbols % _Alignof(ElfW(Sym)) != 0)
            return false;
        for (uint64_t s = 0; s < table->sh_size / sizeof(ElfW(Sym)); s++) {
            if (!covers(&symbols[s], address) || symbols[s].st_name >= text->sh_size)
                continue;
            size_t left = text->sh_size - symbols[s].st_name;
            size_t length = strnlen(strings + symbols[s].st_name, left);
            snprintf(name, BLYI_SYMTAB_NAME, "%.*s", (int)(length < 160 ? length : 160),
                     strings + symbols[s].st_name);
            *offset = address - symbols[s].st_value;
            return name[0] != '\0';
        }
    }
    return false;
}

static bool map_file(const char *path, struct image *image)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    struct stat info;
    void *bytes = MAP_FAILED;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0)
        bytes = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    if (bytes == MAP_FAILED)
        return false;
    *image = (struct image){bytes, (size_t)info.st_size};
    return true;
}

bool blyi_symtab_find(const void *pc, char name[BLYI_SYMTAB_NAME], uint64_t *offset)
{
    Dl_info info;
    struct link_map *map = NULL;
    if (dladdr1(pc, &info, (void **)&map, RTLD_DL_LINKMAP) == 0 || map == NULL)
        return false;
    struct image image;
    const char *path =
        map->l_name != NULL && map->l_name[0] != '\0' ? map->l_name : "/proc/self/exe";
    if (!map_file(path, &image))
        return false;
    bool found = find_in(&image, (uint64_t)((uintptr_t)pc - map->l_addr), name, offset);
    munmap((void *)(uintptr_t)image.bytes, image.size);
    return found;
}

/* Where the byte at `offset` of the file lies in memory, relative to the file's own addresses. */
static bool address_of(const struct image *image, uint64_t offset, uint64_t *address)
{
    const ElfW(Ehdr) *head = part(image, 0, sizeof(*head));
    if (head == NULL || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 ||
        head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_phentsize != sizeof(ElfW(Phdr)))
        return false;
    const ElfW(Phdr) *segments =
        part(image, head->e_phoff, (uint64_t)head->e_phnum * sizeof(ElfW(Phdr)));
    if (segments == NULL || (uintptr_t)segments % _Alignof(ElfW(Phdr)) != 0)
        return false;
    for (unsigned i = 0; i < head->e_phnum; i++)
        if (segments[i].p_type == PT_LOAD && offset - segments[i].p_offset < segments[i].p_filesz) {
            *address = offset - segments[i].p_offset + segments[i].p_vaddr;
            return true;
        }
    return false;
}

/* The line of /proc/PID/maps around pc: its file, and the offset in it. */
static bool find_line(FILE *maps, uint64_t pc, char path[4096], uint64_t *offset)
{
    char line[4352];
    while (fgets(line, sizeof line, maps) != NULL) {
        uint64_t start, end, at;
        int name = 0;
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*4s %" SCNx64 " %*s %*s %n", &start, &end, &at,
                   &name) < 3 ||
            name == 0 || pc < start || pc >= end)
            continue;
        line[strcspn(line, "\n")] = '\0';
        snprintf(path, 4096, "%s", line + name);
        *offset = pc - start + at;
        return path[0] == '/';
    }
    return false;
}

bool blyi_symtab_find_in(uint32_t pid, uint64_t pc, char name[BLYI_SYMTAB_NAME], uint64_t *offset,
                         char module[BLYI_SYMTAB_MODULE])
{
    char path[4096];
    uint64_t at, address;
    struct image image;
    module[0] = '\0';
    snprintf(path, sizeof path, "/proc/%" PRIu32 "/maps", pid);
    FILE *maps = fopen(path, "re");
    if (maps == NULL)
        return false;
    bool found = find_line(maps, pc, path, &at);
    fclose(maps);
    if (!found)
        return false;
    snprintf(module, BLYI_SYMTAB_MODULE, "%.63s", strrchr(path, '/') + 1);
    if (!map_file(path, &image))
        return false;
    found = address_of(&image, at, &address) && find_in(&image, address, name, offset);
    munmap((void *)(uintptr_t)image.bytes, image.size);
    return found;
}
