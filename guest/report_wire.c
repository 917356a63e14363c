/* Records as text (report/record.h), and modules.
 *
 * Who calls has the reports' lock, so everything here is one thread's.
 */
#include <elf.h>
#include <link.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guest/embed.h"
#include "guest/report_parts.h"
#include "guest/system.h"

/* ---- memory of one report ---- */

#define CHUNK (256u << 10)

static struct chunk {
    struct chunk *next;
    size_t size, used;
} * chunks;

void *rf_scratch(size_t bytes)
{
    bytes = (bytes + 15) & ~(size_t)15;
    if (!chunks || chunks->size - chunks->used < bytes) {
        size_t size = bytes + sizeof *chunks > CHUNK ? (bytes + sizeof *chunks + 4095) & ~(size_t)4095 : CHUNK;
        struct chunk *chunk = rf_pages(size);
        *chunk = (struct chunk){ chunks, size, (sizeof *chunk + 15) & ~(size_t)15 };
        chunks = chunk;
    }
    void *block = (char *)chunks + chunks->used;
    chunks->used += bytes;
    return block;
}

void rf_scratch_free(void)
{
    while (chunks) {
        struct chunk *next = chunks->next;
        rf_pages_back(chunks, chunks->size);
        chunks = next;
    }
}

static void make_room(struct rf_wire *wire, size_t more)
{
    if (wire->cap - wire->length > more)
        return;
    size_t cap = wire->cap ? 2 * wire->cap : 64u << 10;
    while (cap - wire->length <= more)
        cap *= 2;
    char *text = rf_pages(cap);
    for (size_t i = 0; i < wire->length; i++)
        text[i] = wire->text[i];
    if (wire->cap)
        rf_pages_back(wire->text, wire->cap);
    wire->text = text;
    wire->cap = cap;
}

void rf_wire_free(struct rf_wire *wire)
{
    if (wire->cap)
        rf_pages_back(wire->text, wire->cap);
    *wire = (struct rf_wire){ 0 };
}

char *rf_wire_room(struct rf_wire *wire)
{
    make_room(wire, RF_WIRE_PIECE);
    return wire->text + wire->length;
}

void rf_wire_added(struct rf_wire *wire, size_t length)
{
    wire->length += length < RF_WIRE_PIECE ? length : RF_WIRE_PIECE - 1;
}

void rf_wire_text(struct rf_wire *wire, const char *text)
{
    for (; *text; text++) {
        make_room(wire, 8);
        unsigned char c = (unsigned char)*text;
        if (c < ' ' || c == '%' || c == 127) {
            wire->text[wire->length++] = '%';
            wire->text[wire->length++] = "0123456789abcdef"[c >> 4];
            wire->text[wire->length++] = "0123456789abcdef"[c & 15];
        } else {
            wire->text[wire->length++] = (char)c;
        }
    }
    make_room(wire, 1);
    wire->text[wire->length++] = '\n';
}

/* ---- modules ---- */

static struct rf_rec_module *modules;
static uint32_t module_count, module_cap;
static uint64_t list_changes,
    told_changes; /* how often the list of the loader had changed, now and when the reporter was told */

static char *copy_path(const char *path)
{
    size_t length = 0;
    while (path[length])
        length++;
    char *copy = rf_scratch(length + 1);
    for (size_t i = 0; i <= length; i++)
        copy[i] = path[i];
    return copy;
}

static const char *program_path(void)
{
    char *path = rf_scratch(4096);
    long length = RF_SYSCALL(SYS_readlink, "/proc/self/exe", path, 4095);
    static const char gone[] = " (deleted)";
    if (length < 0)
        return "";
    path[length] = 0;
    size_t tail = sizeof gone - 1;
    if ((size_t)length > tail) {
        bool same = true;
        for (size_t i = 0; i < tail; i++)
            same &= path[(size_t)length - tail + i] == gone[i];
        if (same)
            path[(size_t)length - tail] = 0;
    }
    return path;
}

/* The loader's name of a library may be relative to where the program was started. */
static char *whole_path(const char *name)
{
    const char *directory = rf_report_directory();
    if (name[0] == '/' || !directory[0])
        return copy_path(name);
    size_t size = 2;
    for (const char *p = directory; *p; p++)
        size++;
    for (const char *p = name; *p; p++)
        size++;
    char *path = rf_scratch(size);
    rf_format(path, size, "%s/%s", directory, name);
    return path;
}

static void read_build_id(struct rf_rec_module *module, const struct dl_phdr_info *info, const ElfW(Phdr) * header)
{
    const char *at = (const char *)(info->dlpi_addr + header->p_vaddr), *end = at + header->p_memsz;
    while (end - at >= (long)sizeof(ElfW(Nhdr))) {
        const ElfW(Nhdr) *note = (const void *)at;
        const char *name = at + sizeof *note;
        const unsigned char *id = (const unsigned char *)name + ((note->n_namesz + 3) & ~3u);
        if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && name[0] == 'G' && name[1] == 'N' && name[2] == 'U') {
            for (unsigned i = 0; i < note->n_descsz && 2 * i + 2 < sizeof module->build_id; i++)
                rf_format(module->build_id + 2 * i, 3, "%02x", id[i]);
            return;
        }
        at = (const char *)id + ((note->n_descsz + 3) & ~3u);
    }
}

static int look_at_module(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    (void)context;
    if (module_count == module_cap) {
        uint32_t cap = module_cap ? 2 * module_cap : 64;
        struct rf_rec_module *larger = rf_scratch(cap * sizeof *larger);
        for (uint32_t i = 0; i < module_count; i++)
            larger[i] = modules[i];
        modules = larger;
        module_cap = cap;
    }
    struct rf_rec_module *module = &modules[module_count];
    *module = (struct rf_rec_module){ .start = UINT64_MAX, .bias = info->dlpi_addr };
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uint64_t start = info->dlpi_addr + header->p_vaddr;
        if (header->p_type == PT_LOAD) {
            module->start = start < module->start ? start : module->start;
            module->end = start + header->p_memsz > module->end ? start + header->p_memsz : module->end;
        } else if (header->p_type == PT_NOTE && !module->build_id[0]) {
            read_build_id(module, info, header);
        }
    }
    if (module->start >= module->end)
        return 0;
    uintptr_t here = (uintptr_t)&look_at_module;
    module->runtime = here >= module->start && here < module->end;
    module->path = info->dlpi_name && info->dlpi_name[0] ? whole_path(info->dlpi_name) : NULL;
    if (!module->path)
        module->path = module_count == 0 ? copy_path(program_path()) : copy_path("[vdso]");
    list_changes = info->dlpi_adds + info->dlpi_subs;
    module_count++;
    return 0;
}

struct rf_rec_module *rf_modules_now(uint32_t *count)
{
    modules = NULL;
    module_count = module_cap = 0;
    dl_iterate_phdr(look_at_module, NULL);
    *count = module_count;
    return modules;
}

const struct rf_rec_module *rf_module_at(uintptr_t addr)
{
    for (uint32_t i = 0; i < module_count; i++)
        if (addr >= modules[i].start && addr < modules[i].end)
            return &modules[i];
    return NULL;
}

void rf_modules_forget(void)
{
    told_changes = 0;
}

void rf_modules_told(void)
{
    told_changes = list_changes;
}

/* ---- records ---- */

static void put_stack(struct rf_wire *wire, const struct rf_stack *stack)
{
    for (uint32_t i = 0; i < stack->count; i++)
        rf_wire_add(wire, "pc 0x%lx\n", (unsigned long)stack->pcs[i]);
    for (uint32_t i = 0; i < stack->count; i++) {
        const char *function, *file;
        uint32_t line;
        if (!rf_place_name(stack->pcs[i], &function, &file, &line))
            continue;
        rf_wire_add(wire, "named 0x%lx %u function ", (unsigned long)stack->pcs[i], line);
        rf_wire_text(wire, function);
        rf_wire_add(wire, "named 0x%lx %u file ", (unsigned long)stack->pcs[i], line);
        rf_wire_text(wire, file);
    }
}

static void put_modules(struct rf_wire *wire)
{
    if (told_changes && told_changes == list_changes)
        return;
    for (uint32_t i = 0; i < module_count; i++) {
        const struct rf_rec_module *module = &modules[i];
        rf_wire_add(wire, "module 0x%lx 0x%lx 0x%lx %d %s ", (unsigned long)module->start, (unsigned long)module->end,
                    (unsigned long)module->bias, module->runtime, module->build_id[0] ? module->build_id : "-");
        rf_wire_text(wire, module->path);
    }
}

void rf_wire_record(struct rf_wire *wire, const struct rf_record *record)
{
    static const char *const ids[] = {
#define RF_KIND(name, id, title, suppressed_by, rank, text) id,
#include "report/kinds.def"
#undef RF_KIND
    };
    static const char *const places[] = { "none", "heap", "freed", "global", "stack", "tls", "fd" };
    rf_wire_add(wire, "redflag %d report\nkind %s\ncertainty %s\n", RF_WIRE_VERSION, ids[record->kind],
                record->predicted ? "predicted" : "certain");
    put_modules(wire);
    for (uint32_t i = 0; i < record->access_count; i++) {
        const struct rf_rec_access *access = &record->accesses[i];
        rf_wire_add(wire, "access 0x%lx %lu %u %u %s\n", (unsigned long)access->addr, (unsigned long)access->size,
                    access->flags, access->thread, access->previous ? "before" : "now");
        for (uint32_t j = 0; j < access->held_count; j++)
            rf_wire_add(wire, "held %u %s\n", access->held[j].lock, access->held[j].read ? "read" : "write");
        put_stack(wire, &access->stack);
    }
    for (uint32_t i = 0; i < record->stack_count; i++) {
        rf_wire_add(wire, "stack\n");
        put_stack(wire, &record->stacks[i]);
    }
    const struct rf_rec_location *location = &record->location;
    if (location->kind != RF_AT_NOWHERE) {
        rf_wire_add(wire, "location %s 0x%lx %lu %u %d ", places[location->kind], (unsigned long)location->addr,
                    (unsigned long)location->size, location->thread, location->fd);
        rf_wire_text(wire, location->text);
        put_stack(wire, &location->stack);
    }
    for (uint32_t i = 0; i < record->lock_count; i++) {
        rf_wire_add(wire, "lock %u 0x%lx\ncreated\n", record->locks[i].number, (unsigned long)record->locks[i].addr);
        put_stack(wire, &record->locks[i].created);
        rf_wire_add(wire, "taken\n");
        put_stack(wire, &record->locks[i].taken);
    }
    for (uint32_t i = 0; i < record->step_count; i++) {
        rf_wire_add(wire, "step %u %u %u\nwanted\n", record->steps[i].held, record->steps[i].wanted,
                    record->steps[i].thread);
        put_stack(wire, &record->steps[i].wanted_at);
        rf_wire_add(wire, "before\n");
        put_stack(wire, &record->steps[i].held_at);
    }
    for (uint32_t i = 0; i < record->thread_count; i++) {
        const struct rf_rec_thread *thread = &record->threads[i];
        rf_wire_add(wire, "thread %u %u %d %u ", thread->number, thread->parent, thread->tid > 0 ? thread->tid : 0,
                    thread->flags);
        rf_wire_text(wire, thread->name);
        put_stack(wire, &thread->stack);
    }
    if (record->more)
        rf_wire_add(wire, "more %u\n", record->more);
    if (record->signal)
        rf_wire_add(wire, "signal %d\n", record->signal);
    rf_wire_add(wire, "end\n");
}

/* ---- without a reporter ---- */

static const char *who(uint32_t thread, char buffer[24])
{
    if (thread)
        rf_format(buffer, 24, "thread T%u", thread);
    else
        rf_format(buffer, 24, "main thread");
    return buffer;
}

static void say_stack(struct rf_wire *wire, const struct rf_stack *stack)
{
    for (uint32_t i = 0; i < stack->count; i++) {
        const struct rf_rec_module *module = rf_module_at(stack->pcs[i]);
        if (module)
            rf_wire_add(wire, "    #%u 0x%012lx (%s+0x%lx)\n", i, (unsigned long)stack->pcs[i], module->path,
                        (unsigned long)(stack->pcs[i] - module->bias));
        else
            rf_wire_add(wire, "    #%u 0x%012lx\n", i, (unsigned long)stack->pcs[i]);
    }
    rf_wire_add(wire, "\n");
}

void rf_record_say(const struct rf_record *record, int fd)
{
    static const char *const titles[] = {
#define RF_KIND(name, id, title, suppressed_by, rank, text) title,
#include "report/kinds.def"
#undef RF_KIND
    };
    char name[24];
    struct rf_wire wire = { 0 };
    rf_wire_add(&wire, "==================\nWARNING: redflag: %s%s (pid=%d)\n", record->predicted ? "predicted " : "",
                titles[record->kind], (int)RF_SYSCALL(SYS_getpid, 0));
    if (record->predicted)
        rf_wire_add(&wire, "  Not known to have happened in this execution; it %s.\n", RF_PREDICTION);
    for (uint32_t i = 0; i < record->stack_count; i++)
        say_stack(&wire, &record->stacks[i]);
    for (uint32_t i = 0; i < record->access_count; i++) {
        const struct rf_rec_access *access = &record->accesses[i];
        const char *what = access->flags & RF_RA_WRITE ? access->previous ? "Previous write" : "Write"
                           : access->previous          ? "Previous read"
                                                       : "Read";
        rf_wire_add(&wire, "  %s of size %lu at 0x%012lx by %s:\n", what, (unsigned long)access->size,
                    (unsigned long)access->addr, who(access->thread, name));
        say_stack(&wire, &access->stack);
    }
    for (uint32_t i = 0; i < record->step_count; i++) {
        rf_wire_add(&wire, "  Mutex M%u acquired here while holding mutex M%u in %s:\n", record->steps[i].wanted,
                    record->steps[i].held, who(record->steps[i].thread, name));
        say_stack(&wire, &record->steps[i].wanted_at);
    }
    if (record->location.stack.count) {
        rf_wire_add(&wire, "  Location is of size %lu at 0x%012lx, from:\n", (unsigned long)record->location.size,
                    (unsigned long)record->location.addr);
        say_stack(&wire, &record->location.stack);
    }
    for (uint32_t i = 0; i < record->lock_count; i++) {
        rf_wire_add(&wire, "  Mutex M%u (0x%012lx):\n", record->locks[i].number, (unsigned long)record->locks[i].addr);
        say_stack(&wire, record->locks[i].created.count ? &record->locks[i].created : &record->locks[i].taken);
    }
    for (uint32_t i = 0; i < record->thread_count; i++)
        if (!(record->threads[i].flags & RF_RT_MAIN)) {
            rf_wire_add(&wire, "  Thread T%u (tid=%d) created by %s at:\n", record->threads[i].number,
                        record->threads[i].tid, who(record->threads[i].parent, name));
            say_stack(&wire, &record->threads[i].stack);
        }
    rf_wire_add(&wire, "SUMMARY: redflag: %s\n==================\n", titles[record->kind]);
    for (size_t done = 0; done < wire.length;) {
        long wrote = RF_SYSCALL(SYS_write, fd, wire.text + done, wire.length - done);
        if (wrote <= 0 && wrote != -4 /* EINTR */)
            break;
        done += wrote > 0 ? (size_t)wrote : 0;
    }
    rf_wire_free(&wire);
}
