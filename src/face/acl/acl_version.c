/* SPDX-License-Identifier: Apache-2.0
 *
 * acl_version.c - versions of the interface and of installed packages, and what CANN can do.
 *
 * A package's version is the line "Version=..." of
 *   $ASCEND_HOME_PATH/share/info/<package>/version.info
 * ('-' and '_' in the name are the same), for the driver and the firmware that of version.info
 * in the folder that /etc/ascend_install.info names.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "face/acl/acl_error.h"
#include "face/acl/model.h"

#define VERSION_SIZE    ACL_PKG_VERSION_MAX_SIZE
#define INSTALL_INFO    "/etc/ascend_install.info"
#define PATH_SIZE       1024
#define NAME_MAX_LENGTH 63

aclError bly_acl_aclrtGetVersion(int32_t *majorVersion, int32_t *minorVersion,
                                 int32_t *patchVersion)
{
    if (majorVersion == NULL || minorVersion == NULL || patchVersion == NULL)
        return acl_reject(aclrtGetVersion, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          majorVersion == NULL   ? "majorVersion"
                          : minorVersion == NULL ? "minorVersion"
                                                 : "patchVersion");
    *majorVersion = ACL_MAJOR_VERSION;
    *minorVersion = ACL_MINOR_VERSION;
    *patchVersion = ACL_PATCH_VERSION;
    return ACL_SUCCESS;
}

/* Value of the first line "<key>=<value>", key compared without case; false: no such line. */
static bool read_key(const char *path, const char *key, char *value, size_t size)
{
    FILE *file = fopen(path, "re");
    char line[PATH_SIZE];
    bool found = false;
    while (file != NULL && !found && fgets(line, sizeof(line), file) != NULL) {
        char *equals = strchr(line, '=');
        if (equals == NULL)
            continue;
        *equals = '\0';
        if (strcasecmp(line, key) != 0)
            continue;
        char *text = equals + 1;
        text[strcspn(text, "\r\n")] = '\0';
        found = strlen(text) < size;
        if (found)
            memcpy(value, text, strlen(text) + 1);
    }
    if (file != NULL)
        fclose(file);
    return found;
}

static bool is_name(const char *name)
{
    size_t length = strnlen(name, NAME_MAX_LENGTH + 1);
    if (length == 0 || length > NAME_MAX_LENGTH)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (!isalnum((unsigned char)name[i]) && name[i] != '-' && name[i] != '_')
            return false;
    }
    return true;
}

/* The version text of a package, or an error recorded under `call`. */
static aclError package_version(enum blyi_acl_call call, const char *name,
                                char version[VERSION_SIZE])
{
    char path[PATH_SIZE], folder[PATH_SIZE - 64], spelled[NAME_MAX_LENGTH + 1];
    if (!is_name(name))
        return blyi_acl_reject(call, ACL_ERROR_INVALID_PARAM,
                               "the package name is not 1 .. %d letters, digits, '-' and '_'",
                               NAME_MAX_LENGTH);
    if (strcmp(name, "driver") == 0 || strcmp(name, "firmware") == 0) {
        char key[64];
        snprintf(key, sizeof(key), "%s_Install_Path_Param", name);
        if (read_key(INSTALL_INFO, key, folder, sizeof(folder))) {
            snprintf(path, sizeof(path), "%s/%s/version.info", folder, name);
            if (read_key(path, "Version", version, VERSION_SIZE))
                return ACL_SUCCESS;
        }
        return blyi_acl_reject(call, ACL_ERROR_INVALID_FILE, "package %s is not in %s", name,
                               INSTALL_INFO);
    }
    const char *home = getenv("ASCEND_HOME_PATH");
    if (home == NULL)
        return blyi_acl_reject(call, ACL_ERROR_INVALID_FILE,
                               "package %s: ASCEND_HOME_PATH is not set", name);
    for (int i = 0; i < 3; i++) { /* as written, then with '-', then with '_' */
        size_t length = strlen(name);
        for (size_t c = 0; c <= length; c++) {
            bool is_joint = name[c] == '-' || name[c] == '_';
            static const char joints[] = {0, '-', '_'};
            spelled[c] = name[c];
            if (is_joint && i > 0)
                spelled[c] = joints[i];
        }
        int used = snprintf(path, sizeof(path), "%s/share/info/%s/version.info", home, spelled);
        if (used > 0 && (size_t)used < sizeof(path) &&
            read_key(path, "Version", version, VERSION_SIZE))
            return ACL_SUCCESS;
    }
    return blyi_acl_reject(call, ACL_ERROR_INVALID_FILE,
                           "package %s: %.512s/share/info/%s/version.info has no Version", name,
                           home, name);
}

aclError bly_acl_aclsysGetVersionStr(char *pkgName, char *versionStr)
{
    if (pkgName == NULL || versionStr == NULL)
        return acl_reject(aclsysGetVersionStr, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          pkgName == NULL ? "pkgName" : "versionStr");
    char version[VERSION_SIZE];
    aclError error = package_version(BLYI_ACL_CALL_aclsysGetVersionStr, pkgName, version);
    if (error == ACL_SUCCESS)
        memcpy(versionStr, version, strlen(version) + 1);
    return error;
}

/* Reads a number of at most four digits and moves on. */
static bool take_number(const char **text, int32_t *number)
{
    const char *at = *text;
    int32_t value = 0;
    for (; isdigit((unsigned char)*at) && at - *text < 4; at++)
        value = value * 10 + (*at - '0');
    if (at == *text)
        return false;
    *text = at;
    *number = value;
    return true;
}

/* "8.5.0.rc1", "8.5.0-alpha.2": a name and a number behind the third part lower the value. */
static bool version_number(const char *text, int32_t *number)
{
    static const struct {
        const char *name;
        int32_t offset;
    } stages[] = {{"alpha", -300}, {"beta", -200}, {"rc", -100}};
    int32_t parts[3];
    for (int i = 0; i < 3; i++) {
        if ((i > 0 && *text++ != '.') || !take_number(&text, &parts[i]))
            return false;
    }
    if (parts[0] > 200 || parts[1] > 99 || parts[2] > 99)
        return false;
    int32_t value = parts[0] * 10000000 + parts[1] * 100000 + parts[2] * 1000;
    if (*text == '.' || *text == '-')
        text++;
    for (size_t i = 0; i < BLYI_COUNT(stages); i++) {
        size_t length = strlen(stages[i].name);
        if (strncasecmp(text, stages[i].name, length) != 0)
            continue;
        text += length;
        if (*text == '.')
            text++;
        int32_t step;
        if (!take_number(&text, &step))
            return false;
        value += stages[i].offset + step;
        break;
    }
    *number = value;
    return true;
}

aclError bly_acl_aclsysGetVersionNum(char *pkgName, int32_t *versionNum)
{
    if (pkgName == NULL || versionNum == NULL)
        return acl_reject(aclsysGetVersionNum, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          pkgName == NULL ? "pkgName" : "versionNum");
    char version[VERSION_SIZE];
    aclError error = package_version(BLYI_ACL_CALL_aclsysGetVersionNum, pkgName, version);
    if (error != ACL_SUCCESS)
        return error;
    if (!version_number(version, versionNum))
        return acl_reject(aclsysGetVersionNum, ACL_ERROR_INTERNAL_ERROR,
                          "package %s has the version '%s', not major.minor.patch", pkgName,
                          version);
    return ACL_SUCCESS;
}

aclError bly_acl_aclsysGetCANNVersion(aclCANNPackageName name, aclCANNPackageVersion *version)
{
    static const char *const packages[] = {
        [ACL_PKG_NAME_CANN] = "cann",
        [ACL_PKG_NAME_RUNTIME] = "runtime",
        [ACL_PKG_NAME_COMPILER] = "compiler",
        [ACL_PKG_NAME_HCCL] = "hccl",
        [ACL_PKG_NAME_TOOLKIT] = "toolkit",
        [ACL_PKG_NAME_OPP] = "opp",
        [ACL_PKG_NAME_OPP_KERNEL] = "opp_kernel",
        [ACL_PKG_NAME_DRIVER] = "driver",
    };
    if (version == NULL)
        return acl_null(aclsysGetCANNVersion, "version");
    if ((unsigned)name >= BLYI_COUNT(packages))
        return acl_reject(aclsysGetCANNVersion, ACL_ERROR_INVALID_PARAM, "name %d is not in 0 .. 7",
                          (int)name);
    aclCANNPackageVersion found = {.version = ""};
    aclError error =
        package_version(BLYI_ACL_CALL_aclsysGetCANNVersion, packages[name], found.version);
    if (error != ACL_SUCCESS)
        return error;
    char *const parts[] = {found.majorVersion, found.minorVersion, found.releaseVersion,
                           found.patchVersion};
    const char *text = found.version;
    for (size_t i = 0; i < BLYI_COUNT(parts) && *text != '\0'; i++) {
        size_t length = strcspn(text, ".");
        size_t kept =
            length < ACL_PKG_VERSION_PARTS_MAX_SIZE ? length : ACL_PKG_VERSION_PARTS_MAX_SIZE - 1;
        memcpy(parts[i], text, kept);
        text += length + (text[length] == '.');
    }
    *version = found;
    return ACL_SUCCESS;
}

static const aclCannAttr cann_attributes[] = {ACL_CANN_ATTR_INF_NAN, ACL_CANN_ATTR_BF16,
                                              ACL_CANN_ATTR_JIT_COMPILE};

aclError bly_acl_aclGetCannAttributeList(const aclCannAttr **cannAttrList, size_t *num)
{
    if (cannAttrList == NULL || num == NULL)
        return acl_reject(aclGetCannAttributeList, ACL_ERROR_INVALID_PARAM, "%s is NULL",
                          cannAttrList == NULL ? "cannAttrList" : "num");
    *cannAttrList = cann_attributes;
    *num = BLYI_COUNT(cann_attributes);
    return ACL_SUCCESS;
}

/* Infinities and bfloat16 came with the 910B; older parts compile operators when they run. */
aclError bly_acl_aclGetCannAttribute(aclCannAttr cannAttr, int32_t *value)
{
    if (value == NULL)
        return acl_null(aclGetCannAttribute, "value");
    if ((int)cannAttr < ACL_CANN_ATTR_INF_NAN || (int)cannAttr > ACL_CANN_ATTR_JIT_COMPILE)
        return acl_reject(aclGetCannAttribute, ACL_ERROR_INVALID_PARAM,
                          "cannAttr %d is not in 0 .. 2", (int)cannAttr);
    const struct blyi_model *model;
    bly_status status = blyi_acl_model(&model);
    if (status != BLY_OK)
        return acl_result(aclGetCannAttribute, status);
    bool is_910b = strncmp(model->soc, "Ascend910B", 10) == 0;
    *value = cannAttr == ACL_CANN_ATTR_JIT_COMPILE ? !is_910b : is_910b;
    return ACL_SUCCESS;
}
