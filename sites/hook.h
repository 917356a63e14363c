/* The compilers' hooks by their names: what each one says of the access that follows it.
 *
 * 1. Nothing here needs libc: the runtime reads names too.
 * 2. A hook that reads and then writes counts as a write, as for detectors.
 * 3. The first argument of every hook of an access is its address. That of ranges is followed by the size.
 */
#ifndef RF_SITES_HOOK_H
#define RF_SITES_HOOK_H

#include <stdbool.h>
#include <stdint.h>

enum rf_hook_kind {
    RF_HOOK_NONE,        /* no hook of the compilers */
    RF_HOOK_ACCESS,      /* a plain access of a known size comes next; to leave the call away changes nothing */
    RF_HOOK_RANGE,       /* the same, and the second argument is the size */
    RF_HOOK_VPTR_UPDATE, /* the same, a vtable pointer is written if the second argument is not what is there */
    RF_HOOK_ATOMIC,      /* the hook is the access */
    RF_HOOK_FUNCTION,    /* a function was entered or is left */
    RF_HOOK_COLD,        /* the rest of an inlined hook, which keeps all registers: neither a site, nor to be taken out */
    RF_HOOK_OTHER        /* anything else named __tsan_... */
};

struct rf_hook {
    enum rf_hook_kind kind;
    uint8_t size; /* 0: not known before */
    bool write, vptr, is_volatile;
};

/* Does `text` begin with `word`? Then it is moved behind it. */
static inline bool rf_hook_word(const char **text, const char *word)
{
    const char *at = *text;
    while (*word && *at == *word)
        at++, word++;
    if (*word)
        return false;
    *text = at;
    return true;
}

static inline unsigned rf_hook_number(const char **text)
{
    unsigned number = 0;
    while (**text >= '0' && **text <= '9' && number < 1000)
        number = number * 10 + (unsigned)(*(*text)++ - '0');
    return number;
}

static inline struct rf_hook rf_hook_atomic(const char *rest)
{
    unsigned bits = rf_hook_number(&rest);
    if (!bits || *rest != '_') /* fences */
        return (struct rf_hook){ .kind = RF_HOOK_OTHER };
    rest++;
    return (struct rf_hook){ .kind = RF_HOOK_ATOMIC, .size = (uint8_t)(bits / 8), .write = !rf_hook_word(&rest, "load") };
}

static inline struct rf_hook rf_hook_named(const char *name)
{
    struct rf_hook hook = { .kind = RF_HOOK_NONE };
    const char *rest = name;
    if (!rf_hook_word(&rest, "__tsan_"))
        return hook;
    hook.kind = RF_HOOK_OTHER;
    if (rf_hook_word(&rest, "cold_")) {
        hook.kind = RF_HOOK_COLD;
        return hook;
    }
    if (rf_hook_word(&rest, "func_")) {
        hook.kind = RF_HOOK_FUNCTION;
        return hook;
    }
    if (rf_hook_word(&rest, "atomic"))
        return rf_hook_atomic(rest);
    if (rf_hook_word(&rest, "vptr_")) {
        bool update = rf_hook_word(&rest, "update");
        return (struct rf_hook){
            .kind = update ? RF_HOOK_VPTR_UPDATE : RF_HOOK_ACCESS, .size = 8, .write = update, .vptr = true
        };
    }
    rf_hook_word(&rest, "unaligned_");
    hook.is_volatile = rf_hook_word(&rest, "volatile_");
    bool reads = rf_hook_word(&rest, "read");
    if (reads)
        rf_hook_word(&rest, "_write") ? (void)(hook.write = true) : (void)0;
    else if (!rf_hook_word(&rest, "write"))
        return hook;
    else
        hook.write = true;
    if (rf_hook_word(&rest, "_range")) {
        hook.kind = RF_HOOK_RANGE;
        return hook;
    }
    hook.size = (uint8_t)rf_hook_number(&rest);
    if (hook.size)
        hook.kind = RF_HOOK_ACCESS;
    return hook;
}

/* Is it an access, which a site can be? */
static inline bool rf_hook_accesses(const struct rf_hook *hook)
{
    return hook->kind >= RF_HOOK_ACCESS && hook->kind <= RF_HOOK_ATOMIC;
}

/* May calls of it be taken out of the code? */
static inline bool rf_hook_removable(const struct rf_hook *hook)
{
    return (hook->kind >= RF_HOOK_ACCESS && hook->kind <= RF_HOOK_VPTR_UPDATE) || hook->kind == RF_HOOK_FUNCTION;
}

#endif
