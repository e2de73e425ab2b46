package trust

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/strictjson"
)

// localFile has the revocations of a store beside the signed list: those of earlier lists that are not in the present
// one, and those that the administrator has added. It is not signed: like the policy, every user with write access to
// the store can change it.
const (
	localFile = "revocations.local.json"
	localKind = "LocalRevocations"
)

// readLocal returns an empty list when there is none.
func readLocal(d *directory) (*Revocations, error) {
	data, err := d.read(localFile, maxDocument)
	if errors.Is(err, fs.ErrNotExist) {
		return &Revocations{}, nil
	}
	if err != nil {
		return nil, err
	}
	var r Revocations
	err = strictjson.Decode(data, &r)
	if err == nil && (r.APIVersion != apiVersion || r.Kind != localKind || r.Serial != 0) {
		err = fmt.Errorf("apiVersion %q, kind %q, serial %d; want %s, %s, and no serial", r.APIVersion, r.Kind, r.Serial, apiVersion, localKind)
	}
	if err == nil {
		err = r.validateEntries()
	}
	if err != nil {
		return nil, report.Errorf(report.TrustStore, "trust store: %s/%s: %w", d.path, localFile, err).
			WithHint("correct it; nothing is verified while it is malformed")
	}
	return &r, nil
}

// marshalLocal returns the same bytes for the same content.
func (r *Revocations) marshalLocal() ([]byte, error) {
	document := struct {
		APIVersion      string            `json:"apiVersion"`
		Kind            string            `json:"kind"`
		Keys            []string          `json:"keys,omitempty"`
		Archives        []string          `json:"archives,omitempty"`
		MinimumVersions map[string]string `json:"minimumVersions,omitempty"`
	}{apiVersion, localKind, unique(r.Keys), unique(r.Archives), r.MinimumVersions}
	data, err := json.MarshalIndent(document, "", "  ")
	return append(data, '\n'), err
}
