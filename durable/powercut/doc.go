// Package powercut simulates the content of a disk after a loss of power while a command writes files. It is for tests, on Linux.
//
// The model is the minimum that POSIX promises: the content of a file is on the medium after its fsync, and a name in a directory
// after the fsync of the directory. Content without an fsync is there completely or not at all; changes of names without one are
// there in any combination, each of them complete.
package powercut
