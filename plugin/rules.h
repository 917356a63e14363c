/* What the passes of both compilers go by, gcc's here and LLVM's in inline/, which see programs with different eyes: which checks are near enough to
 * be one, whether that pays, and which make others needless.
 */
#ifndef RF_PLUGIN_RULES_H
#define RF_PLUGIN_RULES_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

/* Lines of which a report may name one for another: so many, one below the other. */
class rf_lines
{
  public:
    explicit rf_lines(int line) : top(line), bottom(line)
    {
    }
    bool take(int line) /* false: it is too far from those so far */
    {
        int first = std::min(top, line), last = std::max(bottom, line);
        if (last - first >= NEAR)
            return false;
        top = first;
        bottom = last;
        return true;
    }

  private:
    enum { NEAR = 4 };
    int top, bottom;
};

/* Does it pay to join so many checks to one of these bytes? Each is one look at a history, and so is each granule of eight bytes that they have
 * together: it must be half as many. */
static inline bool rf_joining_pays(size_t count, int64_t size, int64_t align)
{
    const int64_t granule = 8;
    bool lies_well = !(size & (size - 1)) && align >= std::min(size, granule);
    return 2 * ((size + granule - 1) / granule + !lies_well) <= (int64_t)count;
}

/* Different checks, by number. Those of a group are at distances that are known. A check of a write is as good as one of a read, one of more bytes
 * as one of fewer, several as one. */
class rf_covers
{
  public:
    /* Groups come one after the other, and each in the order of its offsets, and of sizes where these are equal. */
    void add(unsigned group, int64_t offset, int64_t size, bool write)
    {
        int64_t end = offset + size;
        bool follows = !all.empty() && all.back().group == group;
        all.push_back({ group, write, offset, end, follows ? std::max(all.back().reach, end) : end });
    }
    unsigned count() const
    {
        return (unsigned)all.size();
    }

    /* All bytes of the check were checked in this way, or as written: has(number) says what was made. */
    template <typename Has> bool covered(unsigned which, Has has) const
    {
        if (has(which))
            return true;
        const one &wanted = all[which];
        int64_t done = wanted.offset;
        unsigned other = which;
        while (other > 0 && all[other - 1].group == wanted.group && all[other - 1].reach > done)
            other--;
        for (; other < count() && all[other].group == wanted.group && all[other].offset <= done && done < wanted.end;
             other++)
            if (all[other].write >= wanted.write && has(other))
                done = std::max(done, all[other].end);
        return done >= wanted.end;
    }

    /* The check is made, and with it each that it has all bytes of: add(number). */
    template <typename Add> void make(unsigned which, Add add) const
    {
        const one &made = all[which];
        unsigned part = which;
        while (part > 0 && all[part - 1].group == made.group && all[part - 1].offset == made.offset)
            part--;
        for (; part < count() && all[part].group == made.group && all[part].offset < made.end; part++)
            if (all[part].end <= made.end && all[part].write <= made.write)
                add(part);
    }

  private:
    struct one {
        unsigned group;
        bool write;
        int64_t offset, end, reach; /* reach: where the last byte ends of this one, and of all before it in its group */
    };
    std::vector<one> all;
};

#endif
