package plan

import (
	"testing"

	"github.com/solutionctl/solutionctl/kube/images"
)

func TestMirrorNotice(t *testing.T) {
	got := mirrorNotice("cache", []images.Use{
		{Image: "redis:7", Object: "Db/a", Path: "spec.image"}, {Image: "quay.io/acme/b:1", Object: "Db/a", Path: "spec.sidecar.image"}, {Image: "redis:8", Object: "Db/b", Path: "spec.image"},
	})
	want := "component cache names images of the archive in parts, which keep their original names. " +
		"Nodes need mirrors for them ('solutionctl deploy node config --mirror HOST'):\n" +
		"  Db/a, spec.image: docker.io/library/redis:7\n  Db/a, spec.sidecar.image: quay.io/acme/b:1\n  Db/b, spec.image: docker.io/library/redis:8"
	if got != want {
		t.Errorf("got %s", got)
	}
}
