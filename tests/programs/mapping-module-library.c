// part-of: mapping-module.c
static int count;
static __thread int own;

int next(void);
int next(void)
{
    own++;
    return ++count + own - own;
}
