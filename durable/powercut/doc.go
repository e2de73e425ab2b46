// Package powercut shows what a disk may hold when the power fails while a command writes files. It is for tests, on Linux.
//
// The model is what POSIX promises and no more: the content of a file is on the medium after its fsync, and a name
// in a directory after the fsync of that directory. What was not synced may be there or not: contents all or none of them, changes of
// names in any combination, of which each is whole.
package powercut
