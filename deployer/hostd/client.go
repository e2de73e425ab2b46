package hostd

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net"
	"os"

	"github.com/solutionctl/solutionctl/deployer/host"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// DefaultSocket is where a server listens.
const DefaultSocket = "/run/solutionctl/host.sock"

// maxLine bounds an answer: an examination with the digests of a large archive.
const maxLine = 16 << 20

// Client sends requests to a server on a socket. It has the methods of [Desk].
type Client struct {
	Socket string
}

// Examine calls [Desk.Examine] through the socket.
func (c *Client) Examine(ctx context.Context, token string, a Archive, sink report.Sink) (*host.Examination, error) {
	got, err := c.do(ctx, request{Verb: verbExamine, Token: token, Name: a.Name, Bundles: a.Bundles}, a.File, sink)
	if got.Examination != nil && got.Examination.Chunks != nil {
		got.Examination.Chunks.Size = got.Examination.Size // which a list in JSON does not have
	}
	return got.Examination, err
}

// Import calls [Desk.Import] through the socket.
func (c *Client) Import(ctx context.Context, token string, a Archive, sink report.Sink) (*schema.ImportReport, error) {
	got, err := c.do(ctx, request{Verb: verbImport, Token: token, Name: a.Name, Bundles: a.Bundles, Expect: a.Expect}, a.File, sink)
	return got.Imported, err
}

// Unimport calls [Desk.Unimport] through the socket.
func (c *Client) Unimport(ctx context.Context, token string, v Version, sink report.Sink) (*schema.UnimportReport, error) {
	got, err := c.do(ctx, request{Verb: verbUnimport, Token: token, Version: &v}, nil, sink)
	return got.Unimported, err
}

// Facts calls [Desk.Facts] through the socket.
func (c *Client) Facts(ctx context.Context, token string, v Version, sink report.Sink) (*schema.ArchiveFacts, error) {
	got, err := c.do(ctx, request{Verb: verbFacts, Token: token, Version: &v}, nil, sink)
	return got.Facts, err
}

// errLost is in the error of an answer that has no end.
var errLost = errors.New("the connection was lost")

// do sends a request and follows its work, once more when the connection is lost.
func (c *Client) do(ctx context.Context, r request, file *os.File, sink report.Sink) (*answer, error) {
	r.ID, r.File = rand.Text(), file != nil
	a, err := c.ask(ctx, r, file, sink)
	if errors.Is(err, errLost) && ctx.Err() == nil {
		a, err = c.ask(ctx, request{Verb: verbEvents, Token: r.Token, ID: r.ID}, nil, sink)
		if report.CodeOf(err) == report.NotFound {
			err = report.Errorf(report.Interrupted, "the program that imports on this host was ended").WithHint("do the same again, which finishes the work")
		}
	}
	return a, err
}

// ask sends one request. The answer is never nil.
func (c *Client) ask(ctx context.Context, r request, file *os.File, sink report.Sink) (*answer, error) {
	none := &answer{}
	dialed, err := (&net.Dialer{}).DialContext(ctx, "unix", c.Socket)
	if err != nil {
		return none, report.Errorf(report.Unavailable, "the program that imports on this host does not answer: %w", err).
			WithHint("run it there, as root: %s", report.Run("deploy hostd"))
	}
	defer dialed.Close() //nolint:errcheck // all was read
	connection, ok := dialed.(*net.UnixConn)
	if !ok {
		return none, errors.New("not a Unix socket")
	}
	defer context.AfterFunc(ctx, func() { _ = connection.Close() })()
	data, err := json.Marshal(r)
	if err != nil {
		return none, err
	}
	// A server that refuses a client does not read the whole request: its answer matters.
	sent := sendAll(connection, data, file)
	lines := bufio.NewScanner(connection)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		if len(lines.Bytes()) == 0 {
			continue
		}
		var a answer
		if err = json.Unmarshal(lines.Bytes(), &a); err != nil {
			return none, err
		}
		if a.Done {
			return &a, a.Error.error()
		}
		if a.Event != nil && sink != nil {
			sink.Emit(*a.Event)
		}
	}
	if ctx.Err() != nil {
		return none, ctx.Err()
	}
	return none, report.Errorf(report.Unavailable, "the program that imports on this host: %w", errors.Join(errLost, lines.Err(), sent))
}
