package preload_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/deployer/host/cri"
	"github.com/solutionctl/solutionctl/deployer/preload"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// machine is a container runtime in memory, for failures that a real one cannot be made to have. The scripts of deployer/e2e have a real one.
type machine struct {
	images map[string]bool // by name with digest, or with tag: is it pinned?
	ours   map[string]bool
	fixed  bool             // keeps images by its configuration only
	old    bool             // does not report labels
	wrong  bool             // the tags of the registry stand for other images
	errs   map[string]error // by image
	pulls  []string
	calls  int
}

func (m *machine) Version(context.Context) (string, error) { return "containerd v2", m.errs["version"] }

func plain(reference string) string {
	name, digest, found := strings.Cut(reference, "@")
	if !found {
		return name
	}
	return name[:strings.LastIndex(name, ":")] + "@" + digest
}

func tagged(reference string) string {
	name, _, _ := strings.Cut(reference, "@")
	return name
}

func (m *machine) Status(_ context.Context, reference string) (*cri.Image, error) {
	pinned, there := m.images[plain(reference)]
	if !there {
		return nil, nil //nolint:nilnil // as the real one
	}
	image := &cri.Image{Pinned: pinned && !m.old}
	if !m.wrong {
		image.Digests = []string{plain(tagged(reference) + "@sha256:" + strings.Repeat("a", 64))}
	}
	return image, nil
}

func (m *machine) Tag(_ context.Context, name, further string) error {
	m.calls++
	if _, there := m.images[name]; !there {
		return fmt.Errorf("image %s: not found", name)
	}
	m.images[further] = false
	return nil
}

func (m *machine) Pull(_ context.Context, reference string) error {
	m.pulls = append(m.pulls, reference)
	if err := m.errs[reference]; err != nil {
		return err
	}
	m.images[plain(reference)] = false
	return nil
}

func (m *machine) Kept(context.Context) (map[string]bool, error) {
	if m.fixed {
		return nil, cri.ErrNoKeeping
	}
	kept := map[string]bool{}
	for name, pinned := range m.images {
		if pinned {
			kept[name] = m.ours[name]
		}
	}
	return kept, nil
}

func (m *machine) Keep(_ context.Context, name string) error {
	m.calls++
	if _, there := m.images[name]; !there {
		return fmt.Errorf("image %s: not found", name)
	}
	m.images[name], m.ours[name] = true, true
	return nil
}

func (m *machine) Release(_ context.Context, name string) error {
	m.calls++
	m.images[name] = false
	delete(m.ours, name)
	return nil
}

func image(name string) string {
	return "registry.solutionctl.invalid/shop-1.0.0/" + name + ":1.0@sha256:" + strings.Repeat("a", 64)
}

func newMachine(have ...string) *machine {
	m := &machine{images: map[string]bool{}, ours: map[string]bool{}, errs: map[string]error{}}
	for _, one := range have {
		name, pinned := strings.CutSuffix(one, " pinned")
		name, ours := strings.CutSuffix(name, " kept")
		for _, each := range []string{plain(image(name)), tagged(image(name))} {
			m.images[each] = pinned || ours
			if ours {
				m.ours[each] = true
			}
		}
	}
	return m
}

func TestOnNode(t *testing.T) {
	wanted := []string{image("a"), image("b"), image("c")}
	full := report.Errorf(report.NoSpace, "no space left on device")
	for _, test := range []struct {
		name    string
		machine *machine
		change  func(*machine)
		want    schema.NodePreload
		kept    []string // after the run
	}{
		{"new", newMachine(), nil, schema.NodePreload{Pulled: 3, Pinned: 3}, []string{"a", "b", "c"}},
		{"some are there", newMachine("a", "b kept"), nil, schema.NodePreload{Present: 2, Pulled: 1, Pinned: 2}, []string{"a", "b", "c"}},
		{"nothing to do", newMachine("a kept", "b kept", "c kept"), nil, schema.NodePreload{Present: 3}, []string{"a", "b", "c"}},
		{"release what is not needed", newMachine("a kept", "b kept", "c kept", "old kept"), nil, schema.NodePreload{Present: 3, Released: 1}, []string{"a", "b", "c"}},
		{"pins of the site stay", newMachine("a pinned", "b kept", "c kept", "site pinned"), nil, schema.NodePreload{Present: 3}, []string{"b", "c"}},
		{
			"one image cannot be pulled", newMachine(), func(m *machine) { m.errs[image("b")] = errors.New("manifest unknown") },
			schema.NodePreload{Pulled: 2, Pinned: 2, Missing: []string{image("b")}, Code: report.Failure, Problem: "pull image " + image("b") + ": manifest unknown"},
			[]string{"a", "c"},
		},
		{
			"the disk is full", newMachine("a kept", "old kept"), func(m *machine) { m.errs[image("b")] = full },
			schema.NodePreload{Present: 1, Released: 1, Missing: []string{image("b"), image("c")}, Code: report.NoSpace, Problem: "pull image " + image("b") + ": no space left on device"},
			[]string{"a"},
		},
		{
			"no answer", newMachine(), func(m *machine) { m.errs["version"] = report.Errorf(report.Unavailable, "no answer") },
			schema.NodePreload{Missing: wanted, Code: report.Unavailable, Problem: "no answer"},
			nil,
		},
		{
			"tags of a hostile registry", newMachine(), func(m *machine) { m.fixed, m.wrong = true, true }, schema.NodePreload{
				Missing: wanted, Code: report.Mismatch, Problem: "image registry.solutionctl.invalid/shop-1.0.0/a:1.0 of the registry has another digest than the imported archive",
			}, nil,
		},
		{"kept by configuration", newMachine("a pinned"), func(m *machine) { m.fixed = true }, schema.NodePreload{Present: 1, Pulled: 2, Unpinned: []string{image("b"), image("c")}}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.change != nil {
				test.change(test.machine)
			}
			got := preload.OnNode(t.Context(), test.machine, wanted, report.Discard)
			if test.want.Runtime = "containerd v2"; test.want.Code == report.Unavailable {
				got.Runtime = test.want.Runtime
			}
			hint := got.Hint
			if got.Hint = ""; len(got.Missing) == 0 {
				got.Missing = nil
			}
			if len(got.Unpinned) == 0 {
				got.Unpinned = nil
			}
			if diff := cmp.Diff(&test.want, got); diff != "" {
				t.Error(diff)
			}
			if test.want.Code == report.NoSpace && !strings.Contains(hint, "run the command again") {
				t.Errorf("hint %q", hint)
			}
			var kept []string
			for name := range test.machine.ours {
				kept = append(kept, strings.TrimSuffix(strings.TrimPrefix(strings.Split(name, "@")[0], "registry.solutionctl.invalid/shop-1.0.0/"), ":1.0"))
			}
			slices.Sort(kept)
			if kept = slices.Compact(kept); !slices.Equal(kept, test.kept) {
				t.Errorf("kept %q, want %q", kept, test.kept)
			}
			pulls, calls := len(test.machine.pulls), test.machine.calls
			if preload.OnNode(t.Context(), test.machine, wanted, report.Discard); got.Problem == "" && (len(test.machine.pulls) > pulls || test.machine.calls > calls) {
				t.Error("a second run has changed something")
			}
		})
	}
}

// TestOldRuntime: a runtime that takes the labels and reports no image as pinned.
func TestOldRuntime(t *testing.T) {
	t.Parallel()
	m := newMachine()
	m.old = true
	got := preload.OnNode(t.Context(), m, []string{image("a")}, report.Discard)
	got.Node = "worker"
	if len(got.Unpinned) != 1 || !strings.Contains(preload.UnpinnedText(got), "worker: the kubelet may remove 1 image, because containerd v2 does not keep them: a newer release") {
		t.Errorf("%+v: %s", got, preload.UnpinnedText(got))
	}
}

// TestOnNodeNeedsDigests: a name with a tag alone can be anything.
func TestOnNodeNeedsDigests(t *testing.T) {
	m := newMachine()
	got := preload.OnNode(t.Context(), m, []string{image("a"), "docker.io/library/busybox:latest"}, report.Discard)
	if got.Code != report.Usage || len(m.pulls) > 0 {
		t.Errorf("%+v, pulled %q", got, m.pulls)
	}
}

// TestMessage: the result of a node with many images fits into the termination message of a pod.
func TestMessage(t *testing.T) {
	var images []string
	for i := range 4000 {
		images = append(images, fmt.Sprint(image("a"), i))
	}
	for _, result := range []schema.NodePreload{
		{Runtime: "containerd v2", Pulled: 3},
		{Missing: images[7:3000], Unpinned: images[:5], Problem: strings.Repeat("problem ", 1000), Hint: strings.Repeat("hint ", 1000), Code: report.NoSpace},
	} {
		text := preload.Message(&result, images)
		const most = 4096
		if len(text) > most {
			t.Errorf("the message has %d bytes", len(text))
		}
		got := preload.ParseMessage(string(text), images)
		if got == nil {
			t.Fatalf("cannot be read: %s", text)
		}
		got.Problem, got.Hint, result.Problem, result.Hint = "", "", "", ""
		if diff := cmp.Diff(&result, got); diff != "" {
			t.Error(diff)
		}
	}
	for _, text := range []string{"", "panic: x", `{"missing":"!"}`, `{"missing":"zzzzzzzzzzzzzz"}`, `{"missing":"-1"}`} {
		if got := preload.ParseMessage(text, images[:3]); got != nil {
			t.Errorf("%s is %+v", text, got)
		}
	}
}
