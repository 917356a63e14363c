/* See cli/cc_words.h. */
#include "cli/cc_words.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trace/grow.h"

void rf_words_add(struct rf_words *words, const char *word)
{
    words->word = rf_resize(words->word, (words->count + 2) * sizeof *words->word);
    words->word[words->count++] = (char *)word;
    words->word[words->count] = NULL;
}

void rf_words_split(struct rf_words *words, const char *text)
{
    size_t length = strlen(text);
    while (*text) {
        while (isspace((unsigned char)*text))
            text++;
        if (!*text)
            return;
        char *word = rf_zeroed(length + 1, 1), *end = word, quote = 0;
        for (; *text && (quote || !isspace((unsigned char)*text)); text++) {
            if (*text == '\\' && quote != '\'' && text[1])
                *end++ = *++text;
            else if (quote ? *text == quote : *text == '"' || *text == '\'')
                quote = quote ? 0 : *text;
            else
                *end++ = *text;
        }
        rf_words_add(words, word);
    }
}

bool rf_words_of_file(struct rf_words *words, const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    char *text = NULL;
    size_t size = 0;
    if (getdelim(&text, &size, 0, file) > 0)
        rf_words_split(words, text);
    fclose(file);
    free(text);
    return true;
}

void rf_words_expand(struct rf_words *to, const struct rf_words *from, unsigned depth)
{
    for (size_t i = 0; i < from->count; i++) {
        struct rf_words inside = { NULL, 0 };
        if (from->word[i][0] == '@' && depth < RF_WORDS_DEPTH && rf_words_of_file(&inside, from->word[i] + 1))
            rf_words_expand(to, &inside, depth + 1);
        else
            rf_words_add(to, from->word[i]);
    }
}

bool rf_word_starts(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

bool rf_word_in(const char *const *list, const char *word)
{
    for (; *list; list++)
        if (!strcmp(*list, word))
            return true;
    return false;
}

bool rf_cc_is_source(const char *name, const char *language)
{
    static const char *const languages[] = { "c", "c++", "cpp-output", "c++-cpp-output", NULL };
    static const char *const endings[] = { ".c", ".i", ".cc", ".cp", ".cxx", ".cpp", ".c++", ".C", ".CPP", ".ii", NULL };
    const char *dot = strrchr(name, '.');
    return language ? rf_word_in(languages, language) : dot && rf_word_in(endings, dot);
}

bool rf_cc_wants(const char *option, int *argc, char **argv)
{
    int kept = 0;
    for (int i = 0; i < *argc; i++)
        if (strcmp(argv[i], option) != 0)
            argv[kept++] = argv[i];
    bool wants = kept < *argc;
    *argc = kept;
    argv[kept] = NULL;
    return wants;
}

bool rf_cc_takes_another(const char *word)
{
    static const char *const options[] = {
        "-o", "-x", "-I", "-D", "-U", "-L", "-B", "-T", "-u", "-e", "-z", "-A", "-G", "-h", "-include", "-imacros", "-include-pch",
        "-isystem", "-iquote", "-idirafter", "-iprefix", "-iwithprefix", "-iwithprefixbefore", "-isysroot", "-imultilib", "-MF", "-MT",
        "-MQ", "-MJ", "-Xlinker", "-Xpreprocessor", "-Xassembler", "-Xclang", "-mllvm", "--param", "-aux-info", "-dumpbase",
        "-dumpbase-ext", "-dumpdir", "-target", "-wrapper", "-gcc-toolchain", "--sysroot", "-specs", "-arch", "-rpath", "--serialize-diagnostics",
        "-serialize-diagnostics", "-isystem-after", "-stdlib++-isystem", NULL };
    return rf_word_in(options, word);
}

bool rf_words_run(char *const *command, int out)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        int null = open("/dev/null", O_RDWR);
        dup2(null, 0);
        dup2(out >= 0 ? out : null, 1);
        dup2(null, 2);
        execvp(command[0], command);
        _exit(127);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
