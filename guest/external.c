/* Objects of libraries that are not instrumented themselves: __tsan_external_*.
 *
 * 1. A tag is a kind of object. It lives for ever; there are few.
 * 2. The tag of an object is remembered by the object's address, so that a report can name it. The last one counts; one lock, held by
 *    busy threads.
 */
#include "guest/annotations.h"
#include "guest/atomics.h"
#include "guest/intercept.h"
#include "guest/memory.h"
#include "guest/spin.h"
#include "guest/text.h"

#define PC ((uintptr_t)__builtin_return_address(0))

struct tag {
    char *type, *header;
    struct tag *next;
};

struct object {
    uintptr_t addr; /* 0: free */
    const struct tag *tag;
};

static struct {
    uint32_t lock;
    struct tag *tags;
    struct object *objects; /* open addressing; cap is a power of two, at most half of it is used */
    uint32_t count, cap;
} external;

static char *copy_text(const char *text)
{
    size_t size = 1;
    while (text[size - 1])
        size++;
    char *copy = rf_take(size);
    memcpy(copy, text, size);
    return copy;
}

static struct object *place_of(uintptr_t addr)
{
    uint32_t i = (uint32_t)((addr >> 3) * 0x9e3779b97f4a7c15ull >> 32) & (external.cap - 1);
    while (external.objects[i].addr && external.objects[i].addr != addr)
        i = (i + 1) & (external.cap - 1);
    return &external.objects[i];
}

static void assign(uintptr_t addr, const struct tag *tag)
{
    if (2 * external.count >= external.cap) {
        struct object *old = external.objects;
        uint32_t old_cap = external.cap;
        external.cap = old_cap ? 2 * old_cap : 256;
        external.objects = rf_take(external.cap * sizeof *old);
        for (uint32_t i = 0; i < old_cap; i++)
            if (old[i].addr)
                *place_of(old[i].addr) = old[i];
        rf_give(old, old_cap * sizeof *old);
    }
    struct object *object = place_of(addr);
    external.count += !object->addr;
    *object = (struct object){ addr, tag };
}

static void remember(struct rf_self *self, uintptr_t addr, const struct tag *tag)
{
    if (!addr || !tag)
        return;
    rf_busy_begin(self);
    rf_spin_lock(&external.lock);
    assign(addr, tag);
    rf_spin_unlock(&external.lock);
    rf_busy_end(self);
}

const char *rf_external_type(struct rf_self *self, uintptr_t addr, const char **header)
{
    const struct tag *tag = NULL;
    rf_busy_begin(self);
    rf_spin_lock(&external.lock);
    if (external.cap)
        tag = place_of(addr)->tag;
    rf_spin_unlock(&external.lock);
    rf_busy_end(self);
    if (header)
        *header = tag ? tag->header : NULL;
    return tag ? tag->type : NULL;
}

RF_EXPORT void *__tsan_external_register_tag(const char *type);
RF_EXPORT void __tsan_external_register_header(void *tag, const char *header);
RF_EXPORT void __tsan_external_assign_tag(void *addr, void *tag);
RF_EXPORT void __tsan_external_read(void *addr, void *caller, void *tag);
RF_EXPORT void __tsan_external_write(void *addr, void *caller, void *tag);

void *__tsan_external_register_tag(const char *type)
{
    struct rf_self *self = rf_atomic_self();
    if (!self)
        return NULL;
    rf_busy_begin(self);
    rf_spin_lock(&external.lock);
    struct tag *tag = external.tags;
    while (tag && !rf_text_same(tag->type, type))
        tag = tag->next;
    if (!tag) {
        tag = rf_take(sizeof *tag);
        tag->type = copy_text(type);
        tag->next = external.tags;
        external.tags = tag;
    }
    rf_spin_unlock(&external.lock);
    rf_busy_end(self);
    return tag;
}

/* Set once, as a rule; the text of an earlier one stays, since a report may be reading it. */
void __tsan_external_register_header(void *tag, const char *header)
{
    struct rf_self *self = rf_atomic_self();
    if (!self || !tag)
        return;
    rf_busy_begin(self);
    char *copy = copy_text(header);
    __atomic_store_n(&((struct tag *)tag)->header, copy, __ATOMIC_RELEASE);
    rf_busy_end(self);
}

void __tsan_external_assign_tag(void *addr, void *tag)
{
    struct rf_self *self = rf_atomic_self();
    if (self)
        remember(self, (uintptr_t)addr, tag);
}

/* The library's caller is the innermost frame that a user knows: it goes on the stack below the library's own. */
static void touch(void *addr, void *caller, void *tag, unsigned flags, uintptr_t pc, void *sp)
{
    struct rf_self *self = rf_atomic_self();
    if (!self)
        return;
    remember(self, (uintptr_t)addr, tag);
    if (caller)
        *rf_hot.top++ = (struct rf_frame){ (uintptr_t)caller, 0, (uint32_t)(uintptr_t)sp };
    rf_access((uintptr_t)addr, 1, flags | RF_A_EXTERNAL, pc);
    if (caller)
        rf_hot.top--;
}

void __tsan_external_read(void *addr, void *caller, void *tag)
{
    touch(addr, caller, tag, 0, PC, __builtin_frame_address(0));
}

void __tsan_external_write(void *addr, void *caller, void *tag)
{
    touch(addr, caller, tag, RF_A_WRITE, PC, __builtin_frame_address(0));
}
