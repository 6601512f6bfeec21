/* SPDX-License-Identifier: Apache-2.0 */
#include "scene.h"

#include <stdbool.h>
#include <string.h>

enum { DARK = 90, BRIGHT = 200, GAP = 8 };

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static int random_below(uint32_t *state, int bound)
{
    return (int)(next_random(state) % (uint32_t)bound);
}

static bool overlaps(const struct box *a, const struct box *b)
{
    return a->x < b->x + b->width + GAP && b->x < a->x + a->width + GAP &&
           a->y < b->y + b->height + GAP && b->y < a->y + a->height + GAP;
}

struct scene scene_make(uint32_t seed, int width, int height)
{
    struct scene scene = {.width = width, .height = height};
    uint32_t state = seed;
    int wanted = random_below(&state, 12) == 0 ? 0 : 1 + random_below(&state, SCENE_MAX_OBJECTS);
    for (int tries = 0; scene.n_objects < wanted && tries < 40; tries++) {
        struct box box = {.width = 16 + random_below(&state, width / 5),
                          .height = 16 + random_below(&state, height / 5)};
        box.x = GAP + random_below(&state, width - box.width - 2 * GAP);
        box.y = GAP + random_below(&state, height - box.height - 2 * GAP);
        bool free = true;
        for (int i = 0; i < scene.n_objects; i++)
            free = free && !overlaps(&box, &scene.objects[i]);
        if (free)
            scene.objects[scene.n_objects++] = box;
    }
    return scene;
}

void scene_render(const struct scene *scene, uint32_t seed, uint8_t *pixels)
{
    size_t row = (size_t)scene->width * SCENE_CHANNELS;
    uint32_t state = seed ^ 0x9e3779b9u;
    for (size_t i = 0; i < row; i++)
        pixels[i] = (uint8_t)(next_random(&state) % DARK);
    for (int y = 1; y < scene->height; y++)
        memcpy(pixels + (size_t)y * row, pixels, row);
    for (int i = 0; i < scene->n_objects; i++) {
        const struct box *box = &scene->objects[i];
        for (int y = box->y; y < box->y + box->height; y++)
            memset(pixels + (size_t)y * row + (size_t)box->x * SCENE_CHANNELS, BRIGHT + y % 50,
                   (size_t)box->width * SCENE_CHANNELS);
    }
}

/* Root of a label in a union-find forest kept in `parent`. */
static uint16_t root(uint16_t *parent, uint16_t label)
{
    while (parent[label] != label)
        label = parent[label] = parent[parent[label]];
    return label;
}

int scene_count_objects(const uint8_t *plane, int width, int height, size_t pitch, uint16_t *labels)
{
    static const int max_labels = 4096;
    uint16_t parent[4096];
    int n_labels = 1;
    for (int y = 0; y < height; y++) {
        for (int x = 0; x < width; x++) {
            size_t at = (size_t)y * (size_t)width + (size_t)x;
            labels[at] = 0;
            if (plane[(size_t)y * pitch + (size_t)x] < BRIGHT)
                continue;
            uint16_t left = x > 0 ? labels[at - 1] : 0;
            uint16_t up = y > 0 ? labels[at - (size_t)width] : 0;
            if (left != 0 && up != 0)
                parent[root(parent, left)] = root(parent, up);
            if (left == 0 && up == 0 && n_labels < max_labels) {
                parent[n_labels] = (uint16_t)n_labels;
                labels[at] = (uint16_t)n_labels++;
            } else {
                labels[at] = up != 0 ? up : left;
            }
        }
    }
    int regions = 0;
    for (int i = 1; i < n_labels; i++)
        regions += parent[i] == i;
    return regions;
}
