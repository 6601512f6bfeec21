/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_arch.c - which parts run the same instructions, and groups of cores.
 */
#include <string.h>

#include "base/compiler.h"
#include "face/acl/check.h"
#include "face/acl/model.h"

/* X(beginning of a name, architecture), the longer beginnings first. "Ascend910B" alone is an old
 * part; with a digit behind it, a new one. */
#define PARTS(X)                                                                                   \
    X("Ascend910_93", 2201)                                                                        \
    X("Ascend910B1", 2201)                                                                         \
    X("Ascend910B2", 2201)                                                                         \
    X("Ascend910B3", 2201)                                                                         \
    X("Ascend910B4", 2201)                                                                         \
    X("Ascend910", 1001)                                                                           \
    X("Ascend310P", 2002)                                                                          \
    X("Ascend310B", 3002)                                                                          \
    X("Ascend950", 3510)

/* 0: not known. */
static int arch_of(const char *soc)
{
    static const struct {
        const char *begin;
        int arch;
    } parts[] = {
#define PART_ROW(begin, arch) {begin, arch},
        PARTS(PART_ROW)
#undef PART_ROW
    };
    for (size_t i = 0; i < BLYI_COUNT(parts); i++) {
        if (strncmp(soc, parts[i].begin, strlen(parts[i].begin)) == 0)
            return parts[i].arch;
    }
    return 0;
}

aclError bly_acl_aclrtCheckArchCompatibility(const char *socVersion, int32_t *canCompatible)
{
    const struct blyi_model *model;
    if (socVersion == NULL || canCompatible == NULL)
        return acl_reject(aclrtCheckArchCompatibility, ACL_ERROR_RT_PARAM_INVALID, "%s is NULL",
                          socVersion == NULL ? "socVersion" : "canCompatible");
    aclError error = acl_result(aclrtCheckArchCompatibility, blyi_acl_model(&model));
    if (error != ACL_SUCCESS)
        return error;
    int asked = arch_of(socVersion), own = arch_of(model->soc);
    if (asked == 0 && strcmp(socVersion, model->soc) != 0)
        return acl_reject(aclrtCheckArchCompatibility, ACL_ERROR_RT_PARAM_INVALID,
                          "socVersion '%.64s' is no part that is known", socVersion);
    *canCompatible = asked == own;
    return ACL_SUCCESS;
}

/* ── Groups ───────────────────────────────────────────────────────────────────────────────── */

/* Cores are grouped on parts whose own processor the program runs on; behind PCIe the calls are
 * documented as not supported. */
static aclError no_groups(enum blyi_acl_call call)
{
    return blyi_acl_reject(call, ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                           "a card behind PCIe has no groups of cores");
}

aclError bly_acl_aclrtSetGroup(int32_t groupId)
{
    (void)groupId;
    return no_groups(BLYI_ACL_CALL_aclrtSetGroup);
}

aclError bly_acl_aclrtGetGroupCount(uint32_t *count)
{
    if (count == NULL)
        return acl_null(aclrtGetGroupCount, "count");
    return no_groups(BLYI_ACL_CALL_aclrtGetGroupCount);
}

aclrtGroupInfo *bly_acl_aclrtCreateGroupInfo(void)
{
    (void)no_groups(BLYI_ACL_CALL_aclrtCreateGroupInfo);
    return NULL;
}

aclError bly_acl_aclrtDestroyGroupInfo(aclrtGroupInfo *groupInfo)
{
    if (groupInfo == NULL)
        return acl_null(aclrtDestroyGroupInfo, "groupInfo");
    return no_groups(BLYI_ACL_CALL_aclrtDestroyGroupInfo);
}

aclError bly_acl_aclrtGetAllGroupInfo(aclrtGroupInfo *groupInfo)
{
    if (groupInfo == NULL)
        return acl_null(aclrtGetAllGroupInfo, "groupInfo");
    return no_groups(BLYI_ACL_CALL_aclrtGetAllGroupInfo);
}

aclError bly_acl_aclrtGetGroupInfoDetail(const aclrtGroupInfo *groupInfo, int32_t groupIndex,
                                         aclrtGroupAttr attr, void *attrValue, size_t valueLen,
                                         size_t *paramRetSize)
{
    (void)groupIndex;
    (void)attr;
    (void)valueLen;
    if (groupInfo == NULL)
        return acl_null(aclrtGetGroupInfoDetail, "groupInfo");
    if (attrValue == NULL)
        return acl_null(aclrtGetGroupInfoDetail, "attrValue");
    if (paramRetSize == NULL)
        return acl_null(aclrtGetGroupInfoDetail, "paramRetSize");
    return no_groups(BLYI_ACL_CALL_aclrtGetGroupInfoDetail);
}
