/* See sites/image.h. The file may be anything: what it says is checked before it is used. */
#include "sites/image.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE ((uint64_t)4096)
#define LARGEST ((uint64_t)1 << 36) /* of all addresses of a module */

static bool refuse(char error[256], const char *path, const char *why)
{
    snprintf(error, 256, "%.180s: %.60s", path, why);
    return false;
}

static bool read_at(int file, void *to, size_t size, uint64_t offset)
{
    return pread(file, to, size, (off_t)offset) == (ssize_t)size;
}

/* The addresses that its segments take; false: none, or nonsense. */
static bool span(const Elf64_Phdr *headers, unsigned count, uint64_t *low, uint64_t *high)
{
    *low = UINT64_MAX;
    *high = 0;
    for (unsigned i = 0; i < count; i++) {
        const Elf64_Phdr *p = &headers[i];
        if (p->p_type != PT_LOAD)
            continue;
        if (p->p_filesz > p->p_memsz || p->p_memsz > LARGEST || p->p_vaddr > UINT64_MAX / 2)
            return false;
        if (p->p_vaddr < *low)
            *low = p->p_vaddr & ~(PAGE - 1);
        if (p->p_vaddr + p->p_memsz > *high)
            *high = p->p_vaddr + p->p_memsz;
    }
    return *low < *high && *high - *low <= LARGEST;
}

/* The note of the linker, in a segment of notes. */
static void find_build_id(struct rf_image_file *file, const Elf64_Phdr *p)
{
    uintptr_t at = file->image.base + p->p_vaddr;
    if (p->p_type != PT_NOTE || !rf_image_has(&file->image, at, p->p_filesz))
        return;
    for (uint64_t offset = 0; p->p_filesz - offset >= sizeof(Elf64_Nhdr);) {
        const Elf64_Nhdr *note = (const Elf64_Nhdr *)(at + offset);
        uint64_t align = p->p_align == 8 ? 7 : 3, name = offset + sizeof *note;
        uint64_t bits = name + (((uint64_t)note->n_namesz + align) & ~align);
        uint64_t next = bits + (((uint64_t)note->n_descsz + align) & ~align);
        if (next > p->p_filesz)
            return;
        if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && !memcmp((const char *)at + name, "GNU", 4) &&
            2 * note->n_descsz < sizeof file->build_id) {
            for (uint32_t i = 0; i < note->n_descsz; i++)
                sprintf(file->build_id + 2 * (size_t)i, "%02x", ((const uint8_t *)at)[bits + i]);
            return;
        }
        offset = next;
    }
}

static bool load(struct rf_image_file *file, int fd, const Elf64_Ehdr *header, const char *path, char error[256])
{
    Elf64_Phdr *headers = calloc(header->e_phnum, sizeof *headers);
    uint64_t low, high;
    if (!headers || !read_at(fd, headers, header->e_phnum * sizeof *headers, header->e_phoff) ||
        !span(headers, header->e_phnum, &low, &high)) {
        free(headers);
        return refuse(error, path, "its segments make no sense");
    }
    /* One page more, of zeros: what is read beyond a damaged table ends there. */
    file->size = (size_t)(((high - low + PAGE - 1) & ~(PAGE - 1)) + PAGE);
    file->memory = mmap(NULL, file->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    file->image = (struct rf_image){ (uintptr_t)file->memory - low, (uintptr_t)file->memory,
                                     (uintptr_t)file->memory + (high - low), headers, header->e_phnum };
    if (file->memory == MAP_FAILED) {
        file->memory = NULL;
        return refuse(error, path, "too large to look at");
    }
    for (unsigned i = 0; i < header->e_phnum; i++) {
        const Elf64_Phdr *p = &headers[i];
        if (p->p_type == PT_LOAD && !read_at(fd, (void *)(file->image.base + p->p_vaddr), p->p_filesz, p->p_offset))
            return refuse(error, path, "ends before its last segment");
    }
    for (unsigned i = 0; i < header->e_phnum && !file->build_id[0]; i++)
        find_build_id(file, &headers[i]);
    return true;
}

bool rf_image_read(struct rf_image_file *file, const char *path, char error[256])
{
    struct stat status;
    Elf64_Ehdr header;
    *file = (struct rf_image_file){ .memory = NULL };
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return refuse(error, path, strerror(errno));
    bool done = false;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
        refuse(error, path, "not a file");
    else if (!read_at(fd, &header, sizeof header, 0) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
             header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64 ||
             (header.e_type != ET_EXEC && header.e_type != ET_DYN) || header.e_phentsize != sizeof(Elf64_Phdr))
        refuse(error, path, "not a program or library for x86-64 Linux");
    else
        done = load(file, fd, &header, path, error);
    close(fd);
    if (!done)
        rf_image_free(file);
    return done;
}

void rf_image_free(struct rf_image_file *file)
{
    if (file->memory)
        munmap(file->memory, file->size);
    free((void *)(uintptr_t)file->image.headers);
    *file = (struct rf_image_file){ .memory = NULL };
}
