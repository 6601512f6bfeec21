/* SPDX-License-Identifier: Apache-2.0
 *
 * check_program.c - runs one case: check_program LIST NAME. Built with debug information, as the
 * lines of its faults are part of what is checked.
 */
#include "check_case.h"

static const struct check_case *list_of(const char *name)
{
    static const struct {
        const char *name;
        const struct check_case *list;
    } lists[] = {{"faults_order", faults_order},   {"faults_memory", faults_memory},
                 {"faults_free", faults_free},     {"faults_graph", faults_graph},
                 {"correct_order", correct_order}, {"correct_memory", correct_memory},
                 {"correct_graph", correct_graph}, {"faults_pool", faults_pool},
                 {"correct_pool", correct_pool},   {"faults_kinds", faults_kinds},
                 {"correct_kinds", correct_kinds}};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        if (strcmp(lists[i].name, name) == 0)
            return lists[i].list;
    return NULL;
}

int main(int argc, char **argv)
{
    const struct check_case *list = argc > 1 ? list_of(argv[1]) : NULL;
    if (argc == 2 && list != NULL) { /* tells the driver what there is */
        for (; list->name != NULL; list++)
            printf("%s\t%s\t%s\t%s\n", list->name, list->kinds,
                   list->part != NULL ? list->part : "",
                   list->environment != NULL ? list->environment : "");
        return 0;
    }
    for (; argc == 3 && list != NULL && list->name != NULL; list++) {
        if (strcmp(list->name, argv[2]) != 0)
            continue;
        alarm(600);
        world_begin();
        list->run();
        world_end();
        return 0;
    }
    return 97;
}
