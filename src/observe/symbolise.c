/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/symbolise.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/frame.h"
#include "base/host.h"
#include "base/option.h"
#include "base/site.h"
#include "observe/place.h"

#define LOOK_MS 250 /* whether the helper works */

static char no_text[] = "(no host memory for a name)";
static char no_file[] = "";

struct buffer {
    char *text;
    size_t length, capacity;
};

static bool buffer_room(struct buffer *buffer, size_t more)
{
    if (buffer->length + more < buffer->capacity)
        return true;
    size_t capacity = 2 * buffer->capacity + more + 4096;
    char *text = blyi_host_realloc(buffer->text, capacity);
    if (text == NULL)
        return false;
    buffer->text = text;
    buffer->capacity = capacity;
    return true;
}

/* ---- the question ---- */

/* A line for each site; one without a file has an empty line, so that answers keep their places. */
static bool write_request(struct buffer *request, const uint32_t *sites, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct blyi_module module;
        if (!buffer_room(request, sizeof(module.path) + BLYI_BUILD_ID_TEXT + 32))
            return false;
        char *to = request->text + request->length;
        size_t room = request->capacity - request->length;
        if (blyi_place_find(sites[i], &module) && !strpbrk(module.path, "\t\n"))
            request->length += (size_t)snprintf(to, room, "%s\t%llx\t%s\n", module.path,
                                                (unsigned long long)module.offset, module.build_id);
        else
            request->length += (size_t)snprintf(to, room, "\n");
    }
    return true;
}

/* ---- the helper ---- */

static bool helper_path(char path[PATH_MAX])
{
    const char *wanted = blyi_option_text(BLYI_OPT_SYMBOLIZER);
    if (wanted[0] != '\0') {
        snprintf(path, PATH_MAX, "%s", wanted);
        return access(path, X_OK) == 0;
    }
    Dl_info info;
    char library[PATH_MAX];
    if (!dladdr((void *)(uintptr_t)blyi_symbolise, &info) || info.dli_fname == NULL ||
        realpath(info.dli_fname, library) == NULL)
        return false;
    char *folder_end = strrchr(library, '/');
    if (folder_end == NULL)
        return false;
    *folder_end = '\0';
    return snprintf(path, PATH_MAX, "%s/../bin/belay", library) < PATH_MAX &&
           access(path, X_OK) == 0;
}

/* The helper must not be observed itself, nor ask servers for debug information. */
static bool is_kept_variable(const char *entry)
{
    return strncmp(entry, "BELAY_", 6) != 0 && strncmp(entry, "LD_PRELOAD=", 11) != 0 &&
           strncmp(entry, "LD_AUDIT=", 9) != 0 && strncmp(entry, "DEBUGINFOD_", 11) != 0;
}

static char **helper_environment(void)
{
    size_t n = 0, kept = 0;
    while (environ != NULL && environ[n] != NULL)
        n++;
    char **copy = blyi_host_alloc((n + 1) * sizeof(*copy));
    if (copy == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++)
        if (is_kept_variable(environ[i]))
            copy[kept++] = environ[i];
    copy[kept] = NULL;
    return copy;
}

struct helper {
    pid_t pid;
    int fd; /* questions out, answers in; a socket, because a write to it can do without SIGPIPE */
    size_t sent;
    uint64_t used_ns; /* of a processor, when it was looked at last */
};

static void close_both(const int ends[2])
{
    for (int i = 0; i < 2; i++)
        if (ends[i] >= 0)
            close(ends[i]);
}

/* Descriptors 0 to 2 may be closed in this process; an end there would confuse the spawn. */
static bool make_channel(int ends[2])
{
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return false;
    for (int i = 0; i < 2; i++) {
        if (ends[i] > 2)
            continue;
        int moved = fcntl(ends[i], F_DUPFD_CLOEXEC, 3);
        close(ends[i]);
        ends[i] = moved;
    }
    if (ends[0] >= 0 && ends[1] >= 0)
        return true;
    close_both(ends);
    return false;
}

static bool spawn_helper(const char *path, int channel, pid_t *pid)
{
    char name[] = "belay", command[] = "symbolize";
    char *argv[] = {name, command, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, defaults;
    char **env = helper_environment();
    if (env == NULL)
        return false;
    sigemptyset(&none);
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, channel, 0);
    posix_spawn_file_actions_adddup2(&actions, channel, 1);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    int error = posix_spawn(pid, path, &actions, &attributes, argv, env);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    blyi_host_free(env);
    return error == 0;
}

static bool helper_start(struct helper *helper)
{
    char path[PATH_MAX];
    int ends[2];
    if (!helper_path(path) || !make_channel(ends))
        return false;
    if (!spawn_helper(path, ends[1], &helper->pid)) {
        close_both(ends);
        return false;
    }
    close(ends[1]);
    helper->fd = ends[0];
    helper->sent = 0;
    helper->used_ns = 0;
    fcntl(helper->fd, F_SETFL, O_NONBLOCK);
    return true;
}

static uint64_t now_ms(void)
{
    struct timespec now; /* not clock.h: a virtual clock would never let the time run out */
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Sends what fits, and after all of it tells the helper that there is no more. A helper that
 * went away is no error here: reading tells. */
static void pump_out(struct helper *helper, const struct buffer *request)
{
    ssize_t n = send(helper->fd, request->text + helper->sent, request->length - helper->sent,
                     MSG_NOSIGNAL);
    if (n > 0)
        helper->sent += (size_t)n;
    else if (errno != EAGAIN && errno != EINTR)
        helper->sent = request->length;
    if (helper->sent == request->length)
        shutdown(helper->fd, SHUT_WR);
}

/* False at the end of the answer. */
static bool pump_in(struct helper *helper, struct buffer *answer)
{
    if (!buffer_room(answer, 4096))
        return false;
    ssize_t n =
        read(helper->fd, answer->text + answer->length, answer->capacity - answer->length - 1);
    if (n > 0)
        answer->length += (size_t)n;
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

/* Since the last look; where other work has the processors it takes a while to get to them. */
static bool has_worked(struct helper *helper)
{
    clockid_t clock;
    struct timespec used;
    if (clock_getcpuclockid(helper->pid, &clock) != 0 || clock_gettime(clock, &used) != 0)
        return false; /* it has ended */
    uint64_t before = helper->used_ns;
    helper->used_ns = (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
    return helper->used_ns != before;
}

static void converse(struct helper *helper, const struct buffer *request, struct buffer *answer)
{
    uint64_t now = now_ms(), end = now + BLYI_SYMBOLISE_MS, worked = now;
    for (; now < end && now - worked < BLYI_SYMBOLISE_IDLE_MS; now = now_ms()) {
        bool more = helper->sent < request->length;
        struct pollfd ready = {.fd = helper->fd, .events = POLLIN};
        if (more)
            ready.events |= POLLOUT;
        if (poll(&ready, 1, LOOK_MS) < 0 && errno != EINTR)
            break;
        if (has_worked(helper))
            worked = now_ms();
        if (more && (ready.revents & POLLOUT))
            pump_out(helper, request);
        if ((ready.revents & ~POLLOUT) && !pump_in(helper, answer))
            break;
    }
}

/* The helper ends by itself once its answer is read; if it has not, it is stopped. Its end may
 * have been collected by the program (SIGCHLD ignored, or a wait for any child). */
static void helper_stop(struct helper *helper)
{
    close(helper->fd);
    for (int i = 0; i < 20; i++) {
        if (waitpid(helper->pid, NULL, WNOHANG) != 0)
            return;
        nanosleep(&(struct timespec){0, 5000000}, NULL);
    }
    kill(helper->pid, SIGKILL);
    while (waitpid(helper->pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* ---- the answer ---- */

static char *copy_or(const char *text, size_t length, char *fallback)
{
    char *copy = blyi_host_alloc(length + 1);
    if (copy == NULL)
        return fallback;
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

/* The helper was asked for the byte before the return address, which names the site. */
static char *with_offset(const char *name, size_t length, uint64_t offset)
{
    char text[BLYI_SOURCE_TEXT + 24];
    if (length > BLYI_SOURCE_TEXT)
        length = BLYI_SOURCE_TEXT;
    int n = snprintf(text, sizeof(text), "%.*s+0x%" PRIx64, (int)length, name, offset + 1);
    return copy_or(text, (size_t)n, no_text);
}

static void read_line(const char *line, const char *end, struct blyi_source *out)
{
    const char *tab = memchr(line, '\t', (size_t)(end - line));
    const char *tab2 = tab ? memchr(tab + 1, '\t', (size_t)(end - tab - 1)) : NULL;
    if (tab2 == NULL)
        return;
    const char *tab3 = memchr(tab2 + 1, '\t', (size_t)(end - tab2 - 1));
    if (tab > line && tab3 != NULL && tab3 + 1 < end)
        out->function = with_offset(line, (size_t)(tab - line), strtoull(tab3 + 1, NULL, 16));
    else if (tab > line)
        out->function = copy_or(line, (size_t)(tab - line), no_text);
    if (tab2 > tab + 1) {
        out->file = copy_or(tab + 1, (size_t)(tab2 - tab - 1), no_file);
        out->line = (uint32_t)strtoul(tab2 + 1, NULL, 10);
    }
}

static void read_answer(const struct buffer *answer, size_t n, struct blyi_source *out)
{
    const char *line = answer->text;
    const char *end = answer->text + answer->length;
    for (size_t i = 0; i < n && line < end; i++) {
        const char *line_end = memchr(line, '\n', (size_t)(end - line));
        if (line_end == NULL)
            return; /* cut off */
        read_line(line, line_end, &out[i]);
        line = line_end + 1;
    }
}

static void ask_helper(const uint32_t *sites, size_t n, struct blyi_source *out)
{
    struct helper helper;
    struct buffer request = {0}, answer = {0};
    if (write_request(&request, sites, n) && helper_start(&helper)) {
        converse(&helper, &request, &answer);
        helper_stop(&helper);
        if (answer.length > 0) {
            answer.text[answer.length] = '\0';
            read_answer(&answer, n, out);
        }
    }
    blyi_host_free(request.text);
    blyi_host_free(answer.text);
}

/* False while the module is loaded: its symbols tell more. */
static bool unloaded_text(uint32_t site, char text[BLYI_SITE_TEXT])
{
    struct blyi_module then, now;
    const char *pc = blyi_site_pc(site);
    if (!blyi_place_find(site, &then) ||
        (blyi_module_find(pc - 1, &now) && now.offset == then.offset &&
         !strcmp(now.path, then.path)))
        return false;
    const char *slash = strrchr(then.path, '/');
    snprintf(text, BLYI_SITE_TEXT, "0x%" PRIx64 " (%.64s, unloaded)", then.offset + 1,
             slash ? slash + 1 : then.path);
    return true;
}

/* A line of a script needs no helper. */
static void take_line(const struct blyi_line *line, struct blyi_source *out)
{
    out->function = copy_or(line->function, strlen(line->function), no_text);
    out->file = copy_or(line->file, strlen(line->file), no_file);
    out->line = line->number;
}

void blyi_symbolise(const uint32_t *sites, size_t n, struct blyi_source *out)
{
    size_t n_code = 0;
    for (size_t i = 0; i < n; i++) {
        const struct blyi_line *line = blyi_line_of_site(sites[i]);
        out[i] = (struct blyi_source){.function = NULL, .file = no_file};
        if (line != NULL)
            take_line(line, &out[i]);
        n_code += line == NULL;
    }
    if (n_code > 0)
        ask_helper(sites, n, out);
    for (size_t i = 0; i < n; i++) {
        char text[BLYI_SITE_TEXT];
        if (out[i].function != NULL)
            continue;
        if (!unloaded_text(sites[i], text))
            blyi_site_text(sites[i], text);
        out[i].function = copy_or(text, strlen(text), no_text);
    }
}

void blyi_sources_fini(struct blyi_source *sources, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (sources[i].function != no_text)
            blyi_host_free(sources[i].function);
        if (sources[i].file != no_file)
            blyi_host_free(sources[i].file);
    }
}

const char *blyi_source_text(const struct blyi_source *source, char buf[BLYI_SOURCE_TEXT])
{
    if (source->file[0] == '\0')
        snprintf(buf, BLYI_SOURCE_TEXT, "%s", source->function);
    else
        snprintf(buf, BLYI_SOURCE_TEXT, "%s %s:%u", source->function, source->file, source->line);
    return buf;
}
