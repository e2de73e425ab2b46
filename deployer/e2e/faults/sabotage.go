//go:build linux

package faults

import (
	"context"
	"errors"
	"slices"
)

// Sabotage is a build tag of the engine that gives it a fault, and where that has to show.
type Sabotage struct {
	Tag, Verb string
	then      Then
	// Fault says what is wrong with the program.
	Fault string
}

// Sabotages prove that what is tested here can fail.
var Sabotages = []Sabotage{
	{"sabotage_no_pending", "upgrade", Back, "nothing is written down before the first change"},
	{"sabotage_prune_all", "activate over another version", Again, "what is never deleted as a side effect is deleted"},
}

// Finds kills the verb of a sabotage at its changes until something is wrong, and says what; "" is nothing.
func (l *Lane) Finds(ctx context.Context, s Sabotage) (string, error) {
	at := slices.IndexFunc(Verbs, func(v *Verb) bool { return v.Name == s.Verb })
	clean, err := l.Clean(ctx, Verbs[at])
	if found := (*wrong)(nil); errors.As(err, &found) {
		return "not killed: " + found.text, nil
	}
	if err != nil {
		return "", err
	}
	// What is killed late has done more.
	for _, point := range slices.Backward(clean.Points(Verbs[at])) {
		if point.Then != s.then || !clean.changes(point) {
			continue
		}
		result, err := l.Kill(ctx, Verbs[at], point)
		if err != nil {
			return "", err
		}
		if result.Outcome == Bad {
			return result.String() + ": " + result.Detail, nil
		}
	}
	return "", nil
}
