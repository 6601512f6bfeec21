/* SPDX-License-Identifier: Apache-2.0
 *
 * scene.h - pictures with known contents: bright rectangles ("objects") on a dark, noisy ground,
 * and the search for them, so that the service's answers can be checked.
 */
#ifndef SCENE_H
#define SCENE_H

#include <stddef.h>
#include <stdint.h>

enum { SCENE_MAX_OBJECTS = 6, SCENE_CHANNELS = 3 };

struct box {
    int x, y, width, height;
};

struct scene {
    int width, height;
    int n_objects;
    struct box objects[SCENE_MAX_OBJECTS]; /* disjoint, at least 4 pixels apart */
};

/* A scene drawn from `seed`; about one in twelve has no object. */
struct scene scene_make(uint32_t seed, int width, int height);

/* Writes height * width * 3 bytes, interleaved. */
void scene_render(const struct scene *scene, uint32_t seed, uint8_t *pixels);

/* Number of bright regions in a plane of `width` x `height` bytes whose rows are `pitch` apart.
 * `labels` has width * height entries of scratch. */
int scene_count_objects(const uint8_t *plane, int width, int height, size_t pitch,
                        uint16_t *labels);

#endif
