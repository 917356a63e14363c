/* Where the detector's data lie in a Go program: what its C knows, and the instructions that cli/go_fast.c puts into Go's runtime.
 *
 * The cell of an address is 16 bytes at GO_CELLS_AT + 2 * (addr & GO_ADDRESS_MASK): W, of which the top
 * bits are flags and, from GO_MASK_SHIFT on, one for each byte that has this history, and R. Below them are epochs, with a time in the
 * lowest GO_TIME_BITS.
 * R with its top bit set is the number of a set of readers, GO_READER_SIZE bytes at GO_READERS_AT each. A goroutine begins with its
 * epoch, then the place of the next frame, the end of the room for frames, and its beginning.
 */
#ifndef RF_GO_LAYOUT_H
#define RF_GO_LAYOUT_H

#define GO_ADDRESS_MASK 0x3fffffffff8
#define GO_CELLS_AT 0x100000000000
#define GO_MASK_SHIFT 52
#define GO_FLAG_BITS 12
#define GO_TIME_BITS 28
#define GO_READERS_AT 0x300000000000
#define GO_READER_SIZE 64
#define GO_READER_SHIFT 6
#define GO_READER_EPOCHS 24 /* four of them */

#define GO_NOW 0
#define GO_TOP 8
#define GO_END 16
#define GO_FRAMES 24
#define GO_FRAME_SIZE 16
#define GO_FRAME_NOTE 8

#endif
