// Package chunk computes and checks the digests of the pieces of a large file.
//
// A file is cut into chunks of equal size, and a [List] holds the SHA-256 digest of each. With a trusted list, the file
// can be checked by several processors at once ([Verify]), which finds the bad bytes, and be read without a moment
// between the check and the use ([NewReader]).
//
// [Sum] computes the list together with the digest of the whole file in one read. A [Follower] does the same while the
// file is still being written.
//
// The package does not know where a list comes from; package bundle signs it.
package chunk
