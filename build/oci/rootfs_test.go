package oci_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema/report"
)

// withConfig adds an image of two layers whose configuration a test writes, as a plain manifest or as a child of an index.
func withConfig(l *layoutBuilder, change func(*v1.ConfigFile)) oci.Descriptor {
	m := l.manifest("linux/amd64", "base", "web")
	var config v1.ConfigFile
	if err := json.Unmarshal(l.files["blobs/sha256/"+m.Config.Digest.Hex].Data, &config); err != nil {
		panic(err)
	}
	change(&config)
	m.Config = l.json(types.OCIConfigJSON, config)
	d := l.json(m.MediaType, m)
	d.Platform = platformOf("linux/amd64")
	return d
}

// Layers that no container runtime can unpack are refused, from any source.
func TestNotUnpackable(t *testing.T) {
	other := v1.Hash{Algorithm: "sha256", Hex: "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"}
	for name, test := range map[string]struct {
		change  func(*v1.ConfigFile)
		message string // of the build
		deep    string // error of reading the layers
	}{
		"none":  {func(c *v1.ConfigFile) { c.RootFS = v1.RootFS{} }, "2 layers, rootfs.diff_ids of its configuration lists 0", ""},
		"fewer": {func(c *v1.ConfigFile) { c.RootFS.DiffIDs = c.RootFS.DiffIDs[:1] }, "2 layers, rootfs.diff_ids of its configuration lists 1", ""},
		"more":  {func(c *v1.ConfigFile) { c.RootFS.DiffIDs = append(c.RootFS.DiffIDs, other) }, "2 layers, rootfs.diff_ids of its configuration lists 3", ""},
		"of SHA-512": {func(c *v1.ConfigFile) {
			c.RootFS.DiffIDs[0] = v1.Hash{Algorithm: "sha512", Hex: other.Hex + other.Hex}
		}, "rootfs.diff_ids", ""},
		"another": {func(c *v1.ConfigFile) { c.RootFS.DiffIDs[1] = other }, "", "unpacks to sha256:"},
		"exchanged": {func(c *v1.ConfigFile) {
			c.RootFS.DiffIDs[0], c.RootFS.DiffIDs[1] = c.RootFS.DiffIDs[1], c.RootFS.DiffIDs[0]
		}, "", "unpacks to sha256:"},
		"right": {func(*v1.ConfigFile) {}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLayout()
			child := withConfig(l, test.change)
			l.tag("web", child)
			l.tag("multi", l.multi(child, l.image("linux/arm64", "base", "arm")))
			source := "oci:" + l.dir(t)
			for _, ref := range []string{":web", ":multi"} {
				image, err := newResolver(t, oci.Options{}).Resolve(t.Context(), testRef, source+ref)
				if test.message != "" {
					checkError(t, err, report.Invalid, test.message, "")
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				err = image.VerifyLayers(t.Context())
				if test.deep != "" {
					checkError(t, err, report.Corrupt, test.deep, "build it again")
				} else if err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestPlainLayers: a layer that is not compressed is compared with the configuration before its bytes are copied.
func TestPlainLayers(t *testing.T) {
	for name, test := range map[string]struct {
		content []byte
		wrong   bool
	}{
		"right":                        {layerTar("web"), false},
		"another":                      {layerTar("base"), true},
		"nothing":                      {nil, true},
		"compressed, whatever is said": {compressed(layerTar("web")), false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLayout()
			m := l.manifest("linux/amd64", "web")
			m.Layers[0] = l.blob(types.OCIUncompressedLayer, test.content)
			l.tag("web", l.json(m.MediaType, m))
			_, err := newResolver(t, oci.Options{}).Resolve(t.Context(), testRef, "oci:"+l.dir(t)+":web")
			if test.wrong {
				checkError(t, err, report.Corrupt, "unpacks to sha256:", "build it again")
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestNotUnpackableFromRegistry(t *testing.T) {
	reg := newRegistry(t)
	image, err := mutate.ConfigFile(reg.image, &v1.ConfigFile{OS: "linux", Architecture: "amd64"})
	if err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(reg.host + "/acme/operator:broken")
	if err != nil {
		t.Fatal(err)
	}
	if err = remote.Write(tag, image); err != nil {
		t.Fatal(err)
	}
	r, _ := patient(t, oci.Options{})
	_, err = r.Resolve(t.Context(), testRef, "docker://"+tag.String())
	checkError(t, err, report.Invalid, "rootfs.diff_ids of its configuration lists 0", "build it again")
}

// Attestations and artifacts have no file system: nothing is asked of their configuration.
func TestArtifactsAreNotUnpacked(t *testing.T) {
	l := newLayout()
	signature := l.manifest("linux/amd64", "payload")
	signature.Layers[0].MediaType = "application/vnd.dev.cosign.simplesigning.v1+json"
	signature.Config = l.json(types.OCIConfigJSON, v1.ConfigFile{})
	l.tag("signature", l.json(signature.MediaType, signature))
	attestation := l.manifest("linux/amd64", "provenance")
	attestation.Config = l.json(types.OCIConfigJSON, v1.ConfigFile{OS: "unknown", Architecture: "unknown"})
	d := l.json(attestation.MediaType, attestation)
	d.Platform = platformOf("unknown/unknown")
	l.tag("attested", l.multi(l.image("linux/amd64", "web"), d))
	for _, ref := range []string{"signature", "attested"} {
		if err := resolve(t, oci.Options{}, "oci:"+l.dir(t)+":"+ref).VerifyLayers(t.Context()); err != nil {
			t.Errorf("%s: %v", ref, err)
		}
	}
}
