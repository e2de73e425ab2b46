// Package trace runs a command and stands still at each of its system calls that changes a file: to count them, to end the
// process at one of them, or to look at the files meanwhile. Start with Tracer. It is for tests, on Linux.
package trace
