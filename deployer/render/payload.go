package render

import (
	"errors"
	"io/fs"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/schema"
)

var errNotYet = errors.New("render: to be merged next")

// Payload is everything of an archive but its images. It is in memory, independent of the archive, and never modified.
type Payload struct {
	fs.FS
	Solution *schema.Solution // with the defaults filled in, see [schema.Solution.Merged]
	Images   []Image          // ordered by name and tag
}

// Image is an image of the archive.
type Image struct {
	Ref    schema.ImageRef `json:"name"`
	Digest string          `json:"digest"` // sha256:…
	Origin string          `json:"origin,omitempty"`
}

// FromArchive reads the payload of an archive.
func FromArchive(a *archive.Archive) (*Payload, error) { return nil, errNotYet }

// Encode returns the payload as one document, the same bytes for the same payload.
func (p *Payload) Encode() ([]byte, error) { return nil, errNotYet }

// DecodePayload reads what [Payload.Encode] returned.
func DecodePayload(data []byte) (*Payload, error) { return nil, errNotYet }
