/* Live and freed memory (see blocks.h). */
#include "trace/blocks.h"

#include <stddef.h>

#include "trace/grow.h"

struct rf_block {
    uint64_t start, end;
    uint64_t priority;
    struct rf_block *left, *right;
    bool freed;
};

/* Everything that starts before `at` goes left, the rest right. */
static void split(struct rf_block *tree, uint64_t at, struct rf_block **left, struct rf_block **right)
{
    while (tree) {
        if (tree->start < at) {
            *left = tree;
            left = &tree->right;
            tree = tree->right;
        } else {
            *right = tree;
            right = &tree->left;
            tree = tree->left;
        }
    }
    *left = *right = NULL;
}

/* Every block of `left` is before every block of `right`. */
static struct rf_block *join(struct rf_block *left, struct rf_block *right)
{
    struct rf_block *root, **place = &root;
    while (left && right) {
        if (left->priority > right->priority) {
            *place = left;
            place = &left->right;
            left = left->right;
        } else {
            *place = right;
            place = &right->left;
            right = right->left;
        }
    }
    *place = left ? left : right;
    return root;
}

/* Frees a whole tree, without recursion: turns it into a list by rotations as it goes. */
static void discard(struct rf_block *tree)
{
    while (tree) {
        struct rf_block *left = tree->left;
        if (left) {
            tree->left = left->right;
            left->right = tree;
            tree = left;
        } else {
            struct rf_block *right = tree->right;
            free(tree);
            tree = right;
        }
    }
}

void rf_blocks_free(struct rf_blocks *blocks)
{
    discard(blocks->root);
    blocks->root = NULL;
}

static struct rf_block *new_block(struct rf_blocks *blocks, uint64_t start, uint64_t end, bool freed)
{
    struct rf_block *block = rf_resize(NULL, sizeof *block);
    *block = (struct rf_block){ .start = start, .end = end, .freed = freed, .priority = rf_random_next(&blocks->random) };
    return block;
}

static struct rf_block *last_of(struct rf_block *tree)
{
    while (tree && tree->right)
        tree = tree->right;
    return tree;
}

void rf_blocks_set(struct rf_blocks *blocks, uint64_t start, uint64_t end, bool freed)
{
    struct rf_block *before, *covered, *after, *cut;
    if (!blocks->root)
        rf_random_seed(&blocks->random, 1);
    split(blocks->root, start, &before, &covered);
    split(covered, end, &covered, &after);
    /* What begins before the range and reaches into it, or beyond it, keeps its other parts. */
    struct rf_block *last = last_of(covered);
    if (last && last->end > end)
        after = join(new_block(blocks, end, last->end, last->freed), after);
    cut = last_of(before);
    if (cut && cut->end > start) {
        if (cut->end > end)
            after = join(new_block(blocks, end, cut->end, cut->freed), after);
        cut->end = start;
    }
    discard(covered);
    blocks->root = join(join(before, new_block(blocks, start, end, freed)), after);
}

bool rf_blocks_any(const struct rf_blocks *blocks, uint64_t start, uint64_t end, bool freed)
{
    while (start < end) {
        /* The last block that starts before `end`; go left over blocks in the other state. */
        const struct rf_block *found = NULL;
        for (const struct rf_block *block = blocks->root; block;) {
            if (block->start < end) {
                found = block;
                block = block->right;
            } else {
                block = block->left;
            }
        }
        if (!found || found->end <= start)
            return false;
        if (found->freed == freed)
            return true;
        end = found->start;
    }
    return false;
}
