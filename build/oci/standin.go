package oci

import (
	"encoding/json"

	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/solutionctl/solutionctl/schema/report"
)

// standsFor is the annotation that marks a stand-in in index.json; its value is the digest of the original.
const standsFor = "io.solutionctl.stands-for"

func isStandIn(d Descriptor) bool { return d.Annotations[standsFor] != "" }

// standIn returns the OCI index under which an image in Docker's format lies in index.json a second time. Tools that
// look for nothing but OCI's media types there (skopeo before 1.10, oras, umoci) find it by the name of the image, and
// through it the manifest that the image has, with the digest that it has: nothing is converted.
func standIn(root Manifest) (_ Manifest, needed bool, _ error) {
	var children []json.RawMessage
	switch root.MediaType {
	case types.DockerManifestSchema2:
		// Without a platform, so that a client on any machine gets the image.
		child, err := encodeJSON(Descriptor{MediaType: root.MediaType, Digest: root.Digest, Size: root.Size})
		if err != nil {
			return Manifest{}, false, err
		}
		children = []json.RawMessage{child}
	case types.DockerManifestList:
		var list struct {
			Manifests []json.RawMessage `json:"manifests"`
		}
		if err := json.Unmarshal(root.Data, &list); err != nil {
			return Manifest{}, false, report.Errorf(report.Invalid, "manifest list %s: %w", root.Digest, err)
		}
		children = list.Manifests
	default:
		return Manifest{}, false, nil
	}
	data, err := encodeJSON(struct {
		SchemaVersion int               `json:"schemaVersion"`
		MediaType     types.MediaType   `json:"mediaType"`
		Manifests     []json.RawMessage `json:"manifests"`
	}{2, types.OCIImageIndex, children})
	return Manifest{Descriptor: blobDescriptor(types.OCIImageIndex, data), Data: data}, true, err
}

// checkStandIns checks that a client of a stand-in gets the original image.
func (s *Store) checkStandIns(entries []Descriptor) error {
	byName := map[string][]*Image{}
	for _, image := range s.all {
		byName[image.Ref.String()] = append(byName[image.Ref.String()], image)
	}
	for _, d := range entries {
		if !isStandIn(d) {
			continue
		}
		name := d.Annotations[refName]
		found := byName[name]
		if len(found) != 1 || found[0].Root.Digest.String() != d.Annotations[standsFor] {
			return report.Errorf(report.Invalid, "index.json: %q stands for an image that is not listed", name)
		}
		delete(byName, name) // an image has one
		want, needed, err := standIn(found[0].Manifests[0])
		if err != nil {
			return err
		}
		if !needed || want.Digest != d.Digest || want.MediaType != d.MediaType || found[0].Origin != d.Annotations[fullName] {
			return report.Errorf(report.Invalid, "index.json lists image %s twice, and the two differ", name)
		}
		data, err := readFile(s.fsys, blobPath(d.Digest))
		if err == nil {
			err = verifyManifest(data, d)
		}
		if err != nil {
			return inContext("image "+name, err)
		}
	}
	return nil
}
