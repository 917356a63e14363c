/* redflag cc --sites FILE: only what holds candidate sites is instrumented, so that production pays for nothing else.
 *
 * 1. FILE has a name of sites in each line (FILE:LINE, FILE:LINE:COLUMN or @FUNCTION; sites/list.h), or several with blanks or commas
 *    between them, as in lists of pairs; or lines of `redflag sites`. '#' begins a comment.
 * 2. A source that neither is nor includes a file of a candidate is compiled without -fsanitize=thread.
 * 3. Of the others, clang leaves out all functions that hold no candidate, by an ignore list. Which function holds a line is asked of the
 *    debug information of an object that is made for this, without optimisation, and thrown away. gcc has no such list: it
 *    instruments the whole file.
 * 4. Where it cannot be known, more is instrumented, not less: preprocessed sources, standard input, a compiler that fails. A call that
 *    compiles several sources instruments all of them if one needs it.
 */
#ifndef RF_CLI_CC_SITES_H
#define RF_CLI_CC_SITES_H

#include <stdbool.h>

/* Takes `--sites FILE` or `--sites=FILE` out of the arguments. NULL: it was not there; "": there was no FILE. */
const char *rf_cc_wants_sites(int *argc, char **argv);

struct rf_cc_sites {
    bool instrument;
    char ignore_list[64]; /* a path that the compiler can read after exec; "": none */
};

/* `compiler` and `arguments` end with NULL. 0, or the exit status, when something has been said. */
int rf_cc_sites(struct rf_cc_sites *sites, const char *file, char *const *compiler, char *const *arguments, bool clang,
                const char *who);

#endif
