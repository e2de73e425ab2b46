//go:build sabotage_prune_all && !sabotage_no_pending

package engine

const (
	sabotageNoPending = false
	sabotagePruneAll  = true
)
