package trust_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/bundle"
	"github.com/solutionctl/solutionctl/sign/trust"
)

func TestState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	db := func(version string) bundle.Solution { return bundle.Solution{Name: "db", Version: version} }
	check(t, trust.UpdateState(path, func(s *trust.State) error {
		s.Record(db("1.2.0"), "aa", []string{"k1"}, trust.Keys(nil))
		s.Record(db("1.1.0"), "bb", []string{"k1", "k2"}, trust.Keys(nil))
		return nil
	}))
	dev := func(version string) bundle.Solution { return bundle.Solution{Name: "dev", Version: version} }
	check(t, trust.UpdateState(path, func(s *trust.State) error {
		s.Record(dev("1.2.0-rc.1"), "aa", []string{"k1"}, trust.Keys(nil))
		return nil
	}))
	s, err := trust.LoadState(path)
	check(t, err)
	for _, test := range []struct {
		solution bundle.Solution
		digest   string
		revoked  []string
		code     report.Code
	}{
		{db("1.3.0"), "cc", nil, ""},
		{db("1.2.0"), "aa", nil, ""},
		{db("1.2.0"), "cc", nil, report.Replaced},
		{db("1.1.9"), "cc", nil, report.Downgrade},
		{db("1.2.0-rc.1"), "cc", nil, report.Downgrade},
		{db("1.1.9"), "cc", []string{"k1"}, ""},
		{db("latest"), "cc", nil, report.Downgrade},
		{dev("1.2.0-rc.1"), "cc", nil, ""},
		{dev("1.2.0-rc.0"), "cc", nil, report.Downgrade},
		{dev("1.2.0"), "cc", nil, ""},
		{bundle.Solution{Name: "other", Version: "0.1.0"}, "cc", nil, ""},
	} {
		if err := s.Check(test.solution, test.digest, test.revoked); report.CodeOf(err) != test.code {
			t.Errorf("%v %v: %v, want code %q", test.solution, test.revoked, err, test.code)
		}
	}
	for text, code := range map[string]report.Code{
		`{"formatVersion": 1, "floors": {"db": {"k1": {"version": "latest", "sha256": "aa"}}}}`: "",
		`{"FormatVersion": 1}`: report.TrustStore, `{"formatVersion": 1, "floors": {"db": {"k1": {"Version": "1.0.0", "sha256": "aa"}}}}`: report.TrustStore,
		`{"formatVersion": 2, "news": 1}`: report.Refused, `{"formatVersion": 1, "x": 1}`: report.TrustStore, `{}`: report.TrustStore, ``: report.TrustStore,
	} {
		check(t, os.WriteFile(path, []byte(text), 0o600))
		if _, err := trust.LoadState(path); report.CodeOf(err) != code || err != nil && strings.Contains(err.Error(), "%!") {
			t.Errorf("state %q: %v, want code %q", text, err, code)
		}
	}
	check(t, os.Remove(path))
	check(t, os.Symlink("nothing", path))
	if _, err := trust.LoadState(path); report.CodeOf(err) != report.TrustStore {
		t.Errorf("a state that is a link to nothing: %v", err)
	}
}

// TestFloorThatCannotBeRead is not the same as no floor.
func TestFloorThatCannotBeRead(t *testing.T) {
	db := bundle.Solution{Name: "db", Version: "1.0.0"}
	s := &trust.State{Floors: map[string]map[string]trust.Floor{"db": {"k1": {Version: "1.O.0", SHA256: "aa"}}}}
	if err := s.Check(db, "aa", nil); report.CodeOf(err) != report.TrustStore {
		t.Errorf("%v", err)
	}
	if err := s.Check(db, "aa", []string{"k1"}); err != nil {
		t.Errorf("a revoked key: %v", err)
	}
	if err := s.Check(bundle.Solution{Name: "other", Version: "1.0.0"}, "aa", nil); err != nil {
		t.Errorf("another Solution: %v", err)
	}
	s.Record(bundle.Solution{Name: "new", Version: "latest"}, "aa", []string{"k1"}, trust.Keys(nil))
	if err := s.Check(bundle.Solution{Name: "new", Version: "1.0.0"}, "aa", nil); err != nil {
		t.Errorf("what cannot be compared was recorded: %v", err)
	}
}

// TestUpdateState lets many change one state at the same time.
func TestUpdateState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lib", "state.json")
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			if err := trust.UpdateState(path, func(s *trust.State) error {
				s.Record(bundle.Solution{Name: fmt.Sprint("db", i), Version: "1.0.0"}, "aa", []string{"k1"}, trust.Keys(nil))
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	s, err := trust.LoadState(path)
	check(t, err)
	if len(s.Floors) != 20 {
		t.Errorf("%d of 20 changes are left", len(s.Floors))
	}
	failure := errors.New("no")
	if err := trust.UpdateState(path, func(*trust.State) error { return failure }); !errors.Is(err, failure) {
		t.Errorf("%v", err)
	}
	if entries := must(os.ReadDir(filepath.Dir(path))); len(entries) != 1 {
		t.Errorf("left %v", entries)
	}
}
