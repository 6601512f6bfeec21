/* SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "command.h"

#define EXIT_NOT_FOUND  127
#define EXIT_CANNOT_RUN 126
#define MAX_SCRIPTS     4 /* a script's interpreter may be a script; Linux stops there too */

static bool is_file(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/* As execvp: a name with a slash is a path, any other is looked for in PATH. The last match that
 * is not executable is kept, so that the error can tell. */
static bool find_in_path(const char *name, char path[PATH_MAX])
{
    if (strchr(name, '/') != NULL)
        return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX && access(path, F_OK) == 0;
    const char *folders = getenv("PATH");
    bool found = false;
    for (const char *folder = folders ? folders : "/bin:/usr/bin"; *name != '\0';) {
        size_t length = strcspn(folder, ":");
        char candidate[PATH_MAX];
        snprintf(candidate, sizeof(candidate), "%.*s%s%s", (int)length, folder, length ? "/" : "",
                 name);
        if (is_file(candidate)) {
            memcpy(path, candidate, sizeof(candidate));
            found = true;
            if (access(path, X_OK) == 0)
                break;
        }
        if (folder[length] == '\0')
            break;
        folder += length + 1;
    }
    return found;
}

/* ---- scripts ---- */

/* The interpreter of "#! interpreter [argument]"; that of "env program" is the program. */
static bool script_interpreter(const char *path, char interpreter[PATH_MAX])
{
    char line[PATH_MAX];
    FILE *file = fopen(path, "re");
    size_t n = file ? fread(line, 1, sizeof(line) - 1, file) : 0;
    if (file != NULL)
        fclose(file);
    line[n] = '\0';
    if (n < 2 || line[0] != '#' || line[1] != '!')
        return false;
    line[strcspn(line, "\n")] = '\0';
    char *rest = NULL;
    char *name = strtok_r(line + 2, " \t", &rest);
    if (name == NULL)
        return false;
    const char *base = strrchr(name, '/');
    if (strcmp(base ? base + 1 : name, "env") == 0) {
        char *word = strtok_r(NULL, " \t", &rest);
        while (word != NULL && (word[0] == '-' || strchr(word, '=')))
            word = strtok_r(NULL, " \t", &rest);
        name = word ? word : name;
    }
    return find_in_path(name, interpreter);
}

/* ---- ELF ---- */

static void look_at_needed(const char *library, struct program *out)
{
    static const char *const names[] = {"libasan.", "libtsan.", "libclang_rt.asan",
                                        "libclang_rt.tsan"};
    for (size_t i = 0; i < BLYI_COUNT(names); i++)
        if (library != NULL && strncmp(library, names[i], strlen(names[i])) == 0)
            snprintf(out->sanitizer, sizeof(out->sanitizer), "%s", library);
}

static void look_at_dynamic(Elf *elf, Elf_Scn *section, size_t strings, struct program *out)
{
    Elf_Data *data = elf_getdata(section, NULL);
    GElf_Dyn entry;
    for (int i = 0; data != NULL && gelf_getdyn(data, i, &entry) != NULL; i++) {
        if (entry.d_tag == DT_RPATH)
            out->has_rpath = true;
        if (entry.d_tag == DT_NEEDED)
            look_at_needed(elf_strptr(elf, strings, (size_t)entry.d_un.d_val), out);
    }
}

static bool has_loader(Elf *elf)
{
    size_t n = 0;
    elf_getphdrnum(elf, &n);
    for (size_t i = 0; i < n; i++) {
        GElf_Phdr segment;
        if (gelf_getphdr(elf, (int)i, &segment) != NULL && segment.p_type == PT_INTERP)
            return true;
    }
    return false;
}

static void look_at_elf(int fd, struct program *out)
{
    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
    if (elf == NULL || elf_kind(elf) != ELF_K_ELF) {
        elf_end(elf);
        return;
    }
    out->is_elf = true;
    out->is_static = !has_loader(elf);
    for (Elf_Scn *section = elf_nextscn(elf, NULL); section != NULL;
         section = elf_nextscn(elf, section)) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) != NULL && header.sh_type == SHT_DYNAMIC)
            look_at_dynamic(elf, section, header.sh_link, out);
    }
    elf_end(elf);
}

static void look_at_binary(struct program *out)
{
    struct stat status;
    int fd = open(out->binary, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return; /* executable, not readable: exec will tell */
    look_at_elf(fd, out);
    if (fstat(fd, &status) == 0)
        out->is_privileged = ((status.st_mode & S_ISUID) && status.st_uid != getuid()) ||
                             ((status.st_mode & S_ISGID) && status.st_gid != getgid());
    close(fd);
}

int program_look(const char *name, struct program *out)
{
    memset(out, 0, sizeof(*out));
    if (!find_in_path(name, out->path)) {
        say("%s: not found", name);
        return EXIT_NOT_FOUND;
    }
    if (!is_file(out->path)) {
        say("%s: not a file", out->path);
        return EXIT_CANNOT_RUN;
    }
    if (access(out->path, X_OK) != 0) {
        say("%s: %s", out->path, strerror(errno));
        return EXIT_CANNOT_RUN;
    }
    memcpy(out->binary, out->path, sizeof(out->binary));
    for (int i = 0; i < MAX_SCRIPTS; i++) {
        char interpreter[PATH_MAX];
        if (!script_interpreter(out->binary, interpreter))
            break;
        memcpy(out->binary, interpreter, sizeof(out->binary));
    }
    look_at_binary(out);
    return 0;
}
