/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_import.c - files of other tools: any bytes are read or refused with a sentence, and what
 * was read can be written in every form, of which those that we know ourselves are read again.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/json.h"
#include "tools/belay/trace_convert.h"
#include "tools/belay/trace_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int cond)
{
    if (!cond)
        abort();
}

static void check_form(export_fn *export, const char *text, size_t length)
{
    struct blyi_trace *again;
    if (export == export_chrome)
        require(blyi_json_check(text, length, 8) == BLY_OK);
    if (export != export_snapshot)
        return;
    require(trace_import(text, length, "again", &again) == BLY_OK);
    blyi_trace_close(again);
}

static void write_form(struct blyi_trace *trace, export_fn *export)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    require(out != NULL);
    bly_status status = export(trace, &(struct export_opts){.card = EXPORT_ANY_CARD}, out);
    require(status == BLY_OK || status == BLY_E_INVALID);
    fclose(out);
    if (status == BLY_OK)
        check_form(export, text, length);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static export_fn *const exports[] = {export_tsv,    export_rmm,    export_snapshot,
                                         export_chrome, export_folded, export_memscope};
    struct blyi_trace *trace;
    bly_status status = trace_import(data, size, "input", &trace);
    if (status != BLY_OK) {
        require(status == BLY_E_PARSE && blyi_fail_text()[0] != '\0');
        return 0;
    }
    for (size_t i = 0; i < sizeof(exports) / sizeof(exports[0]); i++)
        write_form(trace, exports[i]);
    blyi_trace_close(trace);
    return 0;
}
