/* SPDX-License-Identifier: Apache-2.0
 *
 * java_glue.c - native methods of GuardProgram.java.
 */
#include <acl/acl.h>
#include <jni.h>

#include <stddef.h>

JNIEXPORT jint JNICALL Java_GuardProgram_start(JNIEnv *env, jclass type);
JNIEXPORT jlong JNICALL Java_GuardProgram_allocate(JNIEnv *env, jclass type, jint size);
JNIEXPORT jint JNICALL Java_GuardProgram_circle(JNIEnv *env, jclass type, jlong block, jint value);
JNIEXPORT jint JNICALL Java_GuardProgram_touch(JNIEnv *env, jclass type, jlong block);

JNIEXPORT jint JNICALL Java_GuardProgram_start(JNIEnv *env, jclass type)
{
    (void)env;
    (void)type;
    aclError error = aclInit(NULL);
    return error == ACL_SUCCESS ? aclrtSetDevice(0) : error;
}

JNIEXPORT jlong JNICALL Java_GuardProgram_allocate(JNIEnv *env, jclass type, jint size)
{
    void *block = NULL;
    (void)env;
    (void)type;
    aclrtSetDevice(0);
    aclrtMalloc(&block, (size_t)size, ACL_MEM_MALLOC_HUGE_FIRST);
    return (jlong)block;
}

JNIEXPORT jint JNICALL Java_GuardProgram_circle(JNIEnv *env, jclass type, jlong block, jint value)
{
    char byte = 0;
    (void)env;
    (void)type;
    aclrtSetDevice(0);
    aclrtMemset((void *)block, 1, value, 1);
    aclrtMemcpy(&byte, 1, (void *)block, 1, ACL_MEMCPY_DEVICE_TO_HOST);
    return byte;
}

JNIEXPORT jint JNICALL Java_GuardProgram_touch(JNIEnv *env, jclass type, jlong block)
{
    (void)env;
    (void)type;
    return *(volatile char *)block;
}
