package hostd

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/solutionctl/solutionctl/deployer/host"
	"github.com/solutionctl/solutionctl/deployer/rights"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
)

// The protocol: a client connects, sends one request with the descriptor of a file, and closes its side of the
// connection. The server answers with a line for each event and one for the result. Work continues when the connection
// is lost; "events" follows it again.
const (
	verbExamine  = "examine"
	verbImport   = rights.VerbImport
	verbUnimport = rights.VerbUnimport
	verbFacts    = "facts"
	verbEvents   = "events"
)

// maxRequest bounds a request: signatures of many signers.
const maxRequest = 8 << 20

// request is a client's request. One with any other field is refused.
type request struct {
	Verb  string `json:"verb"`
	Token string `json:"token"` // of the person, for the API server
	// ID names the work, chosen by the client at random; "events" follows the work of that ID.
	ID      string             `json:"id"`
	Name    string             `json:"name,omitempty"`
	File    bool               `json:"file,omitempty"` // a descriptor came with it
	Bundles []sign.NamedBundle `json:"bundles,omitempty"`
	Expect  string             `json:"expect,omitempty"`
	Version *Version           `json:"version,omitempty"`
}

// answer is a line of the server.
type answer struct {
	Event *report.Event `json:"event,omitempty"`
	// Done is true for the last line. The fields after it are its.
	Done        bool                   `json:"done,omitempty"`
	Examination *host.Examination      `json:"examination,omitempty"`
	Imported    *schema.ImportReport   `json:"imported,omitempty"`
	Unimported  *schema.UnimportReport `json:"unimported,omitempty"`
	Facts       *schema.ArchiveFacts   `json:"facts,omitempty"`
	Error       *failure               `json:"error,omitempty"`
}

// failure is an error on its way.
type failure struct {
	Code    report.Code `json:"code"`
	Message string      `json:"message"`
	Hints   []string    `json:"hints,omitempty"`
}

func failureOf(err error) *failure {
	if err == nil {
		return nil
	}
	return &failure{report.CodeOf(err), err.Error(), report.Hints(err)}
}

func (f *failure) error() error {
	if f == nil {
		return nil
	}
	err := report.Errorf(f.Code, "%s", f.Message)
	for _, hint := range f.Hints {
		err = err.WithHint("%s", hint)
	}
	return err
}

// parseRequest is strict: an unknown field could be meant to loosen a check.
func parseRequest(data []byte) (*request, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	var r request
	if err := decoder.Decode(&r); err != nil {
		return nil, report.Errorf(report.Usage, "invalid request: %s", withoutContent(err))
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, report.Errorf(report.Usage, "something follows the request")
	}
	switch {
	case r.Token == "" || len(r.Token) > 64<<10:
		return nil, report.Errorf(report.Unauthenticated, "the token of the user is missing")
	case len(r.ID) < 16 || len(r.ID) > 64:
		return nil, report.Errorf(report.Usage, "the request has no name by which it could be followed")
	}
	return &r, nil
}

// withoutContent describes the fault of a request without quoting its content.
func withoutContent(err error) string {
	if unknown, ok := bytes.CutPrefix([]byte(err.Error()), []byte("json: unknown field ")); ok && len(unknown) < 64 {
		return "unknown field " + string(unknown)
	}
	return "it is not well-formed"
}
