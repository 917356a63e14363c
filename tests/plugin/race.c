/* Two threads and two loops over one array, whose checks have left them. */
#include <pthread.h>
#include <stdio.h>

#define COUNT 1000
static int numbers[COUNT];

static void *fill(void *argument)
{
    (void)argument;
    for (int i = 0; i < COUNT; i++)
        numbers[i] = i; /* WRITE */
    return NULL;
}

static void *add(void *argument)
{
    long sum = 0;
    (void)argument;
    for (int i = 0; i < COUNT; i++)
        sum += numbers[i]; /* READ */
    printf("%d\n", sum > 0);
    return NULL;
}

int main(void)
{
    pthread_t one, two;
    pthread_create(&one, NULL, fill, NULL);
    pthread_create(&two, NULL, add, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
}
