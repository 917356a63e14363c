/* Words of a compiler's command line. */
#ifndef RF_CLI_CC_WORDS_H
#define RF_CLI_CC_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* Ends with NULL, unless there was never one. Words are not freed: the process soon becomes another one, or ends. */
struct rf_words {
    char **word;
    size_t count;
};

void rf_words_add(struct rf_words *words, const char *word);
/* Splits as a shell and as the compilers' response files do: blanks, quotes, backslashes. */
void rf_words_split(struct rf_words *words, const char *text);
/* The words of a response file, which may name others; false: it cannot be read, which is the compiler's to complain about. */
bool rf_words_of_file(struct rf_words *words, const char *path);
#define RF_WORDS_DEPTH 20
/* The same words, but for each @FILE those that are in it. */
void rf_words_expand(struct rf_words *to, const struct rf_words *from, unsigned depth);
/* Runs the command, which ends with NULL; its output goes to `out`, or nowhere (-1), and so do its complaints. True: it ended well. */
bool rf_words_run(char *const *command, int out);

bool rf_word_starts(const char *text, const char *with);
bool rf_word_in(const char *const *list, const char *word); /* the list ends with NULL */

/* Takes an option of ours out of the arguments; false: it was not there. */
bool rf_cc_wants(const char *option, int *argc, char **argv);
/* An option of gcc's or clang's whose value is the next word. */
bool rf_cc_takes_another(const char *word);
/* Of an input: is it C or C++, by what -x has said, or else (NULL) by its name? */
bool rf_cc_is_source(const char *name, const char *language);

#endif
