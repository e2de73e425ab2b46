package record

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// TestRoom: a revision that is begun can be recorded when its objects have been created, and removed later.
func TestRoom(t *testing.T) {
	size := func(s *State) int {
		t.Helper()
		data, err := s.document("1.0.0")
		if err != nil {
			t.Fatal(err)
		}
		return len(new(compressors).compress(data))
	}
	for _, test := range []struct {
		objects int
		ok      bool
	}{{1000, true}, {5000, true}, {9000, false}, {50000, false}} {
		t.Run(fmt.Sprint(test.objects), func(t *testing.T) {
			s := &State{Key: Key{Namespace: "site", Name: "shop"}, Pending: &schema.DeploymentRevision{Number: 1}}
			for i := range test.objects {
				hash := sha256.Sum256([]byte(fmt.Sprint(i)))
				s.Pending.Objects = append(s.Pending.Objects, schema.DeployedObject{
					ObjectRef: schema.ObjectRef{APIVersion: "v1", Kind: "ConfigMap", Namespace: "site", Name: fmt.Sprint("object-", i)}, Hash: hex.EncodeToString(hash[:]),
				})
			}
			err := s.checkRoom(size(s), 0)
			if !test.ok {
				if report.CodeOf(err) != report.Refused || !strings.Contains(err.Error(), fmt.Sprintf("with the %d objects", test.objects)) {
					t.Errorf("%s: %v", report.CodeOf(err), err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for i := range s.Pending.Objects {
				o := &s.Pending.Objects[i]
				o.UID, o.ResourceVersion, o.Generation = string(uuid.NewUUID()), fmt.Sprint(1000000+7*i), 1
			}
			s.Current = s.Pending
			if n := size(s); n > cluster.MaxData {
				t.Errorf("the record has %d bytes when the objects are removed", n)
			}
			if err = s.checkRoom(size(s), 0); err != nil {
				t.Errorf("the objects cannot be removed: %v", err)
			}
			t.Logf("%d bytes for each object", size(s)/2/test.objects)
		})
	}
}
