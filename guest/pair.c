/* See guest/pair.h. */
#include "guest/pair.h"

#include <elf.h>
#include <sys/syscall.h>

#include "guest/memory.h"
#include "guest/system.h"

static const char *wanted[2] = { "", "" };

void rf_pair_set(const char *first, const char *second)
{
    wanted[0] = first;
    wanted[1] = second;
}

bool rf_pair_is_set(void)
{
    return wanted[0][0] && wanted[1][0];
}

void rf_pair_settings(const char *text, void (*take)(void *context, const char *name, const char *value), void *context)
{
    size_t length = 0;
    while (text[length])
        length++;
    char *copy = rf_pages(length + 1), *at = copy;
    __builtin_memcpy(copy, text, length + 1);
    while (*at) {
        char *name = at, *value = "";
        for (; *at && *at != ';'; at++) {
            if (*at == '=') {
                *at = 0;
                value = at + 1;
            }
        }
        if (*at)
            *at++ = 0;
        if (*name)
            take(context, name, value);
    }
}

/* -- the calls of a module ----------------------------------------------------------------------------------------------------------------------- */

static const char *base_name(const char *path)
{
    const char *base = path;
    for (; *path; path++)
        if (*path == '/')
            base = path + 1;
    return base;
}

/* The module's own name in the form of guest/pair.h, 1. */
void rf_pair_module_id(const struct rf_image *image, const char *path, char id[512])
{
    static const char digits[] = "0123456789abcdef";
    for (unsigned i = 0; i < image->header_count; i++) {
        const ElfW(Phdr) *header = &image->headers[i];
        uintptr_t at = image->base + header->p_vaddr, end = at + header->p_filesz;
        if (header->p_type != PT_NOTE || !rf_image_has(image, at, header->p_filesz))
            continue;
        uintptr_t align = header->p_align == 8 ? 7 : 3;
        while (at < end && end - at >= sizeof(ElfW(Nhdr)) + 4) {
            const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)at;
            const uint8_t *bits = (const uint8_t *)at + sizeof *note + ((note->n_namesz + align) & ~align);
            if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && note->n_descsz < 128 &&
                __builtin_memcmp(note + 1, "GNU", 4) == 0) {
                for (unsigned b = 0; b < note->n_descsz; b++) {
                    id[2 * b] = digits[bits[b] >> 4];
                    id[2 * b + 1] = digits[bits[b] & 15];
                }
                id[2 * note->n_descsz] = 0;
                return;
            }
            at = (uintptr_t)bits + ((note->n_descsz + align) & ~align);
        }
    }
    char program[1024];
    if (!path[0]) {
        long length = RF_SYSCALL(SYS_readlink, "/proc/self/exe", program, sizeof program - 1);
        program[length > 0 ? length : 0] = 0;
        path = program;
    }
    rf_format(id, 512, "/%s", base_name(path));
}

static const char *behind(const char *text, const char *word)
{
    while (*word && *text == *word)
        text++, word++;
    return *word ? NULL : text;
}

static void offsets_next(struct rf_pair_offsets *offsets)
{
    offsets->next = UINT64_MAX;
    if (*offsets->text != '+')
        return;
    offsets->next = 0;
    for (offsets->text++; *offsets->text && *offsets->text != '+' && *offsets->text != ' '; offsets->text++) {
        char c = *offsets->text;
        offsets->next = offsets->next << 4 | (uint64_t)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
    }
}

static struct rf_pair_offsets offsets_of(const char *text, const char *id)
{
    while (*text) {
        const char *rest = behind(text, id);
        if (rest && *rest == '+') {
            struct rf_pair_offsets offsets = { rest, 0 };
            offsets_next(&offsets);
            return offsets;
        }
        while (*text && *text++ != ' ')
            ;
    }
    return (struct rf_pair_offsets){ text, UINT64_MAX };
}

/* Calls come in ascending order, and so do offsets. */
static bool offsets_have(struct rf_pair_offsets *offsets, uint64_t offset)
{
    while (offsets->next < offset)
        offsets_next(offsets);
    return offsets->next == offset;
}

struct rf_pair_offsets rf_pair_offsets(const char *text, const struct rf_image *image, const char *name)
{
    char id[512];
    rf_pair_module_id(image, name, id);
    return offsets_of(text, id);
}

bool rf_pair_offsets_have(struct rf_pair_offsets *offsets, const struct rf_image *image, const struct rf_hook_call *call)
{
    return offsets_have(offsets, (uintptr_t)call->at + call->length - 1 - image->base);
}

void rf_pair_module(struct rf_pair_module *module, const struct rf_image *image, const char *name)
{
    rf_pair_module_id(image, name, module->id);
    for (unsigned i = 0; i < 2; i++)
        module->offsets[i] = offsets_of(wanted[i], module->id);
}

unsigned rf_pair_role(struct rf_pair_module *module, const struct rf_image *image, const struct rf_hook_call *call)
{
    uint64_t offset = (uintptr_t)call->at + call->length - 1 - image->base;
    return (offsets_have(&module->offsets[0], offset) ? RF_PAIR_FIRST : 0u) |
           (offsets_have(&module->offsets[1], offset) ? RF_PAIR_SECOND : 0u);
}
