/* redflag go: the go command, whose programs find their races with our detector instead of the one that comes with Go.
 *
 * 1. It becomes `go VERB -race -overlay=...`: no process stays between, and all arguments are go's own. The overlay takes the bundled
 *    object out of package runtime/race and adds our detector, a C file, which cgo compiles there. The program that is built has it
 *    inside and runs by itself.
 * 2. Go ignores an overlay that names a file which it does not look at, without a word. So go is asked first what package runtime/race
 *    is made of; unless it is our files and nothing else, nothing is built.
 * 3. The overlay, and the files that cli/go_fast.c makes, are in memory, as descriptors of this process, which go then is: nothing is
 *    left behind.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/go_fast.h"
#include "cli/places.h"
#include "trace/grow.h"

#define WHO "redflag go"
#define MADE_FOR "go1.19"
#define OURS "redflag.c"
#define OTHER "redflag_other.c"
#define BUNDLED "race_linux_amd64.syso"

/* Files of Go that are changed (cli/go_fast.c, cli/go_maps.c). */
static const struct changed {
    const char *package, *file;
    bool (*make)(const char *source, FILE *out);
    bool fasttrack_only;
} changed[] = {
    { "runtime", "race_amd64.s", rf_go_fast_hooks, false },
    { "sync", "mutex.go", rf_go_fast_mutex, true },
    { "runtime", "map.go", rf_go_fast_map, true },
    { "runtime", "map_fast32.go", rf_go_fast_map, true },
    { "runtime", "map_fast64.go", rf_go_fast_map, true },
    { "runtime", "map_faststr.go", rf_go_fast_map, true },
};

#define CHANGED (sizeof changed / sizeof *changed)

static int help(void)
{
    puts("usage: redflag go [OPTION...] build|install|run|test [ARGUMENT OF GO...]\n"
         "       redflag go overlay DIRECTORY\n\n"
         "Builds Go programs, and runs them or their tests, with redflag's race detector in place of the one of `go build -race`.\n"
         "The program that `redflag go build` leaves runs by itself. `overlay` puts what makes it so into a directory, for\n"
         "tools that call go themselves: GOFLAGS=-overlay=DIRECTORY/overlay.json go test -race ...\n\n"
         "  -d, --detector NAME   which detector the program has: fasttrack (the default), acculock, pacer, ...; -d list names all\n"
         "      --rate SHARE      for run and test: pacer's, how much of the run is sampled (default: 0.01)\n"
         "      --seed NUMBER     for run and test: of every random choice\n\n"
         "A program that was built takes rate and seed from REDFLAG_OPTIONS, as rate=0.03:seed=7. GORACE is honoured as ever:\n"
         "log_path, exitcode, strip_path_prefix, halt_on_error, atexit_sleep_ms.\n"
         "REDFLAG_GO names the go command (default: go).");
    return RF_EXIT_OK;
}

#define RF_GO_DETECTOR(name, file) #name,
static const char *const detectors[] = { "fasttrack",
#include "go/detectors.def"
};
#undef RF_GO_DETECTOR

static int list_detectors(void)
{
    for (size_t i = 0; i < sizeof detectors / sizeof *detectors; i++)
        puts(detectors[i]);
    return RF_EXIT_OK;
}

/* Its name as it stands above, or NULL. */
static const char *detector_named(const char *name)
{
    for (size_t i = 0; i < sizeof detectors / sizeof *detectors; i++)
        if (!strcmp(name, detectors[i]))
            return detectors[i];
    return NULL;
}

/* The first line that a command prints; false, and nothing said, if it fails. What it complains of is seen. */
static bool ask(char *const *command, char *answer, size_t size)
{
    int ends[2], status = -1;
    if (pipe(ends) != 0)
        return false;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 1);
        close(ends[0]);
        close(ends[1]);
        execvp(command[0], command);
        fprintf(stderr, WHO ": %s: %s; REDFLAG_GO names the go command\n", command[0], strerror(errno));
        _exit(127);
    }
    close(ends[1]);
    size_t used = 0;
    for (ssize_t got; used < size - 1 && (got = read(ends[0], answer + used, size - 1 - used)) > 0;)
        used += (size_t)got;
    answer[used] = 0;
    answer[strcspn(answer, "\n")] = 0;
    close(ends[0]);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool ask_env(const char *go, const char *name, char *answer, size_t size)
{
    char *command[] = { (char *)go, "env", (char *)name, NULL };
    return ask(command, answer, size);
}

/* Our files: the detector, one of those that can be put beside it, and those of Go that are changed ("": this one is not). */
struct ours {
    bool fasttrack; /* nothing is put beside it */
    char detector[2 * PATH_MAX], other[2 * PATH_MAX];
    char changed[CHANGED][2 * PATH_MAX];
};

static void put_quoted(FILE *file, const char *text)
{
    putc('"', file);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            putc('\\', file);
        putc(*text, file);
    }
    putc('"', file);
}

/* What replaces what: our two files come to package runtime/race, in place of the bundled object; those that are changed in place of what
 * they were; and `rest`, what else the user replaces, or NULL. */
static void write_overlay(FILE *file, const char *goroot, const struct ours *ours, const char *rest)
{
    char package[2 * PATH_MAX];
    fputs("{\"Replace\":{", file);
    snprintf(package, sizeof package, "%s/src/runtime/race/" BUNDLED, goroot);
    put_quoted(file, package);
    fputs(":\"\",", file);
    snprintf(package, sizeof package, "%s/src/runtime/race/" OURS, goroot);
    put_quoted(file, package);
    fputs(":", file);
    put_quoted(file, ours->detector);
    snprintf(package, sizeof package, "%s/src/runtime/race/" OTHER, goroot);
    fputs(",", file);
    put_quoted(file, package);
    fputs(":", file);
    put_quoted(file, ours->other);
    for (size_t i = 0; i < CHANGED; i++) {
        if (!*ours->changed[i])
            continue;
        snprintf(package, sizeof package, "%s/src/%s/%s", goroot, changed[i].package, changed[i].file);
        fputs(",", file);
        put_quoted(file, package);
        fputs(":", file);
        put_quoted(file, ours->changed[i]);
    }
    if (rest && rest[strspn(rest, " \t\r\n")])
        fprintf(file, ",%s", rest);
    fputs("}}\n", file);
}

/* A file in memory: what is written to the stream is found under the name, by us and by those whom we become or start. */
static FILE *in_memory(char *name, size_t size)
{
    int fd = memfd_create("redflag-go", 0);
    if (fd < 0)
        return NULL;
    snprintf(name, size, "/proc/%d/fd/%d", (int)getpid(), fd);
    return fdopen(dup(fd), "w");
}

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = rf_zeroed(1, 1);
    size_t size = 0;
    if (!file)
        return NULL;
    for (char block[4096];;) {
        size_t got = fread(block, 1, sizeof block, file);
        if (!got)
            break;
        text = rf_resize(text, size + got + 1);
        memcpy(text + size, block, got);
        text[size += got] = 0;
    }
    fclose(file);
    return text;
}

/* What the user's own overlay replaces, without the brackets around it; NULL: it cannot be read. */
static char *user_overlay(const char *path)
{
    char *text = read_file(path);
    if (!text) {
        fprintf(stderr, WHO ": %s: %s\n", path, strerror(errno));
        return NULL;
    }
    const char *key = strstr(text, "\"Replace\"");
    char *open = key ? strchr(key, '{') : NULL, *close = open ? strchr(open, '}') : NULL;
    if (!close) {
        fprintf(stderr, WHO ": %s: this is no overlay for go: it has no \"Replace\" with names of files\n", path);
        return NULL;
    }
    *close = 0;
    return open + 1;
}

/* Files of Go, changed: in this directory, or, if it is NULL, in memory. */
static void make_changed(struct ours *ours, const char *goroot, const char *directory)
{
    for (size_t i = 0; i < CHANGED; i++) {
        char path[2 * PATH_MAX], *name = ours->changed[i];
        *name = 0;
        if (changed[i].fasttrack_only && !ours->fasttrack)
            continue;
        snprintf(path, sizeof path, "%s/src/%s/%s", goroot, changed[i].package, changed[i].file);
        char *source = read_file(path);
        if (directory)
            snprintf(name, sizeof ours->changed[i], "%s/%s", directory, changed[i].file);
        FILE *file = directory ? fopen(name, "w") : in_memory(name, sizeof ours->changed[i]);
        if (!source || !file || !changed[i].make(source, file))
            *name = 0;
        if (file && fclose(file) != 0)
            *name = 0;
        free(source);
    }
}

/* The overlay, as a file; false: it said why. */
static bool make_overlay(const char *goroot, struct ours *ours, const char *users, char *name, size_t size)
{
    char *rest = users ? user_overlay(users) : NULL;
    if (users && !rest)
        return false;
    make_changed(ours, goroot, NULL);
    FILE *file = in_memory(name, size);
    if (!file) {
        fprintf(stderr, WHO ": the overlay cannot be made: %s\n", strerror(errno));
        return false;
    }
    write_overlay(file, goroot, ours, rest);
    fclose(file);
    return true;
}

/* redflag go overlay DIRECTORY: the same, to stay. */
static int keep_overlay(const char *goroot, struct ours *ours, const char *directory)
{
    char name[2 * PATH_MAX], full[PATH_MAX];
    if (!realpath(directory, full)) {
        fprintf(stderr, WHO ": %s: %s\n", directory, strerror(errno));
        return RF_EXIT_USAGE;
    }
    snprintf(name, sizeof name, "%s/overlay.json", full);
    make_changed(ours, goroot, full);
    FILE *file = fopen(name, "w");
    if (!file) {
        fprintf(stderr, WHO ": %s: %s\n", name, strerror(errno));
        return RF_EXIT_USAGE;
    }
    write_overlay(file, goroot, ours, NULL);
    bool bad = ferror(file);
    if (fclose(file) != 0 || bad) {
        fprintf(stderr, WHO ": %s: cannot be written\n", name);
        return RF_EXIT_USAGE;
    }
    puts(name);
    return RF_EXIT_OK;
}

/* Is package runtime/race our files and nothing else (2)? */
static bool overlay_works(const char *go, const char *overlay_flag)
{
    char answer[4096];
    char *command[] = { (char *)go, "list", "-race", (char *)overlay_flag, "-f", "{{.CFiles}}{{.SysoFiles}}", "runtime/race", NULL };
    if (!ask(command, answer, sizeof answer))
        return false;
    if (!strcmp(answer, "[" OURS " " OTHER "][]"))
        return true;
    fprintf(stderr, WHO ": this go does not build runtime/race from our files (%s); Go 1.19 for linux/amd64 with cgo is needed\n", answer);
    return false;
}

/* The user's -overlay, in whichever form, is taken out of the arguments: go takes one only. */
static const char *take_user_overlay(int *count, char **arguments)
{
    const char *users = NULL;
    int left = 0;
    for (int i = 0; i < *count; i++) {
        const char *word = arguments[i][0] == '-' && arguments[i][1] == '-' ? arguments[i] + 1 : arguments[i];
        if (!strcmp(word, "-args") || !strcmp(word, "-")) {
            while (i < *count)
                arguments[left++] = arguments[i++];
        } else if (!strncmp(word, "-overlay=", 9))
            users = word + 9;
        else if (!strcmp(word, "-overlay") && i + 1 < *count)
            users = arguments[++i];
        else
            arguments[left++] = arguments[i];
    }
    *count = left;
    return users;
}

/* The same for GOFLAGS, which go also reads from its own file of settings: words apart by blanks, each a flag with its value. */
static const char *overlay_of_goflags(char *flags)
{
    const char *users = NULL;
    for (char *rest = flags, *word; (word = strtok_r(rest, " \t\r\n", &rest));) {
        word += word[0] == '-' && word[1] == '-';
        if (!strncmp(word, "-overlay=", 9))
            users = word + 9;
    }
    return users;
}

static void add_option(const char *name, const char *value)
{
    const char *old = getenv("REDFLAG_OPTIONS");
    char *text = rf_zeroed((old ? strlen(old) : 0) + strlen(name) + strlen(value) + 3, 1);
    sprintf(text, "%s%s%s=%s", old ? old : "", old && *old ? ":" : "", name, value);
    setenv("REDFLAG_OPTIONS", text, 1);
    free(text);
}

struct wishes {
    const char *detector;
    bool at_run; /* something that a program takes when it runs */
};

/* One of our own options; 0: it is none, -1: it said what is wrong, else how many arguments it took. */
static int own_option(struct wishes *wishes, int argc, char **argv)
{
    static const char *const forms[][2] = { { "-d", "detector" }, { "--detector", "detector" }, { "--rate", "rate" }, { "--seed", "seed" } };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        size_t length = strlen(forms[i][0]);
        bool joined = !strncmp(argv[0], forms[i][0], length) && argv[0][length] == '=';
        if (!joined && strcmp(argv[0], forms[i][0]) != 0)
            continue;
        const char *value = joined ? argv[0] + length + 1 : argc > 1 ? argv[1] : NULL;
        if (!value) {
            fprintf(stderr, WHO ": %s needs a value\n", argv[0]);
            return -1;
        }
        if (!strcmp(forms[i][1], "detector")) {
            if (!strcmp(value, "list"))
                exit(list_detectors());
            wishes->detector = detector_named(value);
            if (!wishes->detector) {
                fprintf(stderr, WHO ": '%s' is no detector that Go programs have; `redflag go -d list` names them\n", value);
                return -1;
            }
            return joined ? 1 : 2;
        }
        char *end = NULL;
        double number = strtod(value, &end);
        if (end == value || *end || !(number >= 0)) {
            fprintf(stderr, WHO ": %s: '%s' is not a number\n", forms[i][0], value);
            return -1;
        }
        wishes->at_run = true;
        add_option(forms[i][1], value);
        return joined ? 1 : 2;
    }
    return 0;
}

int rf_cli_go(int argc, char **argv)
{
    int i = 1;
    struct wishes wishes = { "fasttrack", false };
    for (int used; i < argc && argv[i][0] == '-'; i += used) {
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
            return help();
        used = own_option(&wishes, argc - i, argv + i);
        if (!used)
            fprintf(stderr, WHO ": unknown option '%s'; try 'redflag go --help'\n", argv[i]);
        if (used <= 0)
            return RF_EXIT_USAGE;
    }
    const char *verb = i < argc ? argv[i] : "";
    bool runs = !strcmp(verb, "run") || !strcmp(verb, "test"), shows = !strcmp(verb, "overlay");
    if (!runs && !shows && strcmp(verb, "build") != 0 && strcmp(verb, "install") != 0) {
        fprintf(stderr, WHO ": %s%s%s; build, install, run or test is expected\n", *verb ? "'" : "no verb", verb, *verb ? "'" : "");
        return RF_EXIT_USAGE;
    }
    if (shows && argc != i + 2) {
        fputs(WHO ": overlay: one directory is needed, to put it into\n", stderr);
        return RF_EXIT_USAGE;
    }
    if (wishes.at_run && !runs) {
        fputs(WHO ": a program that is built takes --rate and --seed when it runs, from REDFLAG_OPTIONS\n", stderr);
        return RF_EXIT_USAGE;
    }
    struct rf_places places;
    struct ours ours;
    char goroot[PATH_MAX], overlay[64], flag[96];
    if (!rf_cli_places(&places, WHO))
        return RF_EXIT_USAGE;
    int length = (int)(strrchr(places.tsan, '/') - places.tsan);
    snprintf(ours.detector, sizeof ours.detector, "%.*s/go/" OURS, length, places.tsan);
    snprintf(ours.other, sizeof ours.other, "%.*s/go/other_%s.c", length, places.tsan,
             strcmp(wishes.detector, "fasttrack") ? wishes.detector : "none");
    ours.fasttrack = !strcmp(wishes.detector, "fasttrack");
    for (int k = 0; k < 2; k++) {
        const char *file = k ? ours.other : ours.detector;
        if (access(file, R_OK) != 0) {
            fprintf(stderr, WHO ": %s: %s\n", file, strerror(errno));
            return RF_EXIT_USAGE;
        }
    }
    const char *set = getenv("REDFLAG_GO"), *go = set && *set ? set : "go";
    char version[64], goflags[8192];
    if (!ask_env(go, "GOVERSION", version, sizeof version) || !ask_env(go, "GOROOT", goroot, sizeof goroot) ||
        !ask_env(go, "GOFLAGS", goflags, sizeof goflags))
        return RF_EXIT_USAGE;
    if (strncmp(version, MADE_FOR, strlen(MADE_FOR)) != 0 || isdigit((unsigned char)version[strlen(MADE_FOR)])) {
        fprintf(stderr, WHO ": %s is %s, and this detector is made for " MADE_FOR "; REDFLAG_GO names another go command\n", go,
                *version ? version : "of an unknown version");
        return RF_EXIT_USAGE;
    }
    if (shows)
        return keep_overlay(goroot, &ours, argv[i + 1]);
    int count = argc - i - 1;
    const char *users = take_user_overlay(&count, argv + i + 1);
    if (!users)
        users = overlay_of_goflags(goflags);
    if (!make_overlay(goroot, &ours, users, overlay, sizeof overlay))
        return RF_EXIT_USAGE;
    snprintf(flag, sizeof flag, "-overlay=%s", overlay);
    if (!overlay_works(go, flag))
        return RF_EXIT_USAGE;
    char **command = rf_zeroed((size_t)count + 5, sizeof *command);
    command[0] = (char *)go;
    command[1] = (char *)verb;
    command[2] = "-race";
    command[3] = flag;
    memcpy(command + 4, argv + i + 1, (size_t)count * sizeof *command);
    execvp(go, command);
    fprintf(stderr, WHO ": %s: %s; REDFLAG_GO names the go command\n", go, strerror(errno));
    return RF_EXIT_USAGE;
}
