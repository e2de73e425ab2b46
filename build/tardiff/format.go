package tardiff

// header begins a patch.
const header = "tardf1\n\x00"

// operation is the first byte of an operation. Its size follows as an unsigned varint, and then as many bytes of data, if it has data.
type operation byte

const (
	opData operation = iota // makes the data
	opOpen                  // opens the file of the old tar file whose name is the data, at its first byte
	opCopy                  // makes size bytes of the open file
	opAdd                   // makes the sums, modulo 256, of the data and as many bytes of the open file
	opSeek                  // goes to offset size of the open file
)

// window is the size in bytes of the window of the stream that [Diff] writes; [Apply] accepts twice as much.
const window = 4 << 20
