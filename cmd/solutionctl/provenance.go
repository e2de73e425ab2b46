package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/solutionctl/solutionctl/cmd/solutionctl/internal/console"
	"github.com/solutionctl/solutionctl/schema"
)

// printProvenance shows how an archive was made. The signer chose its texts, and can have used another program.
func printProvenance(w *console.Stream, s *schema.ProvenanceStatement) {
	builder, made := s.Predicate.RunDetails.Builder, s.Predicate.BuildDefinition
	fmt.Fprintf(w, "\nmade by %s", console.Clean(builder.ID))
	for _, name := range slices.Sorted(maps.Keys(builder.Version)) {
		fmt.Fprintf(w, ", %s %s", console.Clean(name), console.Clean(builder.Version[name]))
	}
	fmt.Fprintf(w, "\nas %s\n", console.Clean(made.BuildType))
	for _, name := range slices.Sorted(maps.Keys(made.ExternalParameters)) {
		value, err := json.Marshal(made.ExternalParameters[name])
		if err != nil {
			w.Fail(err)
		}
		fmt.Fprintf(w, "  %s: %s\n", console.Clean(name), console.Clean(string(value)))
	}
	if len(made.ResolvedDependencies) == 0 {
		return
	}
	fmt.Fprintln(w)
	table := &console.Table{Columns: []string{"MADE OF", "ORIGIN", "DIGEST"}}
	for _, d := range made.ResolvedDependencies {
		table.Add(d.Name, d.URI, d.DigestText())
	}
	table.Print(w)
}
