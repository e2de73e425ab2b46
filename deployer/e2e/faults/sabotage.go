//go:build linux

package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Sabotage is a deliberate fault of the program, made by one change of its source, and the verb that it breaks.
type Sabotage struct {
	Name, Verb string
	then       Then
	// Fault describes the fault in the report.
	Fault string
	// In file, from occurs once, and is replaced by to.
	file, from, to string
}

// Sabotages prove that the checks of this package can fail.
var Sabotages = []*Sabotage{
	{
		Name: "no-pending", Verb: "upgrade", then: Back, Fault: "the pending revision is not saved before the first change",
		file: "deployer/engine/begin.go", from: "if err = r.Save(ctx, &r.state); errors.Is(err, record.ErrStale) {", to: "if errors.Is(err, record.ErrStale) {",
	},
	{
		Name: "prune-all", Verb: "activate over another version", then: Again, Fault: "protected kinds of objects are deleted as a side effect",
		file: "deployer/engine/decide.go", from: "case protected[kindOfRef(s.Object).GroupKind()] && !named:", to: "case false:",
	},
}

// overlay writes the changed file into dir, with the file that makes 'go build' read it in place of the original, and returns the
// path of the latter. It fails when the source no longer has the text to replace.
func (s *Sabotage) overlay(source, dir string) (string, error) {
	original, err := filepath.Abs(filepath.Join(source, s.file))
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	if n := bytes.Count(text, []byte(s.from)); n != 1 {
		return "", fmt.Errorf("sabotage %s: %s has %q %d times, want once", s.Name, s.file, s.from, n)
	}
	changed, overlay := filepath.Join(dir, s.Name+".go"), filepath.Join(dir, s.Name+".json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{original: changed}})
	if err != nil {
		return "", err
	}
	return overlay, errors.Join(
		os.WriteFile(changed, bytes.Replace(text, []byte(s.from), []byte(s.to), 1), 0o600),
		os.WriteFile(overlay, replace, 0o600))
}

// Finds kills the verb of a sabotage at its changes until something is wrong, and returns what; "" is nothing.
func (l *Lane) Finds(ctx context.Context, s *Sabotage) (string, error) {
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
