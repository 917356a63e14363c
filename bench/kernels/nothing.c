/* A program that only starts and ends. */
int main(void)
{
    return 0;
}
