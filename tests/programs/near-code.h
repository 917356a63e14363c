// Where the code of a module in memory differs from its file.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct near_search {
    const void *inside; // of the module that is looked at
    int list;           // print each address, as the file has it
    long changed;
};

__attribute__((no_sanitize("thread"))) static int near_compare(struct dl_phdr_info *info, size_t size, void *argument)
{
    struct near_search *search = argument;
    const char *path = info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe";
    int mine = 0;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++)
        mine |= info->dlpi_phdr[i].p_type == PT_LOAD &&
                (uintptr_t)search->inside - (info->dlpi_addr + info->dlpi_phdr[i].p_vaddr) < info->dlpi_phdr[i].p_memsz;
    if (!mine)
        return 0;
    struct stat status;
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &status))
        abort();
    const unsigned char *file = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (file == MAP_FAILED)
        abort();
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type != PT_LOAD || !(header->p_flags & PF_X))
            continue;
        const unsigned char *code = (const unsigned char *)info->dlpi_addr + header->p_vaddr;
        for (size_t j = 0; j < header->p_filesz; j++)
            if (code[j] != file[header->p_offset + j]) {
                search->changed++;
                if (search->list)
                    printf("changed %lx\n", (unsigned long)(header->p_vaddr + j));
            }
    }
    munmap((void *)file, (size_t)status.st_size);
    close(fd);
    return 1;
}

// How many bytes of the code around `inside` were changed.
static inline long near_changed(const void *inside, int list)
{
    struct near_search search = { inside, list, 0 };
    if (!dl_iterate_phdr(near_compare, &search))
        abort();
    return search.changed;
}
