//go:build sabotage_no_pending

package engine

const (
	sabotageNoPending = true
	sabotagePruneAll  = false
)
