/* generate SEED: a random program whose accesses are like those of real ones: fields, elements, parts of words, in loops of every shape, with
 * functions that synchronise and others that do not. tests/cli/plugin.sh builds it with and without gcc's plugin (plugin/). */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t state;
static int depth, loops;
static bool ends_inside; /* the innermost loop: what goes on with its next round would never leave it */

static unsigned pick(unsigned count)
{
    state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (unsigned)(state >> 33) % count;
}

static void indent(void)
{
    printf("%*s", 4 * (depth + 1), "");
}

/* An index that stays small: pointers point to the middle of the arena. */
static void print_index(void)
{
    static const char *const fixed[] = { "0", "1", "2", "3", "7", "k", "k + 1", "n - 1", "u", "u + 1u", "x % 5" };
    static const char *const moving[] = {
        "i%d",     "i%d",          "i%d",       "i%d + 1", "(int)i%d - 1", "(long)n - i%d", "(long)n - (long)i%d + 1",
        "2 * i%d", "n - (int)i%d", "(i%d & 3)", "k + i%d", "u + i%d",      "i%d * k"
    };
    if (!loops || pick(3) == 0)
        printf("%s", fixed[pick(sizeof fixed / sizeof *fixed)]);
    else
        printf(moving[pick(sizeof moving / sizeof *moving)], pick((unsigned)loops)); /* NOLINT: all of them have one %d */
}

static void print_place(void)
{
    static const char *const elements[][2] = { { "b[", "]" },      { "b[", "]" },          { "h[", "]" },
                                               { "w[", "]" },      { "w[", "]" },          { "d[", "]" },
                                               { "c[", "]" },      { "s->h[(", ") & 7]" }, { "s->i[(", ") & 3]" },
                                               { "s[", "].e" },    { "s[", "].f" },        { "s[", "].g" },
                                               { "s[", "].in.b" }, { "s[", "].i[2]" } };
    static const char *const fields[] = { "s->e",    "s->f",    "s->g",    "s->h[1]", "s->h[2]", "s->h[3]",
                                          "s->in.a", "s->in.b", "s->in.c", "s->in.d", "b[0]",    "b[1]",
                                          "b[2]",    "b[3]",    "w[4]",    "w[5]" };
    if (pick(2)) {
        printf("%s", fields[pick(sizeof fields / sizeof *fields)]);
        return;
    }
    unsigned which = pick(sizeof elements / sizeof *elements);
    printf("%s", elements[which][0]);
    print_index();
    printf("%s", elements[which][1]);
}

static void print_statements(unsigned most);
static void print_block(unsigned most);

static void print_loop(void)
{
    static const char *const heads[] = {
        "for (int i%1$d = 0; i%1$d < n; i%1$d++)",
        "for (int i%1$d = 0; i%1$d < 6; i%1$d++)",
        "for (int i%1$d = n; i%1$d >= 0; i%1$d--)",
        "for (unsigned i%1$d = 0; i%1$d != u; i%1$d++)",
        "for (long i%1$d = k; i%1$d < n; i%1$d += 2)",
        "for (unsigned char i%1$d = 3; i%1$d; i%1$d--)",
        "for (int i%1$d = 0; i%1$d < n && x %% 7; i%1$d++)",
        "for (int i%1$d = 1; i%1$d <= k; i%1$d++)",
        "for (int i%1$d = 0;; i%1$d++)", /* left in its midst */
        "for (int i%1$d = 0;; i%1$d++)",
        "int i%1$d = 0; do",
        "long i%1$d = 0; do",
    };
    static const char *const ends[] = { "if (i%1$d >= n) break;", "if (i%1$d == 5) break;", "while (++i%1$d < n - 9);",
                                        "while (++i%1$d < k - 4);" };
    if (loops == 3)
        return;
    unsigned which = pick(sizeof heads / sizeof *heads);
    indent();
    printf("{ ");
    printf(heads[which], loops); /* NOLINT */
    printf("\n");
    indent();
    printf("{\n");
    bool outer = ends_inside;
    ends_inside = which == 8 || which == 9;
    loops++;
    depth++;
    print_statements(3);
    if (ends_inside) {
        indent();
        printf(ends[which - 8], loops - 1); /* NOLINT */
        printf("\n");
        print_statements(3);
    }
    depth--;
    loops--;
    ends_inside = outer;
    indent();
    printf("}");
    if (which >= 10)
        printf(ends[which - 8], loops); /* NOLINT */
    printf(" }\n");
}

static void print_branch(void)
{
    indent();
    if (pick(2)) {
        printf("if (x & 2)\n");
    } else {
        printf("if (");
        print_place();
        printf(" > 77)\n");
    }
    print_block(2);
    if (pick(2)) {
        indent();
        printf("else\n");
        print_block(2);
    }
}

static void print_call(void)
{
    static const char *const calls[] = { "synchronise();",    "x += sum(b, n);",
                                         "clear(h, k);",      "if (x == 12345) synchronise();",
                                         "x += unknown;",     "__asm__ volatile(\"\" ::: \"memory\");",
                                         "memcpy(w, d, 16);", "x ^= noisy(x);" };
    indent();
    printf("%s\n", calls[pick(sizeof calls / sizeof *calls)]);
}

static void print_access(void)
{
    static const char *const after[] = { ";", " * 3;", " + k;" };
    indent();
    switch (pick(6)) {
    case 0:
        print_place();
        printf(" = x;\n");
        break;
    case 1:
        print_place();
        printf(" += 3;\n");
        break;
    case 2: /* at any address */
        printf("{ uint%d_t v; memcpy(&v, b + ", pick(2) ? 32 : 64);
        print_index();
        printf(", sizeof v); x += v; }\n");
        break;
    case 3: /* side by side */
        printf("x += b[4] + b[5] * 3 + b[6] + b[7]; w[2] = x, w[3] = k;\n");
        break;
    default:
        printf("x += ");
        print_place();
        printf("%s\n", after[pick(3)]);
    }
}

static void print_statement(void)
{
    unsigned what = depth < 5 ? pick(20) : pick(13);
    if (what < 12) {
        print_access();
    } else if (what < 13) {
        print_call();
    } else if (what < 17) {
        print_loop();
    } else if (what < 19 || !loops) {
        print_branch();
    } else {
        indent();
        printf("if (x %% 11 == 3) %s;\n", pick(2) || ends_inside ? "break" : "continue");
    }
}

static void print_statements(unsigned most)
{
    for (unsigned i = 1 + pick(most); i; i--)
        print_statement();
}

static void print_block(unsigned most)
{
    indent();
    printf("{\n");
    depth++;
    print_statements(most);
    depth--;
    indent();
    printf("}\n");
}

int main(int argc, char **argv)
{
    state = argc > 1 ? strtoull(argv[1], NULL, 10) * UINT64_C(0x9e3779b97f4a7c15) + 1 : 1;
    unsigned functions = 3 + pick(4);
    printf("#include \"tests/plugin/arena.h\"\n\n"
           "static __attribute__((noinline)) uint64_t sum(const uint8_t *b, int n)\n"
           "{\n    uint64_t all = 0;\n    for (int i = 0; i < n; i++)\n        all += b[i];\n    return all;\n}\n\n"
           "static __attribute__((noinline)) void clear(uint16_t *h, int k)\n"
           "{\n    for (int i = k; i > 0; i--)\n        h[i] = 0;\n}\n\n"
           "static __attribute__((noinline)) uint64_t noisy(uint64_t x)\n"
           "{\n    if (x & 1)\n        synchronise();\n    return x + 1;\n}\n\n");
    for (unsigned i = 0; i < functions; i++) {
        printf(
            "__attribute__((noinline)) static uint64_t part%u(struct item *s, int n, int k, unsigned u, uint8_t *b, uint16_t *h, uint32_t *w, uint64_t *d,\n"
            "                                                char *c)\n{\n    uint64_t x = (uint64_t)n;\n",
            i);
        for (unsigned statements = 6 + pick(8); statements; statements--)
            print_statement();
        printf("    return x;\n}\n\n");
    }
    printf("int main(void)\n{\n");
    for (unsigned i = 0; i < functions; i++)
        for (unsigned call = 0; call < 3; call++)
            printf(
                "    say(part%u((struct item *)(ARENA + 8192), %u, %u, %u, ARENA + %u, (uint16_t *)(ARENA + %u), (uint32_t *)(ARENA + %u),\n"
                "              (uint64_t *)(ARENA + %u), (char *)ARENA + %u));\n    synchronise();\n",
                i, 1 + pick(20), 1 + pick(9), pick(30), 16384 + pick(64), 24576 + 2 * pick(20), 32768 + 4 * pick(20),
                pick(2) ? 33000 : 40960 + 8 * pick(8), 49152 + pick(64));
    printf("}\n");
}
