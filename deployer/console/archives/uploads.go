package archives

import (
	"encoding/base64"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/console/session"
	"github.com/solutionctl/solutionctl/deployer/console/upload"
	"github.com/solutionctl/solutionctl/deployer/console/web"
	"github.com/solutionctl/solutionctl/deployer/hostd"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
	"github.com/solutionctl/solutionctl/sign/bundle"
)

// Uploads speak the core of tus 1.0, https://tus.io/protocols/resumable-upload: POST begins one, HEAD returns its
// offset, PATCH sends a piece, DELETE ends it. The body of the POST has the signatures, from which the digests of all
// pieces follow.

const (
	tusVersion = "1.0.0"
	tusBody    = "application/offset+octet-stream"

	maxBundles = 16
	maxOrder   = 2*bundle.MaxSize + 64<<10 // signatures, in one request
	maxPiece   = 64 << 20                  // in one request
	maxPlain   = 256 << 20                 // an archive in a form, which cannot continue after the connection is lost

	window     = 1 << 20 // this much has to arrive in windowTime
	windowTime = time.Minute
)

// BodyLimit returns the largest body that a request to these pages may send; 0 for a request to another page.
func (p *Pages) BodyLimit(r *http.Request) int64 {
	at, below := strings.CutPrefix(r.URL.Path, p.server.Login.Base)
	switch {
	case !below || p.spool == nil:
	case r.Method == http.MethodPatch && strings.HasPrefix(at, "/uploads/"):
		return maxPiece
	case r.Method == http.MethodPost && at == "/uploads":
		return maxOrder
	case r.Method == http.MethodPost && at == "/import":
		return maxOrder + maxPlain
	}
	return 0
}

// progressReader reads a body for as long as it comes at some speed.
type progressReader struct {
	io.Reader
	connection *http.ResponseController
	left       int // of the window
}

func (p *progressReader) Read(buffer []byte) (int, error) {
	if p.left <= 0 {
		p.left = window
		until := time.Now().Add(windowTime) //nolint:forbidigo // a deadline of the network is not a time that people read
		_ = p.connection.SetReadDeadline(until)
		_ = p.connection.SetWriteDeadline(until.Add(windowTime))
	}
	n, err := p.Reader.Read(buffer)
	p.left -= n
	return n, err
}

func newProgressReader(w http.ResponseWriter, r io.Reader) io.Reader {
	return &progressReader{Reader: r, connection: http.NewResponseController(w)}
}

// sentUpload is an upload as a document.
type sentUpload struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Received int64  `json:"received"`
	Size     int64  `json:"size"`
	Page     string `json:"page,omitempty"`
}

func (p *Pages) sent(u *upload.Upload) sentUpload {
	s := sentUpload{ID: u.ID, Name: u.Offer.Name, Size: u.Offer.Chunks.Size, Received: u.Length()}
	if u.Complete() {
		s.Page = page.URL("import", u.ID)
	}
	return s
}

// upload is the one that a path names.
func (p *Pages) upload(v *web.Visit) (*upload.Upload, error) {
	if p.spool == nil {
		return nil, report.Errorf(report.NotFound, "nothing is uploaded to this console")
	}
	return p.spool.Find(v.User, v.PathValue("id"))
}

// tus answers a request of the protocol.
func (p *Pages) tus(next func(w http.ResponseWriter, v *web.Visit) error) http.Handler {
	return p.server.SignedIn(func(w http.ResponseWriter, v *web.Visit) {
		w.Header().Set("Tus-Resumable", tusVersion)
		if v.Header.Get("Tus-Resumable") != tusVersion {
			w.Header().Set("Tus-Version", tusVersion)
			p.server.WriteJSON(w, http.StatusPreconditionFailed, web.FailureOf(report.Errorf(report.Usage, "the upload does not speak tus %s", tusVersion)))
			return
		}
		err := next(w, v)
		switch {
		case err == nil:
		case report.CodeOf(err) == report.Locked:
			p.server.WriteJSON(w, http.StatusLocked, web.FailureOf(err))
		default:
			if report.CodeOf(err) == report.Unauthenticated && v.Way != session.ByLink {
				p.server.Sessions.Refuse(v.Identity)
			}
			p.server.WriteJSON(w, web.StatusOf(err), web.FailureOf(err))
		}
	})
}

// beginUpload takes the signatures, and returns the address for the archive.
func (p *Pages) beginUpload(w http.ResponseWriter, v *web.Visit) error {
	size, err := strconv.ParseInt(v.Header.Get("Upload-Length"), 10, 64)
	if err != nil || size < 1 {
		return report.Errorf(report.Usage, "header Upload-Length does not say how large the archive is")
	}
	parts, err := v.MultipartReader()
	if err != nil {
		return report.Errorf(report.Usage, "the signatures are missing: %w", err)
	}
	bundles, _, err := readBundles(parts)
	if err != nil {
		return err
	}
	u, err := p.offer(v, metadata(v.Header.Get("Upload-Metadata"), "filename"), bundles, func(signed int64) error {
		if signed == size {
			return nil
		}
		return report.Errorf(report.Mismatch, "the file has %d bytes, %d were signed", size, signed).
			WithHint("the file is incomplete, or the signature belongs to another archive")
	})
	if err != nil {
		return err
	}
	w.Header().Set("Location", p.server.Login.Base+page.URL("uploads", u.ID))
	w.Header().Set("Upload-Expires", u.Created.Add(upload.Lifetime).UTC().Format(http.TimeFormat))
	w.Header().Set("Solutionctl-Page", p.server.Login.Base+page.URL("import", u.ID))
	p.server.WriteJSON(w, http.StatusCreated, p.sent(u))
	return nil
}

// offer has the signatures judged and begins the upload of their archive, or finds the one that was begun before. check refuses a signed size.
func (p *Pages) offer(v *web.Visit, name string, bundles []sign.NamedBundle, check func(size int64) error) (*upload.Upload, error) {
	if p.spool == nil {
		return nil, report.Errorf(report.NotFound, "nothing is uploaded to this console")
	}
	token, err := credentials(v.Context(), v)
	if err != nil {
		return nil, err
	}
	expected, err := p.Host.Examine(v.Context(), token, hostd.Archive{Bundles: bundles}, nil)
	if err != nil {
		return nil, err
	}
	if expected == nil || expected.Chunks == nil {
		return nil, report.Errorf(report.Invalid, "the host does not say what the archive has to be")
	}
	if err = check(expected.Chunks.Size); err != nil {
		return nil, err
	}
	if name == "" {
		name = expected.Solution + "-" + expected.Version + ".iso"
	}
	return p.spool.Create(upload.Offer{
		Owner: v.User, Name: name, Solution: expected.Solution, Version: expected.Version, Chunks: expected.Chunks, Bundles: bundles,
	})
}

// metadata is the value of a key in a header of the protocol: "filename c2hvcC5pc28=,other …". It is for people only.
func metadata(header, key string) string {
	for field := range strings.SplitSeq(header, ",") {
		name, encoded, _ := strings.Cut(strings.TrimSpace(field), " ")
		if value, err := base64.StdEncoding.DecodeString(encoded); name == key && err == nil {
			return fileName(string(value))
		}
	}
	return ""
}

// fileName is the name of a file from a browser, without directories and cut for display.
func fileName(name string) string {
	name = path.Base("/" + strings.ReplaceAll(strings.ToValidUTF8(name, ""), `\`, "/"))
	if len(name) > 200 || name == "/" || name == "." {
		return ""
	}
	return name
}

// readBundles reads the signatures at the beginning of a form, and returns the first part that is none; nil at the end.
func readBundles(parts *multipart.Reader) (bundles []sign.NamedBundle, next *multipart.Part, err error) {
	for {
		part, err := parts.NextPart()
		switch {
		case errors.Is(err, io.EOF):
			return bundles, nil, nil
		case err != nil:
			return nil, nil, report.Errorf(report.Usage, "the form cannot be read: %w", err)
		case part.FormName() != "bundle":
			return bundles, part, nil
		case len(bundles) == maxBundles:
			return nil, nil, report.Errorf(report.Usage, "there are more than %d signatures", maxBundles)
		}
		data, err := io.ReadAll(io.LimitReader(part, bundle.MaxSize+1))
		if err != nil {
			return nil, nil, report.Errorf(report.Usage, "the signature cannot be read: %w", err)
		}
		bundles = append(bundles, sign.NamedBundle{File: fileName(part.FileName()), Data: data})
	}
}

// sendOffset returns the offset at which an upload continues.
func (p *Pages) sendOffset(w http.ResponseWriter, v *web.Visit) error {
	u, err := p.upload(v)
	if err != nil {
		return err
	}
	at, err := u.Received(v.Context())
	if err != nil {
		return err
	}
	w.Header().Set("Upload-Offset", strconv.FormatInt(at, 10))
	w.Header().Set("Upload-Length", strconv.FormatInt(u.Offer.Chunks.Size, 10))
	w.WriteHeader(http.StatusOK)
	return nil
}

// takePiece takes a piece of an upload.
func (p *Pages) takePiece(w http.ResponseWriter, v *web.Visit) error {
	u, err := p.upload(v)
	if err != nil {
		return err
	}
	offset, err := strconv.ParseInt(v.Header.Get("Upload-Offset"), 10, 64)
	if err != nil || v.Header.Get("Content-Type") != tusBody {
		return report.Errorf(report.Usage, "a piece has a header Upload-Offset, and is %s", tusBody)
	}
	at, err := u.Append(v.Context(), offset, newProgressReader(w, v.Body))
	if err != nil {
		return err
	}
	w.Header().Set("Upload-Offset", strconv.FormatInt(at, 10))
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// endUpload removes an upload.
func (p *Pages) endUpload(w http.ResponseWriter, v *web.Visit) error {
	u, err := p.upload(v)
	if err == nil {
		err = u.Discard()
	}
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

// discardUpload removes an upload from its page.
func (p *Pages) discardUpload(v *web.Visit) (*web.Answer, error) {
	p.discard(v.User, v.PathValue("id"))
	return &web.Answer{To: "/import"}, nil
}

// sendForm takes a small archive in a form, from a browser without a script. The signatures are before the archive in it.
func (p *Pages) sendForm(w http.ResponseWriter, v *web.Visit) {
	to, err := p.takeForm(w, v)
	if err != nil {
		v.Frame.Section = page.SectionImport
		v.Frame.Trail = []page.Link{{Label: page.Text("import.title"), URL: "/import"}}
		p.server.Answer(w, v, v.Failed(err))
		return
	}
	http.Redirect(w, v.Request, p.server.Login.Base+to, http.StatusSeeOther)
}

func (p *Pages) takeForm(w http.ResponseWriter, v *web.Visit) (to string, err error) {
	v.Body = io.NopCloser(newProgressReader(w, v.Body))
	parts, err := v.MultipartReader()
	if err != nil {
		return "", report.Errorf(report.Usage, "the form has no files: %w", err)
	}
	bundles, part, err := readBundles(parts)
	if err != nil {
		return "", err
	}
	if part == nil || part.FormName() != "archive" {
		return "", report.Errorf(report.Usage, "the archive is missing")
	}
	u, err := p.offer(v, fileName(part.FileName()), bundles, func(signed int64) error {
		if signed <= maxPlain {
			return nil
		}
		return report.Errorf(report.Refused, "a form without a script takes %s at most", report.Bytes(maxPlain)).
			WithHint("turn JavaScript on, or copy the archive to the host: %s", report.Run("deploy import", "FILE.iso"))
	})
	if err != nil {
		return "", err
	}
	at, err := u.Received(v.Context())
	if err == nil { // the part before is not needed again
		_, err = io.CopyN(io.Discard, part, at)
	}
	if err == nil {
		at, err = u.Append(v.Context(), at, part)
	}
	switch {
	case err != nil:
		return "", err
	case at != u.Offer.Chunks.Size:
		return "", report.Errorf(report.Corrupt, "%s have arrived, %s were signed", report.Bytes(at), report.Bytes(u.Offer.Chunks.Size)).
			WithHint("send it again, and the upload continues; if this is repeated, the file is incomplete")
	}
	return page.URL("import", u.ID), nil
}
