/* SPDX-License-Identifier: Apache-2.0
 *
 * Stands for a vendor's libascendcl.so, which must not be the one that is used.
 */
int aclInit(const char *path);

int aclInit(const char *path)
{
    return path != 0 ? 507899 : 507000;
}
