// expect: none
// libs: -lm
// seconds: 120
// Many functions of libc, by two threads at once, each with its own memory: they do what they did, and nothing is reported.
#define _GNU_SOURCE
#include "tests/programs/order.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <glob.h>
#include <iconv.h>
#include <inttypes.h>
#include <math.h>
#include <netdb.h>
#include <poll.h>
#include <pwd.h>
#include <regex.h>
#include <search.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>
#include <wordexp.h>

static int by_value(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static int by_sign(const void *a, const void *b, void *sign)
{
    return *(int *)sign * by_value(a, b);
}

static NOINLINE void strings(void)
{
    char text[64] = "one,two;three", *state, *rest = text, copy[64];
    wchar_t wide[32], more[32];
    MUST(!strcmp(strtok_r(text, ",;", &state), "one") && !strcmp(strtok_r(NULL, ",;", &state), "two"));
    strcpy(text, "a:b");
    MUST(!strcmp(strsep(&rest, ":"), "a") && !strcmp(rest, "b"));
    MUST(strspn("aab", "a") == 2 && strcspn("aab", "b") == 2 && *strpbrk("xyz", "zy") == 'y');
    MUST(!strcmp(strstr("haystack", "st"), "stack") && !strcmp(strcasestr("HAYSTACK", "st"), "STACK"));
    MUST(memmem("abcdef", 6, "cd", 2) && !memmem("abc", 3, "x", 1) && strnlen("abc", 2) == 2);
    MUST(stpcpy(copy, "abc") == copy + 3 && !strcmp(strcat(copy, "def"), "abcdef") && !strcmp(strncat(copy, "ghi", 1), "abcdefg"));
    MUST(stpncpy(copy, "ab", 8) == copy + 2 && copy[7] == 0 && mempcpy(copy, "xy", 2) == copy + 2 && copy[0] == 'x');
    MUST(strxfrm(copy, "abc", sizeof copy) == 3 && strcoll("a", "b") < 0 && strverscmp("a9", "a10") < 0);
    MUST(memccpy(copy, "stop.here", '.', 20) == copy + 5 && memrchr("aXbX", 'X', 4) && rawmemchr("abc", 'c'));
    char *twice = strdup("twice"), *half = strndup("half of it", 4);
    MUST(!strcmp(twice, "twice") && !strcmp(half, "half"));
    free(twice);
    free(half);
    MUST(mbstowcs(wide, "wide text", 32) == 9 && wcslen(wide) == 9 && wcscpy(more, wide) == more && !wcscmp(more, wide));
    MUST(wcscat(more, L"!")[9] == L'!' && wcschr(more, L'!') == more + 9 && wcstombs(copy, more, sizeof copy) == 10);
    MUST(wcstol(L"42", NULL, 10) == 42 && wmemset(more, L'x', 3) && wmemcmp(more, L"xxx", 3) == 0);
    MUST(strtoull("18446744073709551615", NULL, 0) == UINT64_MAX && strtod("2.5e1", NULL) == 25.0 && atoi("-7") == -7);
    MUST(strtoimax("-5x", &rest, 10) == -5 && *rest == 'x' && strtol("zz", &rest, 36) == 35 * 37);
    MUST(strerror_r(ENOENT, copy, sizeof copy) && strlen(strerror(EINVAL)) > 0);
}

static NOINLINE void formats(void)
{
    char line[200], *made, *word = NULL, c[3] = "";
    int n, a = 0;
    unsigned char b = 0;
    short s = 0;
    long long l = 0;
    double d = 0;
    MUST(sprintf(line, "%d %5.2f %s %c %p %lld %%%n", 1, 2.5, "x", 'y', (void *)0, 5LL, &n) == n && n > 10);
    MUST(asprintf(&made, "%*s|%-*.*s|%ls", 4, "ab", 5, 1, "cd", L"wide") == 15 && !strcmp(made, "  ab|c    |wide"));
    free(made);
    MUST(snprintf(line, 4, "%s", "truncated") == 9 && !strcmp(line, "tru") && snprintf(NULL, 0, "%d", 12345) == 5);
    MUST(sscanf("12 0x7f -3 999999999999 2.5 ab word [set] 9", "%d %hhx %hd %lld %lf %2c %ms [%*[a-z]] %n", &a, &b, &s, &l, &d, c, &word, &n) == 7);
    MUST(a == 12 && b == 0x7f && s == -3 && l == 999999999999 && d == 2.5 && !strcmp(c, "ab") && !strcmp(word, "word"));
    free(word);
}

static NOINLINE void streams(void)
{
    char buffer[64], *memory = NULL, *line = NULL;
    size_t size = 0;
    FILE *f = fmemopen(buffer, sizeof buffer, "w+");
    MUST(f && fputs("one\ntwo\n", f) > 0 && fflush(f) == 0);
    rewind(f);
    MUST(getline(&line, &size, f) == 4 && fgets(buffer + 32, 10, f) && !strcmp(buffer + 32, "two\n"));
    free(line);
    fclose(f);
    f = open_memstream(&memory, &size);
    MUST(f && fprintf(f, "%s %d", "text", 5) == 6 && fclose(f) == 0 && size == 6 && !strcmp(memory, "text 5"));
    free(memory);
    f = popen("echo from a shell", "r");
    MUST(f && fgets(buffer, sizeof buffer, f) && !strcmp(buffer, "from a shell\n") && pclose(f) == 0);
    f = fopen("/proc/self/stat", "r");
    int pid;
    MUST(f && fscanf(f, "%d", &pid) == 1 && pid == getpid() && fclose(f) == 0);
}

static NOINLINE void files(void)
{
    char path[] = "/tmp/redflag-many-XXXXXX", buffer[4096];
    struct stat st;
    int fd = mkstemp(path);
    struct iovec v[2] = { { (void *)"ab", 2 }, { (void *)"cd", 2 } };
    MUST(fd >= 0 && writev(fd, v, 2) == 4 && pwrite(fd, "X", 1, 1) == 1 && pread(fd, buffer, 10, 0) == 4 && !memcmp(buffer, "aXcd", 4));
    MUST(fstat(fd, &st) == 0 && st.st_size == 4 && stat(path, &st) == 0 && lstat(path, &st) == 0 && close(fd) == 0);
    MUST(realpath(path, buffer) && !strcmp(buffer, path) && unlink(path) == 0 && access(path, F_OK) == -1 && errno == ENOENT);
    MUST(getcwd(buffer, sizeof buffer) && buffer[0] == '/' && readlink("/proc/self/exe", buffer, sizeof buffer) > 0);
    DIR *dir = opendir("/proc/self/task");
    int entries = 0;
    MUST(dir);
    while (readdir(dir))
        entries++;
    MUST(entries >= 4 && closedir(dir) == 0);
    struct dirent **names;
    int count = scandir("/proc/self", &names, NULL, alphasort);
    MUST(count > 10);
    for (int i = 0; i < count; i++)
        free(names[i]);
    free(names);
    glob_t g = { 0 };
    MUST(glob("/proc/self/st*", 0, NULL, &g) == 0 && g.gl_pathc >= 2);
    globfree(&g);
    struct pollfd p = { .fd = 0, .events = 0 };
    MUST(poll(&p, 1, 0) >= 0 && pipe((int *)buffer) == 0 && close(((int *)buffer)[0]) == 0 && close(((int *)buffer)[1]) == 0);
}

static NOINLINE void others(void)
{
    int list[5] = { 3, 1, 2, 5, 4 }, sign = -1, key = 4, e;
    size_t count = 4;
    void *tree = NULL;
    qsort(list, 5, sizeof *list, by_value);
    MUST(list[0] == 1 && bsearch(&key, list, 5, sizeof *list, by_value) == &list[3]);
    qsort_r(list, 5, sizeof *list, by_sign, &sign);
    MUST(list[0] == 5);
    key = 77;
    MUST(lsearch(&key, list, &count, sizeof *list, by_value) == &list[4] && count == 5 && list[4] == 77);
    MUST(tsearch(&key, &tree, by_value) && tfind(&key, &tree, by_value) && tdelete(&key, &tree, by_value) && !tree);
    MUST(frexp(8.0, &e) == 0.5 && e == 4);
    double whole, s, c;
    MUST(modf(2.5, &whole) == 0.5 && whole == 2.0);
    sincos(0.0, &s, &c);
    MUST(s == 0.0 && c == 1.0 && lgamma_r(3.0, &e) > 0);
    struct in_addr four;
    char text[256];
    MUST(inet_pton(AF_INET, "127.0.0.1", &four) == 1 && inet_ntop(AF_INET, &four, text, sizeof text) && !strcmp(text, "127.0.0.1"));
    struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_family = AF_INET }, *found;
    MUST(getaddrinfo("127.0.0.1", "80", &hints, &found) == 0 && found);
    freeaddrinfo(found);
    struct passwd user, *result = NULL;
    MUST(getpwuid_r(0, &user, text, sizeof text, &result) == 0 && result == &user && !strcmp(user.pw_name, "root"));
    struct utsname u;
    struct sysinfo info;
    struct rusage usage;
    struct rlimit limit;
    struct tms t;
    MUST(uname(&u) == 0 && sysinfo(&info) == 0 && getrusage(RUSAGE_SELF, &usage) == 0 && getrlimit(RLIMIT_STACK, &limit) == 0);
    MUST(times(&t) != (clock_t)-1);
    regex_t r;
    regmatch_t m[2];
    MUST(regcomp(&r, "b(c+)", REG_EXTENDED) == 0 && regexec(&r, "abccd", 2, m, 0) == 0 && m[1].rm_so == 2 && m[1].rm_eo == 4);
    regfree(&r);
    iconv_t cd = iconv_open("UTF-16LE", "UTF-8");
    char *in = (char *)"ab", *out = text;
    size_t left = 2, room = sizeof text;
    MUST(cd != (iconv_t)-1 && iconv(cd, &in, &left, &out, &room) == 0 && out == text + 4 && iconv_close(cd) == 0);
    wordexp_t w;
    MUST(wordexp("a 'b c'", &w, 0) == 0 && w.we_wordc == 2 && !strcmp(w.we_wordv[1], "b c"));
    wordfree(&w);
    struct random_data data = { 0 };
    int32_t number;
    MUST(initstate_r(1, text, 64, &data) == 0 && random_r(&data, &number) == 0);
    sigset_t set;
    MUST(sigemptyset(&set) == 0 && sigaddset(&set, SIGINT) == 0 && sigismember(&set, SIGINT) && !sigismember(&set, SIGHUP));
    void *frames[10], *self = dlopen(NULL, RTLD_NOW);
    MUST(backtrace(frames, 10) > 0 && self && dlclose(self) == 0);
    struct timespec pause = { 0, 1000 };
    MUST(nanosleep(&pause, NULL) == 0);
}

static NOINLINE void *work(void *unused)
{
    for (int i = 0; i < 3; i++) {
        strings();
        formats();
        streams();
        files();
        others();
    }
    return unused;
}

int main(void)
{
    int status;
    run_both(work, work);
    pid_t child = fork();
    if (!child)
        _exit(7);
    MUST(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7);
    return 0;
}
