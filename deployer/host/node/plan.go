package node

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	securejoin "github.com/cyphar/filepath-securejoin"

	"github.com/solutionctl/solutionctl/durable"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Plan holds the changes to the files of a node.
type Plan struct {
	Runtime Runtime
	Changes []Change
	// Notes are manual steps that remain.
	Notes []string

	root string
}

// Change is the change of one file.
type Change struct {
	File   // without content when it is removed
	Action schema.NodeAction
}

// NewPlan compares the file system below root with the configuration of a node, whose peers, mirrors and directory of containerd stay unless
// others are given. It refuses a runtime whose configuration would ignore the files, and files that solutionctl has not written.
func NewPlan(root string, c Config) (*Plan, error) {
	n := system{root}
	c.containerd1 = c.Runtime == K0s && n.hasContainerd1()
	var containerd containerdSettings
	if c.Runtime == Containerd {
		if err := n.readContainerd(containerdConfig, &containerd, map[string]bool{}); err != nil {
			return nil, err
		}
	}
	if err := n.keep(&c, containerd.dirs()); err != nil {
		return nil, err
	}
	files, err := Files(c)
	if err != nil {
		return nil, err
	}
	if c.Runtime == Containerd {
		if err = containerd.check(c); err != nil {
			return nil, err
		}
	}
	p, err := n.plan(files, n.candidates(c.CertsDir))
	if err != nil {
		return nil, err
	}
	p.Runtime, p.Notes = c.Runtime, c.notes(p)
	return p, nil
}

// NewRemoval plans the removal of every file that was written here, of either runtime.
func NewRemoval(root, certsDir string) (*Plan, error) {
	n := system{root}
	return n.plan(nil, n.candidates(certsDir))
}

// Changed reports whether anything has to be done.
func (p *Plan) Changed() bool {
	return slices.ContainsFunc(p.Changes, func(c Change) bool { return c.Action != schema.NodeKeep })
}

// Apply does it. A file is there with its whole content or not at all.
func (p *Plan) Apply() error {
	n := system{p.root}
	for _, c := range p.Changes {
		var err error
		switch c.Action {
		case schema.NodeCreate, schema.NodeUpdate:
			err = n.write(c.File)
		case schema.NodeRemove:
			err = n.remove(c.Path)
		case schema.NodeKeep:
		}
		if errors.Is(err, fs.ErrPermission) {
			return report.Errorf(report.Failure, "%s: %w", c.Path, err).WithHint("run it as root")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.Path, err)
		}
	}
	return nil
}

// system is the file system of a node: a running one, or one below some directory. Links in it never lead outside.
type system struct{ root string }

func (s system) join(name string) (string, error) { return securejoin.SecureJoin(s.root, name) }

// read returns nil for a file that does not exist.
func (s system) read(name string) ([]byte, error) {
	file, err := s.join(name)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && data == nil {
		data = []byte{}
	}
	return data, err
}

func (s system) exists(name string) bool {
	file, err := s.join(name)
	if err != nil {
		return false
	}
	_, err = os.Stat(file)
	return err == nil
}

// list returns the names in a directory; none when it does not exist.
func (s system) list(dir string) []string {
	file, err := s.join(dir)
	if err != nil {
		return nil
	}
	entries, _ := os.ReadDir(file) // what cannot be read cannot have been written here
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// candidates lists where files of ours may be.
func (s system) candidates(certsDir string) []string {
	candidates := []string{crioConfig, k0sConfig}
	for _, r := range []Runtime{K3s, RKE2} {
		candidates = append(candidates, rancherFile(r), path.Join(rancherDirs[r], caFile))
	}
	for _, dir := range sorted([]string{DefaultCertsDir, crioCertsDir, k0sCertsDir, microK8sCertsDir, certsDir}) {
		if dir == "" {
			continue
		}
		for _, host := range s.list(dir) {
			candidates = append(candidates, path.Join(dir, host, "hosts.toml"), path.Join(dir, host, caFile))
		}
	}
	return candidates
}

// plan returns the changes that write files, and delete those of the candidates that solutionctl manages and that are not among the files.
func (s system) plan(files []File, candidates []string) (*Plan, error) {
	p := &Plan{root: s.root}
	wanted := map[string]bool{}
	for _, file := range files {
		wanted[file.Path] = true
		have, err := s.read(file.Path)
		switch {
		case err != nil:
			return nil, err
		case have == nil:
			p.Changes = append(p.Changes, Change{file, schema.NodeCreate})
		case bytes.Equal(have, file.Content):
			p.Changes = append(p.Changes, Change{file, schema.NodeKeep})
		case isOurs(have):
			p.Changes = append(p.Changes, Change{file, schema.NodeUpdate})
		case path.Base(file.Path) == "registries.yaml" && hasRegistries(have, file.Content):
			p.Changes = append(p.Changes, Change{File{file.Path, have}, schema.NodeKeep})
		case path.Base(file.Path) == "registries.yaml":
			return nil, addByHand(file)
		default:
			return nil, report.Errorf(report.Conflict, "%s was not written by solutionctl", file.Path).
				WithHint("move it away, or put there what '%s' prints", report.Run("deploy node config").With("print"))
		}
	}
	for _, name := range candidates {
		have, err := s.read(name)
		if err == nil && isOurs(have) && !wanted[name] {
			p.Changes = append(p.Changes, Change{File{Path: name}, schema.NodeRemove})
		}
		if partial := durable.Partial(name); !wanted[name] && s.exists(partial) { // of a run that was killed
			p.Changes = append(p.Changes, Change{File{Path: partial}, schema.NodeRemove})
		}
	}
	return p, nil
}

func isOurs(content []byte) bool { return bytes.HasPrefix(content, []byte(header)) }

// write replaces a file.
func (s system) write(file File) error {
	target, err := s.join(file.Path)
	if err != nil {
		return err
	}
	if err := durable.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	return durable.WriteFile(target, file.Content, 0o644)
}

// remove removes a file, and the directory of its registry when nothing else is in it.
func (s system) remove(name string) error {
	file, err := s.join(name)
	if err != nil {
		return err
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dir := filepath.Dir(file)
	if !isShared(path.Dir(name)) {
		_ = os.Remove(dir) // fails when something is in it, as it should
	}
	if _, err := os.Stat(dir); err != nil {
		return nil //nolint:nilerr // the directory is gone
	}
	return durable.SyncDirectory(dir)
}
