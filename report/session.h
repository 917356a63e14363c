/* The reporter's side of a run: messages of the runtime in, reports and answers out. `redflag reporter` gives it the messages.
 *
 * 1. Every message has one answer, a line:
 *        hello    ready | bad TEXT (this run cannot go on: the suppressions cannot be read, an option is none)
 *        report   shown SUMMARY | suppressed | failed TEXT (it could not be written: the runtime shows it itself)
 *        finish   done | failed TEXT
 * 2. A stream belongs to the program: it lends its descriptor with a message, and takes it back with the answer.
 */
#ifndef RF_REPORT_SESSION_H
#define RF_REPORT_SESSION_H

#include <stddef.h>

#define RF_ANSWER 1024

struct rf_session;

struct rf_session *rf_session_new(void);
/* `text` is one message, and is changed. */
void rf_session_message(struct rf_session *session, char *text, size_t length, int stream, char answer[RF_ANSWER]);
void rf_session_free(struct rf_session *session);

#endif
