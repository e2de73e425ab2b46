// Package durable writes files so that they survive a loss of power: beside their place, synced, renamed, and with the directory
// synced as well.
//
// Start with [WriteFile]. For large files, or to write piece by piece, start with [Create]. After a loss of power at any moment,
// readers find the complete old content or the complete new content, and content that was reported as written is never lost. That
// needs four calls in the right order (POSIX promises nothing about a rename without an fsync of the directory), and only a test
// that simulates the loss detects a missing one: see TestPowerCut in cmd/solutionctl, which covers every command that writes
// files.
//
// [NewScratch] is the opposite: a temporary file of which nothing stays.
//
// The package does not interpret the content. It never follows a symbolic link at the end of a path that it writes.
package durable
