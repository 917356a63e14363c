// expect: none
// options: on_race=exception
// runs: 3
// text: all is well
/* What was left by a jump is not there any more: a question to the program, blocks of signal handlers, on the stack of the thread and on
 * another one; clean-ups of the thread that stand on the stack that was left. The mask of signals is what it was. */
#include <redflag.h>

#include <signal.h>
#include <sys/mman.h>

#include "tests/programs/order.h"

#define VARIABLES 13
#define STACK 65536
int x[VARIABLES]; /* one for each race: some detectors leave out what repeats itself; not static, so that its writes stay */
static int asked, next = 1;
static jmp_buf away;
static volatile int handled, inside, outside;

static void *first(void *unused)
{
    for (int i = 0; i < VARIABLES; i++)
        x[i] = -1;
    reach(1);
    return unused;
}

/* Far below whatever is on the stack now. */
static NOINLINE void write_deeply(int depth, int *to)
{
    volatile char space[256];
    space[0] = space[255] = 1;
    if (depth)
        write_deeply(depth - 1, to);
    else
        *to = 2;
    space[1] = 2;
}

static enum redflag_choice jump_once(const struct redflag_race *race, void *unused)
{
    (void)race;
    (void)unused;
    if (asked++ == 0)
        longjmp(away, 1);
    return REDFLAG_RAISE;
}

static NOINLINE void left_in_block(jmp_buf here)
{
    redflag_try {
        longjmp(here, 1);
    } redflag_catch (race) {
        MUST(0);
    }
}

/* A block of its own that a jump within the handler leaves, and one that catches. */
static void jump_and_catch(int signal)
{
    (void)signal;
    jmp_buf here;
    handled++;
    if (!setjmp(here))
        left_in_block(here);
    redflag_try {
        write_deeply(3, &x[next++]);
        MUST(0);
    } redflag_catch (race) {
        inside++;
    }
}

/* The same, and then its race goes to the block that was interrupted. */
static void jump_and_race(int signal)
{
    jump_and_catch(signal);
    write_deeply(3, &x[next++]);
    MUST(0);
}

static void handle_on(char *stack, void (*handler)(int))
{
    stack_t alternate = { .ss_sp = stack, .ss_size = STACK, .ss_flags = stack ? 0 : SS_DISABLE };
    struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK };
    sigset_t mask;
    MUST(sigaltstack(&alternate, NULL) == 0 && sigaction(SIGUSR1, &action, NULL) == 0);
    handled = inside = outside = 0;
    redflag_try {
        raise(SIGUSR1);
        write_deeply(0, &x[next++]);
        MUST(0);
    } redflag_catch (race) {
        outside++;
    }
    MUST(handled == 1 && inside == 1 && outside == 1);
    MUST(pthread_sigmask(SIG_BLOCK, NULL, &mask) == 0);
    MUST(sigismember(&mask, SIGUSR1) == 0 && sigismember(&mask, SIGUSR2) == 1);
}

static void not_called(void *unused)
{
    (void)unused;
    MUST(0);
}

static NOINLINE void race_before_clean_up(void)
{
    pthread_cleanup_push(not_called, NULL);
    write_deeply(0, &x[next++]);
    pthread_cleanup_pop(0);
}

static void *second(void *unused)
{
    volatile int caught = 0;
    sigset_t mask;
    await(1);
    redflag_on_race(jump_once, NULL);
    if (!setjmp(away)) {
        x[0] = 3;
        MUST(0);
    }
    redflag_try {
        write_deeply(20, &x[next++]);
        MUST(0);
    } redflag_catch (race) {
        caught++;
    }
    MUST(asked == 2 && caught == 1);
    redflag_on_race(NULL, NULL);

    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &mask, NULL);
    /* One stack above that of the thread, the other below, as often as not. */
    char *stacks = mmap(NULL, 2 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *low = mmap((char *)0x10000000, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(stacks != MAP_FAILED && low != MAP_FAILED);
    handle_on(NULL, jump_and_catch);
    handle_on(low, jump_and_catch);
    handle_on(NULL, jump_and_race);
    handle_on(low, jump_and_race);
    handle_on(stacks, jump_and_race);
    redflag_try {
        race_before_clean_up();
        MUST(0);
    } redflag_catch (race) {
        caught++;
    }
    MUST(caught == 2 && next == VARIABLES);
    reach(2);
    pthread_exit(unused);
}

int main(void)
{
    run_both(first, second);
    MUST(present_stage() == 2);
    for (int i = 0; i < VARIABLES; i++)
        MUST(x[i] == -1);
    puts("all is well");
    return 0;
}
