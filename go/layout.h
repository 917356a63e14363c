/* Where the detector's data lie in a Go program: what its C knows, and the instructions that cli/go_fast.c puts into Go's runtime.
 *
 * The cell of an address is 16 bytes at GO_CELLS_AT + 2 * (addr & GO_ADDRESS_MASK): W, of which the top
 * bits are flags and, from GO_MASK_SHIFT on, one for each byte that has this history, and R. Below them are epochs, with a time in the
 * lowest GO_TIME_BITS. Where the two were lies as far from GO_NOTES_AT on as the cell from GO_CELLS_AT: a return address from GO_CODE of
 * the goroutine on, in the upper half, and the note of the stack in the lower one. GO_TOUCHED_AT has a byte for 1 << GO_TOUCHED_SHIFT
 * bytes of the program that says whether one of their cells was changed.
 * R with its top bit set is the number of a set of readers, GO_READER_SIZE bytes at GO_READERS_AT each. A goroutine begins with its
 * epoch, then the place of the next frame, the end of the room for frames, and its beginning; then the array of times that it knows by
 * slot, its own epoch again, and one more that it knows. GO_ASKED: notes of calls and stacks that were asked for last;
 * GO_SITES: where atomic operations were. GO_EXTRAS_AT has a pointer for each granule to what begins with its first object.
 */
#ifndef RF_GO_LAYOUT_H
#define RF_GO_LAYOUT_H

#define GO_ADDRESS_MASK 0x3fffffffff8
#define GO_CELLS_AT 0x100000000000
#define GO_NOTES_AT 0x200000000000
#define GO_EXTRAS_AT 0x280000000000
#define GO_TOUCHED_AT 0x320000000000
#define GO_TOUCHED_SHIFT 8
#define GO_MASK_SHIFT 52
#define GO_FLAG_BITS 12
#define GO_SPLIT_BIT 61
#define GO_OTHERS_BIT 60
#define GO_FLAG_SPLIT 0x200 /* from GO_MASK_SHIFT on */
#define GO_FLAG_OTHERS 0x100
#define GO_TIME_BITS 28
#define GO_READERS_AT 0x300000000000
#define GO_READER_SIZE 64
#define GO_READER_SHIFT 6
#define GO_READER_EPOCHS 24 /* four of them */

#define GO_NOW 0
#define GO_TOP 8
#define GO_END 16
#define GO_FRAMES 24
#define GO_KNOWN 32
#define GO_OWN 40
#define GO_EXTRA 48
#define GO_USED 56
#define GO_CODE 64
#define GO_IGNORE 72
#define GO_CHANGED 80
#define GO_LIMIT 88
#define GO_ASKED 128
#define GO_ASKED_COUNT 64 /* a power of two */
#define GO_SITES 1152
#define GO_SITES_COUNT 16 /* a power of two */
#define GO_SITE_SHIFT 6
#define GO_SITE_CALLER 0
#define GO_SITE_CALL 8
#define GO_SITE_FRAME 16
#define GO_SITE_BELOW 24
#define GO_SITE_NOTE 28
#define GO_SITE_LOCKS 32
#define GO_TIMES_LEN 4
#define GO_TIMES 16
#define GO_TIMES_FIRST 12
#define GO_FRAME_SIZE 16
#define GO_FRAME_NOTE 8

#define GO_OBJECT_SIZE 4
#define GO_OBJECT_ADDR 8
#define GO_OBJECT_KNOWN 16
#define GO_OBJECT_OWN 24
#define GO_OBJECT_EXTRA 32
#define GO_OBJECT_WROTE 40
#define GO_OBJECT_READ 48
#define GO_OBJECT_WROTE_NOTE 56
#define GO_OBJECT_READ_NOTE 60

#endif
