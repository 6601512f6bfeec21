#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# replay_table.sh [--belay COMMAND] [--docs | --against FILE] FOLDER - every trace of a folder against every
# policy: one row a trace, policy and pad, separated by tabs. With a table of other simulators'
# figures (baselines.tsv) the smallest capacity is found as closely as there, to a 400th of the peak
# of live bytes, and what differs is told; exits 1 where something does. --docs: the table of
# docs/replay.md.
set -eu
belay=build/release/bin/belay against= docs=
while [ $# -gt 1 ]; do
    case $1 in
    --docs) docs=yes; shift; continue ;;
    --belay) belay=$2 ;;
    --against) against=$2 ;;
    *) break ;;
    esac
    shift 2
done
[ $# -eq 1 ] && [ -d "$1" ] || { sed -n '3,7p' "$0" >&2; exit 2; }
table=$(mktemp)
trap 'rm "$table"' EXIT

# trace pad -> rows of the command's table behind the trace, the pad and the first two lines
rows() {
    live=$("$belay" replay "$1" --policy stock | awk '/^peak live/ { print $3 }')
    "$belay" replay "$1" --pad "$2" --capacity min --within "$([ "$against" ] && echo $((live / 400)) || echo 2MiB)" |
        awk -v trace="$(basename "$1" | sed 's/\.tsv.*//')" -v pad="$2" -v OFS='\t' '
            /^trace/ { events = $3; allocs = $5 }
            /^peak live/ { live = $3 }
            heading { print trace, $1, pad, events, allocs, live, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12 }
            /^policy/ { heading = 1 }'
}

for trace in "$1"/*.tsv "$1"/*.tsv.zst; do
    # a table of figures is no trace
    case $(zstdcat -f "$trace" 2>/dev/null | sed '/^#/d; q') in time_us*) ;; *) continue ;; esac
    rows "$trace" 0
    rows "$trace" 32
done > "$table"

if [ "$docs" ]; then
    awk -F '\t' '
        $3 != 32 { next }
        $1 != trace { printf "%s| %s (%d, %.1f GiB) |", (trace == "" ? "" : "\n"), $1, $5, $6 / 2 ^ 30; trace = $1 }
        { printf " %.3f / %.3f |", $8, $17 }
        END { print "" }' "$table"
    exit 0
fi
printf 'trace\tpolicy\tpad\tevents\tallocs\tpeak_live\tpeak_reserved\tratio\tranges_mapped\tranges_unmapped\t'
printf 'pages_mapped\tpages_unmapped\thandle_ops\twaits\tflushes\tmin_capacity\tmin_capacity_ratio\n'
cat "$table"
[ "$against" ] || exit 0
awk -F '\t' '
    function differ(what, theirs, ours) {
        if (theirs == ours)
            return
        printf "# %s, %s: %s is %s here, %s there\n", $1, $3, what, ours, theirs
        bad++
    }
    NR == FNR { row[$1, $2, $3] = $0; next }
    FNR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
    {
        policy["torch_npu"] = "caching" SUBSEP 32
        policy["torch_nopad"] = "caching" SUBSEP 0
        policy["torch_npu_exp"] = "expandable" SUBSEP 32
        policy["raw2m"] = "stock" SUBSEP 0
        policy["firstfit"] = "firstfit" SUBSEP 0
        if (!($3 in policy) || !(($1 SUBSEP policy[$3]) in row))
            next
        split(row[$1, policy[$3]], our, "\t")
        differ("events", $4, our[4])
        differ("allocs", $5, our[5])
        differ("peak live", $column["peak_live"], our[6])
        differ("peak reserved", $column["peak_reserved"], our[7])
        differ("driver calls", $column["driver_allocs"] + $column["driver_frees"], our[13])
        differ("pages mapped", $column["pages2m_mapped"], our[11])
        differ("pages unmapped", $column["pages2m_unmapped"], our[12])
        differ("flushes", $column["flushes_at_min_capacity"], our[15])
        differ("smallest capacity", $column["min_capacity"], our[16])
        compared++
    }
    END { printf "# %d rows compared, %d figures differ\n", compared, bad; exit bad > 0 }
' "$table" "$against"
