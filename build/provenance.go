package build

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/lazyregexp"
)

// Provenance returns how the archive of a plan is made: of which images and files of the project, with which options, and by which version of
// the program. It has no subject yet. The same input gives the same statement: it has no time but that of the archive, no host, no user, and
// no place of a file outside of the project. Images without a name in a registry have their digests only.
func (p *Plan) Provenance(project *Project, o Overrides, version string) (*schema.ProvenanceStatement, error) {
	files, err := project.inputs()
	if err != nil {
		return nil, err
	}
	s := &schema.ProvenanceStatement{Type: schema.StatementType, PredicateType: schema.ProvenanceType}
	s.Predicate.BuildDefinition = schema.ProvenanceDefinition{
		BuildType:            schema.ArchiveBuildType,
		ExternalParameters:   o.parameters(),
		InternalParameters:   map[string]any{"fileTime": p.ModTime.Format(time.RFC3339), "volumeID": p.VolumeID},
		ResolvedDependencies: slices.Concat(p.imageInputs(), files),
	}
	s.Predicate.RunDetails.Builder = schema.ProvenanceBuilderInfo{ID: schema.ArchiveBuilderID, Version: map[string]string{"solutionctl": version}}
	return s, nil
}

// imageInputs lists the images by their names in the archive.
func (p *Plan) imageInputs() []schema.ResourceDescriptor {
	var list []schema.ResourceDescriptor
	for _, image := range p.Images {
		r := schema.ResourceDescriptor{Name: "image " + image.Ref.String(), Digest: digestSet(image.Root.Digest)}
		if image.Origin != "" {
			r.URI = "oci://" + image.Origin
		}
		list = append(list, r)
	}
	return list
}

func digestSet(d oci.Digest) map[string]string { return map[string]string{d.Algorithm: d.Hex} }

// inputs lists the files of the project as they lie there, solution.yaml first.
func (p *Project) inputs() ([]schema.ResourceDescriptor, error) {
	files, _, err := p.files()
	if err != nil {
		return nil, err
	}
	list := []schema.ResourceDescriptor{{Name: "file " + p.file, Digest: digestSet(p.digest)}}
	seen := map[string]bool{}
	for _, file := range files {
		if seen[file.source] {
			continue
		}
		seen[file.source] = true
		f, err := p.open(file.source)
		if err != nil {
			return nil, err
		}
		sum := sha256.New()
		_, err = io.Copy(sum, f)
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, fmt.Errorf("read project file %s: %w", file.source, err)
		}
		list = append(list, schema.ResourceDescriptor{
			Name: "file " + filepath.ToSlash(file.source), Digest: map[string]string{"sha256": hex.EncodeToString(sum.Sum(nil))},
		})
	}
	return list, nil
}

// parameters are the options as they were given. Of an image, the name and the kind of source: where its files lie decides nothing, and
// its digest is among the inputs.
func (o Overrides) parameters() map[string]any {
	parameters := map[string]any{}
	add := func(name string, values []string) {
		if len(values) > 0 {
			parameters[name] = values
		}
	}
	if o.Version != "" {
		parameters["version"] = o.Version
	}
	add("platforms", o.Platforms)
	add("images", withoutPlaces(o.Images))
	add("addImages", withoutPlaces(o.AddImages))
	var set []string
	for _, text := range o.Set {
		set = append(set, withoutPlace(login.ReplaceAllString(text, "//")))
	}
	add("set", set)
	return parameters
}

// login matches a user and a password in an address.
var login = lazyregexp.New(`//[^/@\s]*@`)

func withoutPlaces(assignments []string) []string {
	var list []string
	for _, text := range assignments {
		name, source, _ := strings.Cut(text, "=")
		kind, _, _ := strings.Cut(source, ":")
		list = append(list, name+"="+kind)
	}
	return list
}

// withoutPlace returns a setting without the place of an image: of its source, the kind, and of a value that can have several, nothing.
func withoutPlace(text string) string {
	setting, err := schema.ParseSetting("--set", text)
	if err != nil {
		return text // it was refused before
	}
	name, _, _ := strings.Cut(text, "=")
	all := []string{"spec", "images"}
	switch at := setting.Path; {
	case len(at) <= len(all) && slices.Equal(at, all[:len(at)]), len(at) == 3 && slices.Equal(at[:2], all):
		return name + "=…"
	case len(at) == 4 && slices.Equal(at[:2], all) && at[3] == "source":
		kind, _, _ := strings.Cut(strings.Trim(setting.Value, `"'`), ":")
		return name + "=" + kind
	}
	return text
}
