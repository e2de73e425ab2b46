// Package recompress finds out how a layer of an image was compressed, so that it can be compressed again to the same bytes.
//
// [Find] tries the compressors that the tools for images use, and proves the answer by every byte. [NewReader] decompresses, whatever
// has compressed. A layer of any other program, such as gzip, pigz or zstd, has no [Codec].
//
// What a codec writes may change with the version of Go and of its library. A digest decides whether the bytes are the same.
package recompress
