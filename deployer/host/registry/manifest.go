package registry

import (
	"encoding/json"

	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/schema/report"
)

// manifest is an image manifest, an index or an artifact, as it is sent.
type manifest struct {
	digest    string
	mediaType string
	data      []byte
	subject   string     // digest of the manifest that it refers to, "" for most
	referrer  descriptor // how it is listed among the referrers of its subject
}

// descriptor is one entry of a list of referrers.
type descriptor struct {
	MediaType    string            `json:"mediaType"`
	Digest       string            `json:"digest"`
	Size         int64             `json:"size"`
	ArtifactType string            `json:"artifactType,omitempty"`
	Annotations  map[string]string `json:"annotations,omitempty"`
}

func parseManifest(m oci.Manifest) (*manifest, error) {
	var document struct {
		ArtifactType string `json:"artifactType"`
		Config       struct {
			MediaType string `json:"mediaType"`
		} `json:"config"`
		Subject *struct {
			Digest string `json:"digest"`
		} `json:"subject"`
		Annotations map[string]string `json:"annotations"`
	}
	if err := json.Unmarshal(m.Data, &document); err != nil {
		return nil, report.Errorf(report.Invalid, "manifest %s: %w", m.Digest, err)
	}
	parsed := &manifest{digest: m.Digest.String(), mediaType: string(m.MediaType), data: m.Data}
	if document.Subject != nil {
		parsed.subject = document.Subject.Digest
		artifactType := document.ArtifactType
		if artifactType == "" { // the rule of the distribution specification for image manifests
			artifactType = document.Config.MediaType
		}
		parsed.referrer = descriptor{parsed.mediaType, parsed.digest, int64(len(m.Data)), artifactType, document.Annotations}
	}
	return parsed, nil
}
