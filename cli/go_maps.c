/* Go's maps, src/runtime/map*.go: as soon as a bucket is known the histories of its elements are asked for, one of which is about to be
 * accessed; so they come while the bucket itself does, and not after it. Lines keep their numbers.
 */
#include <stdio.h>
#include <string.h>

#include "cli/go_fast.h"
#include "cli/go_text.h"
#include "go/layout.h"

/* The histories of eight elements of eight bytes are in three lines of memory, and where they were in three more. Those of larger elements
 * would be too many. */
/* clang-format off */
static const char function[] = "\nfunc %s(t *maptype, b *bmap) {\n"
                               "\tif raceenabled && t.elemsize <= 8 {\n"
                               "\t\telements := uintptr(unsafe.Pointer(b)) + dataOffset + bucketCnt*uintptr(t.keysize)\n"
                               "\t\tat := 2 * (elements & " TEXT(GO_ADDRESS_MASK) ")\n"
                               "\t\tlast := 2*bucketCnt*uintptr(t.elemsize) - 1\n"
                               "\t\tsys.Prefetch(" TEXT(GO_CELLS_AT) " + at)\n"
                               "\t\tsys.Prefetch(" TEXT(GO_CELLS_AT) " + at + last/2)\n"
                               "\t\tsys.Prefetch(" TEXT(GO_CELLS_AT) " + at + last)\n"
                               "\t\tsys.Prefetch(" TEXT(GO_NOTES_AT) " + at)\n"
                               "\t\tsys.Prefetch(" TEXT(GO_NOTES_AT) " + at + last/2)\n"
                               "\t\tsys.Prefetch(" TEXT(GO_NOTES_AT) " + at + last)\n"
                               "\t}\n}\n";
/* clang-format on */

/* Does this line, which ends at `end`, say which bucket it is? */
static bool names_bucket(const char *line, const char *end)
{
    static const char *const forms[] = { "b = (*bmap)(add(h.buckets, (hash&m)*uintptr(t.bucketsize)))",
                                         "b := (*bmap)(add(h.buckets, (hash&m)*uintptr(t.bucketsize)))",
                                         "b := (*bmap)(add(h.buckets, bucket*uintptr(t.bucketsize)))" };
    line += strspn(line, "\t");
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if ((size_t)(end - line) == strlen(forms[i]) && !strncmp(line, forms[i], strlen(forms[i])))
            return true;
    return false;
}

bool rf_go_fast_map(const char *source, FILE *out)
{
    static const char imports[] = "\t\"unsafe\"\n)\n", access[] = "\nfunc mapaccess1";
    const char *last_import = strstr(source, imports), *suffix = strstr(source, access);
    if (!last_import || !suffix || strstr(source, "internal/sys\""))
        return false;
    suffix += strlen(access);
    char name[64]; /* another one in each file of the package */
    snprintf(name, sizeof name, "racebucket%.*s", (int)strcspn(suffix, "("), suffix);
    for (const char *line = source, *end; *line; line = end) {
        end = line + strcspn(line, "\n");
        fwrite(line, 1, (size_t)(end - line), out);
        if (line == last_import)
            fputs("; \"runtime/internal/sys\"", out);
        else if (names_bucket(line, end))
            fprintf(out, "; %s(t, b)", name);
        end += *end == '\n';
        fputc('\n', out);
    }
    fprintf(out, function, name);
    return true;
}
