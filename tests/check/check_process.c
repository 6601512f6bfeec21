/* SPDX-License-Identifier: Apache-2.0
 *
 * check_process.c - runs one case that begins AscendCL itself: check_process LIST NAME.
 */
#include "process_case.h"

static const struct check_case *list_of(const char *name)
{
    static const struct {
        const char *name;
        const struct check_case *list;
    } lists[] = {{"scenarios_memory", scenarios_memory},
                 {"scenarios_things", scenarios_things},
                 {"faults_process", faults_process},
                 {"correct_process", correct_process}};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        if (strcmp(lists[i].name, name) == 0)
            return lists[i].list;
    return NULL;
}

/* What the case "forked" executes. */
static int executed(void)
{
    begin_on(0);
    OK(aclrtFree(card_block(8 * MIB)));
    end_on(0);
    return 0;
}

int main(int argc, char **argv)
{
    const struct check_case *list = argc > 1 ? list_of(argv[1]) : NULL;
    if (argc == 2 && list != NULL) {
        for (; list->name != NULL; list++)
            printf("%s\t%s\t%s\t%s\n", list->name, list->kinds,
                   list->part != NULL ? list->part : "",
                   list->environment != NULL ? list->environment : "");
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "executed") == 0)
        return executed();
    for (; argc == 3 && list != NULL && list->name != NULL; list++) {
        if (strcmp(list->name, argv[2]) != 0)
            continue;
        alarm(600);
        board_make();
        list->run();
        return 0;
    }
    return 97;
}
