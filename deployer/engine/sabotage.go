//go:build !sabotage_no_pending && !sabotage_prune_all

package engine

// Faults that a build with the tag of the same name has. They are the proof that the tests which kill the program at every
// step would find them; no release has one.
const (
	sabotageNoPending = false // nothing is written down before the first change
	sabotagePruneAll  = false // what is never deleted as a side effect is
)
