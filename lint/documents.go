package lint

import (
	"github.com/solutionctl/solutionctl/schema"
)

// parsed is a YAML file: its documents, or why it could not be read.
type parsed struct {
	documents []*schema.Document
	data      []byte
	err       error
}
