/* Search trees, built, walked and freed: small blocks of the heap, pointers, recursion. */
#include "bench/kernels/kernel.h"

enum { NODES = SCALED(150000), ROUNDS = 3 };

struct node {
    struct node *left, *right;
    uint64_t key;
};

static struct node *insert(struct node *node, uint64_t key)
{
    if (!node) {
        node = malloc(sizeof *node);
        *node = (struct node){ NULL, NULL, key };
    } else if (key < node->key) {
        node->left = insert(node->left, key);
    } else {
        node->right = insert(node->right, key);
    }
    return node;
}

static uint64_t sum(const struct node *node)
{
    return node ? node->key + sum(node->left) + sum(node->right) : 0;
}

static void drop(struct node *node)
{
    if (!node)
        return;
    drop(node->left);
    drop(node->right);
    free(node);
}

static uint64_t results[THREADS][8];

static void *part(void *argument)
{
    uint64_t seed = 7 + (uint64_t)(intptr_t)argument;
    for (int round = 0; round < ROUNDS; round++) {
        struct node *root = NULL;
        for (int i = 0; i < NODES; i++)
            root = insert(root, random_next(&seed));
        results[(intptr_t)argument][0] += sum(root);
        drop(root);
    }
    return NULL;
}

int main(void)
{
    run_threads(part);
    printf("%llu\n", (unsigned long long)(results[0][0] + results[1][0]));
}
