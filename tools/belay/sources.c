/* SPDX-License-Identifier: Apache-2.0 */
#include "sources.h"

#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <libiberty/demangle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sources {
    Dwfl *session;
    Dwfl_Module *module;
};

static bool same_build_id(Dwfl_Module *module, const char *wanted)
{
    const unsigned char *bits;
    GElf_Addr address;
    int n = dwfl_module_build_id(module, &bits, &address);
    if (wanted[0] == '\0' || n <= 0)
        return true;
    if (strlen(wanted) != 2 * (size_t)n)
        return false;
    for (int i = 0; i < n; i++) {
        char hex[3];
        snprintf(hex, sizeof(hex), "%02x", bits[i]);
        if (strncmp(hex, wanted + 2 * (size_t)i, 2) != 0)
            return false;
    }
    return true;
}

struct sources *sources_open(const char *path, const char *build_id)
{
    static const Dwfl_Callbacks callbacks = {
        .find_elf = dwfl_build_id_find_elf,
        .find_debuginfo = dwfl_standard_find_debuginfo,
        .section_address = dwfl_offline_section_address,
    };
    struct sources *sources = calloc(1, sizeof(*sources));
    if (sources == NULL)
        return NULL;
    sources->session = dwfl_begin(&callbacks);
    if (sources->session != NULL) {
        dwfl_report_begin(sources->session);
        /* Base 0 and the file's own addresses on top: module addresses are file addresses. */
        sources->module = dwfl_report_elf(sources->session, path, path, -1, 0, true);
        dwfl_report_end(sources->session, NULL, NULL);
    }
    if (sources->module != NULL && same_build_id(sources->module, build_id))
        return sources;
    sources_close(sources);
    return NULL;
}

void sources_close(struct sources *sources)
{
    if (sources == NULL)
        return;
    if (sources->session != NULL)
        dwfl_end(sources->session);
    free(sources);
}

static void copy_text(char *to, size_t size, const char *from)
{
    size_t length = strnlen(from, size - 1);
    memcpy(to, from, length);
    to[length] = '\0';
    for (; *to != '\0'; to++)
        if (*to == '\t' || *to == '\n')
            *to = '?';
}

#define NAME_MAX_SHOWN 200 /* of names of templates, the beginning tells enough */

/* As a programmer writes it, when it is a name of C++ or Rust. */
static void copy_function(struct source *out, const char *name)
{
    char *plain = NULL;
    if (name[0] == '_' && (name[1] == 'Z' || name[1] == 'R'))
        plain = cplus_demangle(name, DMGL_AUTO | DMGL_PARAMS | DMGL_ANSI);
    const char *shown = plain ? plain : name;
    copy_text(out->function, sizeof(out->function), shown);
    if (strlen(shown) > NAME_MAX_SHOWN)
        memcpy(out->function + NAME_MAX_SHOWN, "...", 4);
    free(plain);
}

/* The compilation unit around an address. The quick way needs .debug_aranges, which clang does
 * not write; the other looks into every unit. */
static Dwarf_Die *unit_of(Dwfl_Module *module, uint64_t offset, Dwarf_Addr *bias)
{
    Dwarf_Die *unit = dwfl_module_addrdie(module, offset, bias);
    if (unit != NULL)
        return unit;
    while ((unit = dwfl_module_nextcu(module, unit, bias)) != NULL)
        if (dwarf_haspc(unit, offset - *bias) > 0)
            return unit;
    return NULL;
}

/* The mangled name has namespace, class and parameters. */
static const char *name_of_die(Dwarf_Die *die)
{
    Dwarf_Attribute attribute;
    const char *name = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute));
    return name ? name : dwarf_diename(die);
}

/* The innermost scope that is a function, inlined or not. */
static bool function_of_die(Dwarf_Die *unit, Dwarf_Addr address, struct source *out)
{
    Dwarf_Die *scopes = NULL;
    int n = dwarf_getscopes(unit, address, &scopes);
    bool found = false;
    for (int i = 0; i < n && !found; i++) {
        int tag = dwarf_tag(&scopes[i]);
        const char *name = name_of_die(&scopes[i]);
        if ((tag == DW_TAG_inlined_subroutine || tag == DW_TAG_subprogram) && name != NULL) {
            copy_function(out, name);
            found = true;
        }
    }
    free(scopes);
    return found;
}

static bool function_of_symbol(Dwfl_Module *module, uint64_t offset, struct source *out)
{
    GElf_Sym symbol;
    GElf_Off behind = 0;
    const char *name = dwfl_module_addrinfo(module, offset, &behind, &symbol, NULL, NULL, NULL);
    if (name == NULL || name[0] == '\0')
        return false;
    copy_function(out, name);
    out->behind = behind;
    out->has_behind = true;
    return true;
}

static void file_of_line(Dwarf_Die *unit, Dwarf_Addr address, struct source *out)
{
    char path[2 * PATH_MAX];
    int line = 0;
    Dwarf_Line *entry = dwarf_getsrc_die(unit, address);
    const char *file = entry ? dwarf_linesrc(entry, NULL, NULL) : NULL;
    if (file == NULL || dwarf_lineno(entry, &line) != 0 || line <= 0)
        return; /* line 0: made by the compiler */
    Dwarf_Attribute attribute;
    const char *folder = NULL;
    if (file[0] != '/')
        folder = dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &attribute));
    int n = snprintf(path, sizeof(path), "%s%s%s", folder ? folder : "", folder ? "/" : "", file);
    if (n < 0 || (size_t)n >= sizeof(path))
        return;
    copy_text(out->file, sizeof(out->file), path);
    out->line = line;
}

bool sources_find(struct sources *sources, uint64_t offset, struct source *out)
{
    memset(out, 0, sizeof(*out));
    if (dwfl_addrmodule(sources->session, offset) != sources->module)
        return false;
    Dwarf_Addr bias = 0;
    Dwarf_Die *unit = unit_of(sources->module, offset, &bias);
    if (unit != NULL)
        file_of_line(unit, offset - bias, out);
    /* Without a line, the distance from the symbol must tell calls apart. */
    bool has_line = out->file[0] != '\0';
    bool found = !has_line && function_of_symbol(sources->module, offset, out);
    if (!found)
        found = unit != NULL && function_of_die(unit, offset - bias, out);
    if (!found && has_line) {
        function_of_symbol(sources->module, offset, out);
        out->has_behind = false;
    }
    return found || has_line;
}
