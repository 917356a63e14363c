/* What `redflag caper` and the runtime agree on: a variable of the environment names the file of sites.
 *
 * Lines "- SITE PLACE" and "+ SITE PLACE": not seen to escape, or seen. SITE is BUILD-ID+0xOFFSET, or MODULE+0xOFFSET for a module without
 * a build id; the offset is that of the last byte of the call. A '-' becomes '+' by one write of one byte to the file, and never goes
 * back. Lines are only added, so that an offset in the file stays what it is; a site may have several lines, one '+' of which counts. */
#ifndef RF_CORE_CAPER_H
#define RF_CORE_CAPER_H

#define RF_CAPER_VARIABLE "REDFLAG_CAPER"

#endif
