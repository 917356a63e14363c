/* See cli/program.h. Every offset in the file is checked before it is used: the file may be anything. */
#include "cli/program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "cli/places.h"
#include "trace/grow.h"

struct image {
    const unsigned char *bytes;
    size_t size;
};

static const void *at(const struct image *image, uint64_t offset, uint64_t bytes)
{
    return offset <= image->size && bytes <= image->size - offset ? image->bytes + offset : NULL;
}

static const char *text_at(const struct image *image, uint64_t offset)
{
    return offset < image->size && memchr(image->bytes + offset, 0, image->size - offset)
               ? (const char *)image->bytes + offset
               : "";
}

static const Elf64_Phdr *segment(const struct image *image, unsigned i)
{
    const Elf64_Ehdr *header = at(image, 0, sizeof *header);
    return i < header->e_phnum ? at(image, header->e_phoff + (uint64_t)i * sizeof(Elf64_Phdr), sizeof(Elf64_Phdr)) : NULL;
}

/* Where in the file an address lies; past the end if nowhere. */
static uint64_t offset_of(const struct image *image, uint64_t address)
{
    const Elf64_Phdr *p;
    for (unsigned i = 0; (p = segment(image, i)); i++)
        if (p->p_type == PT_LOAD && address >= p->p_vaddr && address - p->p_vaddr < p->p_filesz)
            return p->p_offset + (address - p->p_vaddr);
    return UINT64_MAX;
}

static void symbol(struct rf_program *program, const char *name, const Elf64_Sym *s)
{
    if (strncmp(name, "__tsan_", 7))
        return;
    if (s->st_shndx == SHN_UNDEF)
        program->hooks = true;
    else if (!strcmp(name, "__tsan_init"))
        program->own_runtime = program->hooks = true;
}

/* .symtab too: a runtime that is linked in need not be exported. */
static void read_symbols(struct rf_program *program, const struct image *image)
{
    const Elf64_Ehdr *header = at(image, 0, sizeof *header);
    for (unsigned i = 0; i < header->e_shnum; i++) {
        const Elf64_Shdr *section = at(image, header->e_shoff + (uint64_t)i * sizeof *section, sizeof *section);
        if (!section || (section->sh_type != SHT_SYMTAB && section->sh_type != SHT_DYNSYM))
            continue;
        const Elf64_Shdr *names = at(image, header->e_shoff + (uint64_t)section->sh_link * sizeof *names, sizeof *names);
        const Elf64_Sym *symbols = at(image, section->sh_offset, section->sh_size);
        if (!names || !symbols)
            continue;
        for (uint64_t s = 0; s < section->sh_size / sizeof *symbols; s++)
            symbol(program, text_at(image, names->sh_offset + symbols[s].st_name), &symbols[s]);
    }
}

static void read_dynamic(struct rf_program *program, const struct image *image, const Elf64_Phdr *segment)
{
    const Elf64_Dyn *dynamic = at(image, segment->p_offset, segment->p_filesz);
    size_t count = dynamic ? segment->p_filesz / sizeof *dynamic : 0;
    uint64_t strings = UINT64_MAX;
    bool runpath = false;
    for (size_t i = 0; i < count && dynamic[i].d_tag != DT_NULL; i++) {
        if (dynamic[i].d_tag == DT_STRTAB)
            strings = offset_of(image, dynamic[i].d_un.d_ptr);
        runpath |= dynamic[i].d_tag == DT_RUNPATH;
    }
    if (strings == UINT64_MAX)
        return;
    for (size_t i = 0; i < count && dynamic[i].d_tag != DT_NULL; i++) {
        const char *text = text_at(image, strings + dynamic[i].d_un.d_val);
        if (dynamic[i].d_tag == DT_NEEDED) {
            if (!strncmp(text, "libtsan.so.", 11))
                snprintf(program->needs_tsan, sizeof program->needs_tsan, "%s", text);
            program->needs_ours |= !strcmp(text, RF_RT_NAME);
        } else if (dynamic[i].d_tag == DT_RPATH && !runpath) {
            snprintf(program->rpath, sizeof program->rpath, "%s", text);
        }
    }
}

void rf_program_read(struct rf_program *program, const char *path)
{
    *program = (struct rf_program){ .kind = RF_PROGRAM_UNREADABLE };
    int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (file < 0)
        return;
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
        close(file);
        errno = EACCES;
        return;
    }
    bool set_id = ((status.st_mode & S_ISUID) && status.st_uid != getuid()) ||
                  ((status.st_mode & S_ISGID) && (status.st_mode & S_IXGRP) && status.st_gid != getgid());
    program->privileged = set_id || fgetxattr(file, "security.capability", NULL, 0) > 0;
    struct image image = { NULL, (size_t)status.st_size };
    void *bytes = image.size ? mmap(NULL, image.size, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
    close(file);
    program->kind = RF_PROGRAM_FOREIGN;
    if (bytes == MAP_FAILED)
        return;
    image.bytes = bytes;
    const Elf64_Ehdr *header = at(&image, 0, sizeof *header);
    if (image.size >= 2 && !memcmp(image.bytes, "#!", 2)) {
        program->kind = RF_PROGRAM_SCRIPT;
    } else if (header && !memcmp(header->e_ident, ELFMAG, SELFMAG) && header->e_ident[EI_CLASS] == ELFCLASS64 &&
               header->e_machine == EM_X86_64 && (header->e_type == ET_EXEC || header->e_type == ET_DYN)) {
        program->kind = RF_PROGRAM_ELF;
        const Elf64_Phdr *p;
        for (unsigned i = 0; (p = segment(&image, i)); i++) {
            if (p->p_type == PT_DYNAMIC)
                read_dynamic(program, &image, p);
            program->dynamic |= p->p_type == PT_INTERP;
        }
        read_symbols(program, &image);
    }
    munmap(bytes, image.size);
}

bool rf_program_find(const char *name, char *path, unsigned long size)
{
    if (strchr(name, '/')) {
        snprintf(path, size, "%s", name);
        return access(path, F_OK) == 0;
    }
    const char *directories = getenv("PATH");
    if (!directories)
        directories = "/usr/local/bin:/usr/bin:/bin";
    for (;;) {
        size_t length = strcspn(directories, ":");
        struct stat status;
        snprintf(path, size, "%.*s%s%s", (int)length, directories, length ? "/" : "", name);
        if (stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0)
            return true;
        if (!directories[length])
            break;
        directories += length + 1;
    }
    errno = ENOENT;
    return false;
}

/* Does another library than ours lie under the name in one of the directories of a DT_RPATH, which come before LD_LIBRARY_PATH? */
static bool hidden_by(const char *rpath, const char *program, const char *name, const char *ours, char *found)
{
    struct stat mine, other;
    char directory[PATH_MAX], full[2 * PATH_MAX];
    if (!realpath(program, directory) || stat(ours, &mine) != 0)
        return false;
    *strrchr(directory, '/') = 0;
    while (*rpath) {
        size_t length = strcspn(rpath, ":");
        size_t origin = !strncmp(rpath, "$ORIGIN", 7) ? 7 : !strncmp(rpath, "${ORIGIN}", 9) ? 9 : 0;
        snprintf(full, sizeof full, "%s%.*s/%s", origin ? directory : "", (int)(length - origin), rpath + origin, name);
        if (stat(full, &other) == 0 && (other.st_ino != mine.st_ino || other.st_dev != mine.st_dev)) {
            snprintf(found, PATH_MAX, "%.*s", PATH_MAX - 1, full);
            return true;
        }
        rpath += length + (rpath[length] == ':');
    }
    return false;
}

/* The loader is asked, as ldd does. */
void rf_program_libraries(const char *path, const struct rf_places *places, void (*visit)(void *, const char *, const char *),
                          void *context)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return;
    pid_t child = fork();
    if (child == 0) {
        setenv("LD_TRACE_LOADED_OBJECTS", "1", 1);
        setenv("LD_LIBRARY_PATH", places->tsan, 0);
        dup2(ends[1], 1);
        execl(path, path, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    FILE *list = fdopen(ends[0], "r");
    char *line = NULL;
    size_t size = 0;
    while (list && getline(&line, &size, list) > 0) { /* \tNAME => PATH (0x...) */
        char *name = line + strspn(line, " \t"), *end = strstr(name, " (0x"), *arrow = strstr(name, " => ");
        if (end)
            *end = 0;
        else
            name[strcspn(name, "\n")] = 0;
        if (arrow)
            *arrow = 0;
        visit(context, name, arrow && end ? arrow + 4 : name);
    }
    free(line);
    if (list)
        fclose(list);
    if (child > 0)
        waitpid(child, NULL, 0);
}

static void is_a_runtime(void *found, const char *name, const char *path)
{
    (void)path;
    if (!strcmp(name, "libtsan.so.2") || !strcmp(name, RF_RT_NAME))
        *(bool *)found = true;
}

/* Would the loader bring a runtime along with some library of the program's? */
static bool comes_with_a_library(const char *path, const struct rf_places *places)
{
    bool found = false;
    rf_program_libraries(path, places, is_a_runtime, &found);
    return found;
}

bool rf_program_watchable(const struct rf_program *program, const char *path, const struct rf_places *places, char *reason,
                          size_t size)
{
    char other[PATH_MAX];
    reason[0] = 0;
    if (program->kind == RF_PROGRAM_SCRIPT)
        return true;
    if (program->kind == RF_PROGRAM_UNREADABLE)
        snprintf(reason, size, "cannot be read");
    else if (program->kind == RF_PROGRAM_FOREIGN)
        snprintf(reason, size, "not a program for x86-64 Linux (--force runs it all the same)");
    else if (!program->dynamic)
        snprintf(reason, size, "linked statically, so the runtime has no way in; link it without -static");
    else if (program->own_runtime)
        snprintf(reason, size,
                 "a ThreadSanitizer runtime is linked into it, as clang and -static-libtsan do; link it with `redflag cc` "
                 "(REDFLAG_CC=clang), or with -fno-sanitize-link-runtime and %s",
                 places->library);
    else if (*program->needs_tsan && strcmp(program->needs_tsan, "libtsan.so.2"))
        snprintf(reason, size, "made for %s, of another gcc; link it again with gcc 12 or `redflag cc`", program->needs_tsan);
    else if (*program->needs_tsan && program->privileged)
        snprintf(reason, size,
                 "set-user-ID, set-group-ID or with capabilities, for which the loader ignores LD_LIBRARY_PATH; run a copy "
                 "without them, or link it with `redflag cc`");
    else if (*program->needs_tsan && hidden_by(program->rpath, path, program->needs_tsan, places->library, other))
        snprintf(reason, size,
                 "its DT_RPATH finds %s before ours; link it without that path, or take that away (`chrpath -d`, or `patchelf "
                 "--remove-rpath`)",
                 other);
    else if (!*program->needs_tsan && !program->needs_ours && !comes_with_a_library(path, places))
        snprintf(reason, size, "%s: build it with `redflag cc`, or with `gcc -fsanitize=thread`",
                 program->hooks ? "instrumented, but linked with no runtime" : "not instrumented, so no access would be seen");
    else
        return true;
    return false;
}

void rf_put_first(const char *variable, const char *directory)
{
    const char *old = getenv(variable);
    char *list = rf_zeroed(strlen(directory) + (old ? strlen(old) : 0) + 2, 1);
    sprintf(list, "%s%s%s", directory, old && *old ? ":" : "", old && *old ? old : "");
    setenv(variable, list, 1);
    free(list);
}
