#include "guest/tap.h"

#include "guest/accu.h"
#include "guest/escape.h"
#include "guest/online.h"
#include "guest/system.h"
#include "guest/text.h"
#include "guest/threads.h"

/* No address is as large; fresh keys are from here on. */
#define KEYS (UINT64_C(1) << 59)
#define ENDS (KEYS - 1)  /* of all threads that have ended */
#define PASTS (KEYS - 2) /* of all threads that live when one comes that nobody created */

RF_MODE const struct rf_tap *rf_tap;
static uint64_t keys = KEYS;

void rf_tap_no_access(struct rf_self *self, uintptr_t addr, size_t size, unsigned flags, uintptr_t pc)
{
    (void)self, (void)addr, (void)size, (void)flags, (void)pc;
}

void rf_tap_no_sync(struct rf_self *self, enum rf_tap_who who, enum rf_op op, uint64_t key, uintptr_t pc)
{
    (void)self, (void)who, (void)op, (void)key, (void)pc;
}

void rf_tap_no_memory(struct rf_self *self, enum rf_op op, uintptr_t addr, size_t size, uintptr_t pc)
{
    (void)self, (void)op, (void)addr, (void)size, (void)pc;
}

void rf_tap_no_end(struct rf_self *self)
{
    (void)self;
}

void rf_tap_nothing(void)
{
}

bool rf_tap_access(struct rf_self *self, uintptr_t addr, size_t size, unsigned flags, uintptr_t pc)
{
    bool mine = rf_busy_enter(self);
    rf_tap->access(self, addr, size, flags, pc);
    rf_busy_leave(self, mine);
    rf_online_flush(self);
    return rf_tap->alone;
}

bool rf_tap_memory(struct rf_self *self, enum rf_op op, uintptr_t addr, size_t size, uintptr_t pc)
{
    bool mine = rf_busy_enter(self);
    rf_tap->memory(self, op, addr, size, pc);
    rf_busy_leave(self, mine);
    rf_online_flush(self);
    return rf_tap->alone;
}

bool rf_tap_copy(struct rf_self *self, uintptr_t from, uintptr_t to, size_t size, uintptr_t pc)
{
    bool mine = rf_busy_enter(self);
    if (rf_tap->copy)
        rf_tap->copy(self, from, to, size, pc);
    rf_busy_leave(self, mine);
    return rf_tap->alone;
}

uintptr_t rf_tap_site(const struct rf_self *self, uintptr_t pc)
{
    extern const char __ehdr_start[] __attribute__((visibility("hidden"))), _end[] __attribute__((visibility("hidden")));
    bool ours = pc - (uintptr_t)__ehdr_start < (uintptr_t)(_end - __ehdr_start);
    return ours && rf_hot.self == self && rf_hot.top > self->frames ? rf_hot.top[-1].pc : pc;
}

/* ---- hooks ---- */

/* Code of which some bytes are put in. */
struct code {
    uint8_t *at;
};

static void put(struct code *code, const char *bytes, size_t count)
{
    __builtin_memcpy(code->at, bytes, count);
    code->at += count;
}

static void put_address(struct code *code, uint64_t value)
{
    __builtin_memcpy(code->at, &value, sizeof value);
    code->at += sizeof value;
}

/* Returns if the address is in the block that rf_hot.fresh says; goes on behind it otherwise. */
static void put_fresh_check(struct code *code)
{
    uint32_t fresh = (uint32_t)((uintptr_t)&rf_hot.fresh - (uintptr_t)__builtin_thread_pointer());
    put(code, "\x64\x48\x8b\x0c\x25", 5); /* mov %fs:fresh, %rcx */
    put(code, (const char *)&fresh, sizeof fresh);
    put(code, "\x48\x89\xf8"        /* mov %rdi, %rax */
              "\x48\x2b\x01"        /* sub (%rcx), %rax: at */
              "\x48\x3b\x41\x08"    /* cmp 8(%rcx), %rax: size */
              "\x73\x01\xc3", 13); /* jae behind it; ret */
}
_Static_assert(offsetof(struct rf_fresh, at) == 0 && offsetof(struct rf_fresh, size) == 8, "put_fresh_check()");

/* The same for the stack that rf_hot.stack says. */
static void put_stack_check(struct code *code)
{
    uint32_t stack = (uint32_t)((uintptr_t)&rf_hot.stack - (uintptr_t)__builtin_thread_pointer());
    uint32_t size = (uint32_t)((uintptr_t)&rf_hot.stack_size - (uintptr_t)__builtin_thread_pointer());
    put(code, "\x48\x89\xf8"              /* mov %rdi, %rax */
              "\x64\x48\x2b\x04\x25", 8); /* sub %fs:stack, %rax */
    put(code, (const char *)&stack, sizeof stack);
    put(code, "\x64\x48\x3b\x04\x25", 5); /* cmp %fs:stack_size, %rax */
    put(code, (const char *)&size, sizeof size);
    put(code, "\x73\x01\xc3", 3); /* jae behind it; ret */
}

/* Returns if the state of the address is the one that rf_hot.own says; goes on behind it otherwise. The state is found as rf_escape_place()
 * does. */
static void put_own_check(struct code *code)
{
    uint32_t own = (uint32_t)((uintptr_t)&rf_hot.own - (uintptr_t)__builtin_thread_pointer());
    put(code, "\x48\x89\xf8"           /* mov %rdi, %rax */
              "\x48\xc1\xe8\x16"       /* shr $RF_ESCAPE_LEAF, %rax */
              "\x25\xff\xff\xff\x00"   /* and $the leaves' numbers, %eax */
              "\x48\xb9", 14);         /* movabs $the leaves, %rcx */
    put_address(code, (uintptr_t)rf_escape_leaves);
    put(code, "\x48\x8b\x0c\xc1"       /* mov (%rcx,%rax,8), %rcx */
              "\x48\x85\xc9\x74\x1e"   /* test %rcx, %rcx; je behind it */
              "\x89\xf8\xc1\xe8\x04"   /* mov %edi, %eax; shr $4, %eax */
              "\x25\xff\xff\x03\x00"   /* and $a leaf's places, %eax */
              "\x0f\xb7\x04\x41"       /* movzwl (%rcx,%rax,2), %eax */
              "\x0d\x00\x00\x01\x00"   /* or $RF_ESCAPE_OWN, %eax */
              "\x64\x39\x04\x25", 32); /* cmp %eax, %fs:own */
    put(code, (const char *)&own, sizeof own);
    put(code, "\x75\x01\xc3", 3); /* jne behind it; ret */
}
_Static_assert(RF_ESCAPE_LEAF == 22 && RF_ESCAPE_OWN == 0x10000 && RF_ADDRESS_BITS == 46, "put_own_check()");

/* mov (%rsp), %rsi; movabs $what, %rdx; movabs $hook, %rax; jmp *%rax. */
static void put_jump(struct code *code, uint64_t size, enum rf_op op)
{
    put(code, "\x48\x8b\x34\x24\x48\xba", 6);
    put_address(code, size << 56 | (uint64_t)(op + 1) << 48);
    put(code, "\x48\xb8", 2);
    put_address(code, (uintptr_t)rf_tap->hook);
    put(code, "\xff\xe0", 2);
}

extern const char rf_near_names[]; /* guest/hooks.S: offsets and names */

/* Does a template begin there, behind `from` and before `to`? */
static bool is_cut(size_t from, size_t to)
{
    uint32_t offset;
    for (const char *at = rf_near_names; __builtin_memcpy(&offset, at, sizeof offset), offset != UINT32_MAX;) {
        if (offset > from && offset < to)
            return true;
        for (at += sizeof offset; *at++;)
            ;
    }
    return false;
}

void rf_tap_hooks(uint8_t *block)
{
    uint32_t offset;
    if (!rf_tap->alone || (!rf_tap->hook && rf_tap->hooks == RF_HOOKS_GO) || rf_world_fences)
        return;
    for (const char *at = rf_near_names;;) {
        __builtin_memcpy(&offset, at, sizeof offset);
        if (offset == UINT32_MAX)
            return;
        const char *name = at + sizeof offset;
        for (at = name; *at; at++) {
        }
        uint32_t size = at[-1] >= '0' && at[-1] <= '9' ? (uint32_t)(at[-1] - '0') : 8;
        if (at[-1] == '6')
            size = 16;
        at++;
        if (rf_text_has(name, "func"))
            continue;
        struct code code = { block + offset };
        if (rf_tap->hooks == RF_HOOKS_RETURN) {
            put(&code, "\xc3", 1);
            continue;
        }
        /* These find the tap by themselves; and that a read is of a vtable's pointer, a jump could not tell. */
        if (rf_text_has(name, "range") || rf_text_has(name, "cold") || rf_text_has(name, "vptr"))
            continue;
        if (rf_tap->own_returns && rf_fresh_blocks)
            put_fresh_check(&code);
        if (rf_tap->own_returns && rf_fresh_blocks)
            put_stack_check(&code);
        if (rf_tap->own_returns && rf_escape_leaves)
            put_own_check(&code);
        put_jump(&code, size, rf_text_has(name, "write") ? RF_WRITE : RF_READ);
        if (is_cut(offset, (size_t)(code.at - block)))
            rf_die("%s has no room for what a tap puts there", name);
    }
}

/* ---- keys ---- */

uint64_t rf_tap_new_key(void)
{
    return __atomic_fetch_add(&keys, 1, __ATOMIC_RELAXED);
}

/* An object's key is its address, for people to read, unless another object had that address. Which had is kept in a table of bits, in
 * which an address may be found by mistake: that costs nothing but a key. */
#define FORGOTTEN 65536u
static uint8_t forgotten[FORGOTTEN];

static uint8_t *forgotten_at(uintptr_t addr)
{
    return &forgotten[(addr * UINT64_C(0x9e3779b97f4a7c15)) >> 48 & (FORGOTTEN - 1)];
}

void rf_tap_forgotten(const struct rf_object *object)
{
    __atomic_store_n(forgotten_at(object->addr), 1, __ATOMIC_RELAXED);
    rf_tap_forget(object->key);
    rf_tap_forget(object->own_key);
}

uint64_t rf_tap_key(struct rf_object *object)
{
    if (!object->key)
        object->key = __atomic_load_n(forgotten_at(object->addr), __ATOMIC_RELAXED) ? rf_tap_new_key() : object->addr;
    return object->key;
}

void rf_tap_renew(struct rf_object *object)
{
    rf_tap_forget(object->key);
    object->key = rf_tap_new_key();
}

void rf_tap_signalled(const void *condition)
{
    if (__builtin_expect(rf_accu || (rf_tap && rf_tap->conditions), 0))
        rf_release((uintptr_t)condition, RF_O_COND);
}

void rf_tap_waited(const void *condition)
{
    if (__builtin_expect(rf_accu || (rf_tap && rf_tap->conditions), 0))
        rf_acquire((uintptr_t)condition, RF_O_COND);
}

void rf_tap_receive(struct rf_self *self, enum rf_tap_who who, struct rf_object *object, uint64_t key)
{
    rf_tap->sync(self, who, object->kind == RF_O_ATOMIC ? RF_VOLATILE_READ : RF_WAIT, key, 0);
}

void rf_tap_publish(struct rf_self *self, enum rf_tap_who who, struct rf_object *object, uint64_t key)
{
    rf_tap->sync(self, who, object->kind == RF_O_ATOMIC ? RF_VOLATILE_WRITE : RF_SIGNAL, key, 0);
}

void rf_tap_past(struct rf_self *other)
{
    rf_tap->sync(other, RF_TAP_SELF, RF_SIGNAL, PASTS, 0);
}

void rf_tap_attached(struct rf_self *self)
{
    rf_tap->sync(self, RF_TAP_SELF, RF_WAIT, PASTS, 0);
    rf_tap->sync(self, RF_TAP_SELF, RF_WAIT, ENDS, 0);
}

void rf_tap_switch(struct rf_self *from, struct rf_self *to, uint32_t kernel)
{
    if (!rf_tap->hears_system)
        return;
    bool mine = rf_busy_enter(from);
    rf_tap->sync(from, RF_TAP_SELF, RF_IDENTITY, from->number, 0);
    rf_tap->sync(to, RF_TAP_SELF, RF_IDENTITY, kernel, 0);
    rf_busy_leave(from, mine);
}

void rf_tap_ends(struct rf_self *self)
{
    rf_tap->sync(self, RF_TAP_SELF, RF_SIGNAL, ENDS, 0);
    rf_tap->end(self);
}
