/* SPDX-License-Identifier: Apache-2.0
 *
 * sanitizer.h - which sanitizer this build has: gcc says so by a macro, clang by a feature.
 */
#ifndef BLYI_SANITIZER_H
#define BLYI_SANITIZER_H

#if defined(__has_feature)
#define BLYI_HAS_FEATURE(name) __has_feature(name)
#else
#define BLYI_HAS_FEATURE(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || BLYI_HAS_FEATURE(address_sanitizer)
#define BLYI_WITH_ASAN 1
#else
#define BLYI_WITH_ASAN 0
#endif
#if defined(__SANITIZE_THREAD__) || BLYI_HAS_FEATURE(thread_sanitizer)
#define BLYI_WITH_TSAN 1
#else
#define BLYI_WITH_TSAN 0
#endif

#endif
