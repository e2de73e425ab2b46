package records_test

import (
	"fmt"
	"testing"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/records"
)

// TestPreloadedOnManyNodes records fifty images of 10,000 nodes, half of which are gone afterwards.
func TestPreloadedOnManyNodes(t *testing.T) {
	b := deployertest.New(t)
	b.Server.Put(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+cluster.SystemNamespace+"}}")
	var images, existing []string
	for i := range 50 {
		images = append(images, fmt.Sprintf("registry.solutionctl.invalid/solution-1.0.0/image-%02d:1.0.0@sha256:%064d", i, i))
	}
	nodes := map[string]*records.NodeImages{}
	for i := range 10_000 {
		name := fmt.Sprintf("worker-%05d", i)
		nodes[name] = &records.NodeImages{Images: images}
		if i%2 == 0 {
			existing = append(existing, name)
		}
	}
	record := func(nodes map[string]*records.NodeImages, existing []string) (recorded, bytes int) {
		t.Helper()
		if err := b.Records.RecordPreloaded(t.Context(), nodes, existing); err != nil {
			t.Fatal(err)
		}
		known, err := b.Records.Preloaded(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, value := range b.Server.Object("ConfigMap", cluster.SystemNamespace, records.PreloadName).Object["data"].(map[string]any) {
			bytes += len(value.(string))
		}
		return len(known.Nodes), bytes
	}
	if n, bytes := record(nodes, nil); n != len(nodes) {
		t.Errorf("%d nodes, %d bytes", n, bytes)
	} else {
		t.Logf("%d bytes", bytes)
	}
	if n, bytes := record(nil, existing); n != len(existing) {
		t.Errorf("%d nodes, %d bytes", n, bytes)
	}
}
