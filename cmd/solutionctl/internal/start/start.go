// Package start keeps the garbage collector from running while the program starts.
//
// Libraries allocate 7 MB before main, nearly all of which stays in use. Go collects at 4 MB of heap, therefore twice during each start, and a
// quarter of the start's processor time was spent on it. A short command now ends before the first collection.
//
// It has to be set before the packages that allocate are initialised. Go initialises packages in the order of their import paths, as soon as
// what they import is initialised: this package imports little, and comes before them. TestStart of cmd/solutionctl notices when it no longer does.
package start

import "runtime/debug"

// Percentages as in GOGC. The heap of the first collection is 4 MB at the default, and grows with the percentage. No command sets startPercent
// for itself, so that its own setting is recognized, and stays.
const (
	defaultPercent = 100
	startPercent   = 310
)

func init() { //nolint:gochecknoinits // main is too late: the collections take place before it
	postpone()
}

// postpone lets the heap grow to 12 MB before a collection. A GOGC in the environment stays in force.
func postpone() { swap(defaultPercent, startPercent) }

// End makes the default apply: the first collection takes place at the next allocation, beside the work. Commands that end at once lose nothing
// by it, and longer ones take less memory than if they waited for 12 MB.
func End() { swap(startPercent, defaultPercent) }

// swap replaces a percentage, unless another one is in force.
func swap(from, to int) {
	if percent := debug.SetGCPercent(to); percent != from {
		debug.SetGCPercent(percent)
	}
}
