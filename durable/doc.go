// Package durable is the one way in which a file becomes durable: written beside its place, brought to the medium, renamed, and
// the rename brought to the medium as well.
//
// Start with [WriteFile]. What is large or written piece by piece starts with [Create]. When the machine loses its power at any
// moment, readers find what was there before or what was written, complete, and never neither; what was reported as
// written is there afterwards. That takes four calls in the right order (POSIX promises nothing about a rename that was not
// followed by an fsync of the directory), and forgetting one of them shows in no test that does not cut the power: see
// TestPowerCut in cmd/solutionctl, which does so with every command that writes files.
//
// The package knows nothing of what is in the files. It never follows a symbolic link at the end of a path that it writes.
package durable
