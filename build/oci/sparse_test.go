package oci_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// savedByDocker has the form of `docker save` with the containerd image store: the index as it was pulled, and the
// blobs of the platforms that were pulled.
func savedByDocker(t *testing.T, attested bool, pulled ...string) *layoutBuilder {
	t.Helper()
	l := newLayout()
	children := map[string]oci.Descriptor{}
	var index []oci.Descriptor
	for _, platform := range []string{"linux/amd64", "linux/arm64"} {
		if attested && !slices.Contains(pulled, platform) {
			continue // an image that was built for one platform
		}
		child := l.image(platform, "base", "web of "+platform)
		children[platform] = child
		index = append(index, child)
	}
	var lacking []oci.Descriptor
	if attested {
		m := l.manifest("linux/amd64", "provenance")
		m.Layers[0].MediaType = "application/vnd.in-toto+json"
		attestation := l.json(types.OCIManifestSchema1, m)
		attestation.Platform = platformOf("unknown/unknown")
		attestation.Annotations = map[string]string{"vnd.docker.reference.digest": children[pulled[0]].Digest.String(), "vnd.docker.reference.type": "attestation-manifest"}
		index, lacking = append(index, attestation), append(lacking, attestation)
	}
	root := l.multi(index...)
	root.Annotations = map[string]string{"io.containerd.image.name": "docker.io/acme/web:1.0.0", "org.opencontainers.image.ref.name": "1.0.0"}
	l.index.Manifests = append(l.index.Manifests, root)

	type saved struct {
		Config           string
		RepoTags, Layers []string
	}
	var entry saved
	for platform, child := range children {
		if !slices.Contains(pulled, platform) {
			lacking = append(lacking, child)
			continue
		}
		m := manifestOf(t, l, child)
		entry = saved{Config: "blobs/sha256/" + m.Config.Digest.Hex, RepoTags: []string{"acme/web:1.0.0"}}
		for _, layer := range m.Layers {
			entry.Layers = append(entry.Layers, "blobs/sha256/"+layer.Digest.Hex)
		}
	}
	data, err := json.Marshal([]saved{entry})
	if err != nil {
		t.Fatal(err)
	}
	l.files["manifest.json"] = file(data)
	for _, child := range lacking {
		m := manifestOf(t, l, child)
		delete(l.files, "blobs/sha256/"+m.Config.Digest.Hex)
		delete(l.files, "blobs/sha256/"+m.Layers[len(m.Layers)-1].Digest.Hex)
		delete(l.files, "blobs/sha256/"+child.Digest.Hex)
	}
	return l
}

func TestSavedByDocker(t *testing.T) {
	amd64 := []schema.Platform{{OS: "linux", Architecture: "amd64"}}
	arm64 := []schema.Platform{{OS: "linux", Architecture: "arm64"}}
	for name, test := range map[string]struct {
		file      *layoutBuilder
		source    string
		platforms []schema.Platform
		want      []schema.Platform // none: it is refused
		hint      string
	}{
		"one platform":                   {savedByDocker(t, false, "linux/amd64"), "docker-archive:", nil, amd64, ""},
		"the other platform":             {savedByDocker(t, false, "linux/arm64"), "docker-archive:", nil, arm64, ""},
		"by its name":                    {savedByDocker(t, false, "linux/amd64"), "docker-archive:", nil, amd64, ""},
		"the platform that is there":     {savedByDocker(t, false, "linux/amd64"), "docker-archive:", amd64, amd64, ""},
		"a platform that is not there":   {savedByDocker(t, false, "linux/amd64"), "docker-archive:", arm64, nil, "--platform linux/amd64"},
		"both platforms":                 {savedByDocker(t, false, "linux/amd64"), "docker-archive:", slices.Concat(amd64, arm64), nil, "--platform linux/amd64"},
		"without attestation":            {savedByDocker(t, true, "linux/amd64"), "docker-archive:", nil, amd64, ""},
		"without attestation, chosen":    {savedByDocker(t, true, "linux/amd64"), "docker-archive:", amd64, amd64, ""},
		"as an OCI archive":              {savedByDocker(t, false, "linux/amd64"), "oci-archive:", nil, nil, "add --platform linux/amd64"},
		"as an OCI archive, chosen":      {savedByDocker(t, false, "linux/amd64"), "oci-archive:", amd64, amd64, ""},
		"OCI without attestation":        {savedByDocker(t, true, "linux/amd64"), "oci-archive:", nil, nil, "add --platform linux/amd64"},
		"OCI without attestation chosen": {savedByDocker(t, true, "linux/amd64"), "oci-archive:", amd64, amd64, ""},
	} {
		t.Run(name, func(t *testing.T) {
			source := test.source + writeFile(t, "web.tar", tarOfFS(t, test.file.fs()))
			if name == "by its name" {
				source += ":acme/web:1.0.0"
			}
			o := oci.Options{Platforms: test.platforms}
			if test.want != nil {
				image := resolve(t, o, source)
				if !slices.Equal(image.Platforms(), test.want) || image.Origin != "docker.io/acme/web:1.0.0" {
					t.Errorf("got %v of %s", image.Platforms(), image.Origin)
				}
				if m := manifestOf(t, test.file, image.Root); len(m.Layers) != 2 {
					t.Errorf("the root %s is not the manifest that was pulled", image.Root.Digest)
				}
				return
			}
			_, err := newResolver(t, o).Resolve(t.Context(), testRef, source)
			if hints := strings.Join(report.Hints(err), "\n"); report.CodeOf(err) != report.Corrupt || !strings.Contains(hints, test.hint) {
				t.Errorf("%v (%s), hints %q", err, report.CodeOf(err), hints)
			}
		})
	}
}
