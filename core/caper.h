/* What `redflag caper` and the runtime agree on: a variable of the environment names the file of sites.
 *
 * Lines "- SITE PLACE" and "+ SITE PLACE": not seen to escape, or seen. SITE is BUILD-ID+0xOFFSET, or MODULE+0xOFFSET for a module without
 * a build id; the offset is that of the last byte of the call. A '-' becomes '+' by one write of one byte to the file, and never goes
 * back. Lines are only added, so that an offset in the file stays what it is; a site may have several lines, one '+' of which counts.
 *
 * A second variable names a list, if facts of a static analysis are there (static/facts.h), of what this run need not look at:
 *     ~ SITE    no memory that has ever escaped can be accessed there: asleep
 *     o SITE    what is stored there is no address that has to be followed
 *     a SITE    calls of malloc there, or "stack", were known to make memory that escapes when the list was made
 * While there is such a list, the file of sites gets lines "a SITE" for allocations whose blocks escape and were not in the list, and
 * "! SITE" for the same while some site is asleep (guest/origins.h). `redflag caper` adds "p SITE FILE:LINE", the place of such a call, and
 * "z" after a run that found nothing new: from then on sites may be asleep; "c SITE PLACE" and "k" are its own, too.
 *
 * A SITE may be a call of a function of libc that the runtime intercepts: then it is the function that accesses the memory. */
#ifndef RF_CORE_CAPER_H
#define RF_CORE_CAPER_H

#define RF_CAPER_VARIABLE "REDFLAG_CAPER"
#define RF_CAPER_IDLE_VARIABLE "REDFLAG_CAPER_IDLE"

#endif
