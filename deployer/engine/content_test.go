package engine_test

import (
	"strings"
	"testing"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestObjectsOfARevision checks that the stored objects of a revision are unchanged, and that a release whose content is missing is reported.
func TestObjectsOfARevision(t *testing.T) {
	w := newFixture(t)
	w.deploy(w.release("1.0.0", settings), engine.PlanOptions{})
	state, err := w.State(t.Context(), demo)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := w.Objects(t.Context(), demo, state.Current)
	if err != nil || len(objects) != 1 || objects[0].GetName() != "settings" {
		t.Errorf("%v, %v", objects, err)
	}
	other := &record.State{Key: record.Key{Namespace: "shop", Name: "web"}, Current: state.Current}
	releases, unread, err := w.Deployed(t.Context(), []*record.State{state, other})
	if err != nil || len(releases) != 1 || releases[0].Key != demo || len(unread) != 1 || unread[other.Key] == nil {
		t.Errorf("%v, %v, %v", releases, unread, err)
	}
	content := "content." + demo.ID() + "." + strings.TrimPrefix(state.Current.Content, "sha256:")
	if err = w.Cluster.Delete(t.Context(), w.server.Object("Secret", cluster.SystemNamespace, content), cluster.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err = w.Objects(t.Context(), demo, state.Current)
	if report.CodeOf(err) != report.Corrupt || !strings.Contains(err.Error(), "objects of shop/demo, revision 1") || !strings.Contains(strings.Join(report.Hints(err), ""), "deploy repair --records") {
		t.Errorf("without its content: %v", err)
	}
}
