// part-of: dlopen-*.c
// A library with instrumented code, a constructor, a destructor, data and thread-local data of its own.
extern int library_value;
int library_value = 3;
static __thread int local = 10;
static int constructed;

__attribute__((constructor)) static void begin(void)
{
    constructed = 1;
}

__attribute__((destructor)) static void end(void)
{
    constructed = 0;
}

int add(int n);
int add(int n)
{
    local += n;
    return local + constructed;
}

void set(int n);
__attribute__((noinline)) void set(int n)
{
    library_value = n;
}
