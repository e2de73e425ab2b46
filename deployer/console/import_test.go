package console_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	authorization "k8s.io/api/authorization/v1"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/cluster/clustertest"
	"github.com/solutionctl/solutionctl/deployer/console"
	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/deployertest/vendortest"
	"github.com/solutionctl/solutionctl/deployer/host"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/deployer/hostd"
	"github.com/solutionctl/solutionctl/deployer/rights"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
	"github.com/solutionctl/solutionctl/sign/trust"
)

// site is a console on a host that keeps archives.
type site struct {
	*bench
	vendor  *vendortest.Vendor
	desk    *hostd.Desk
	store   *store.Store
	places  host.Places
	uploads string
}

func startSite(t *testing.T) *site {
	t.Helper()
	dir, api := t.TempDir(), clustertest.Start(t)
	s := &site{vendor: vendortest.New(t), uploads: filepath.Join(dir, "uploads")}
	kubeconfig := api.Kubeconfig(t)
	places := host.Places{Store: filepath.Join(dir, "store"), Configuration: filepath.Join(dir, "solutions.yaml"), Nginx: filepath.Join(dir, "nginx")}
	var err error
	s.places = places
	if s.store, err = store.Open(places.Store); err != nil {
		t.Fatal(err)
	}
	s.desk = &hostd.Desk{
		Open: func() (*host.Host, error) { return host.Open(places) },
		Connect: func(token string) (*cluster.Cluster, error) {
			o := cluster.Options{Kubeconfig: kubeconfig, Now: time.Now, Retry: -1}
			if token != "" {
				o.Token = func(context.Context) (string, error) { return token, nil }
			}
			return cluster.Connect(o)
		},
		Options: host.ImportOptions{State: filepath.Join(dir, "state.json"), Trusted: s.vendor.Trusted, Mount: host.MountNever},
		Version: "1.0.0-test", Host: "here", Now: time.Now,
	}
	s.bench = startOn(t, api, s.options)
	return s
}

func (s *site) options(o *console.Options) {
	o.Archives, o.Uploads, o.ArchivePaths = s.desk, s.uploads, true
}

// restart is another run of the console, as after kill -9: nothing of the first one is asked.
func (s *site) restart(t *testing.T) {
	t.Helper()
	s.bench = startOn(t, s.api, s.options)
}

func (s *site) stored(t *testing.T) (ids []string) {
	t.Helper()
	entries, err := s.store.Entries()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		ids = append(ids, e.ID())
	}
	return ids
}

func (s *site) spooled(t *testing.T) (data []byte, files int) {
	t.Helper()
	parts, err := filepath.Glob(filepath.Join(s.uploads, "*.part"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range parts {
		if data, err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	return data, len(parts)
}

// send makes a request of the protocol of uploads.
func (b *browser) send(method, path string, body io.Reader, header ...string) answer {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), method, b.bench.server.URL+path, body)
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Tus-Resumable", "1.0.0")
	r.Header.Set("Accept", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := b.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(response.Body)
	if err != nil {
		b.Fatal(err)
	}
	return answer{response, string(text)}
}

// form is a form of files: names of fields and the files, in turn.
func form(t *testing.T, fields ...string) (body *bytes.Buffer, kind string) {
	t.Helper()
	body = &bytes.Buffer{}
	w := multipart.NewWriter(body)
	for i := 0; i < len(fields); i += 2 {
		part, err := w.CreateFormFile(fields[i], filepath.Base(fields[i+1]))
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(fields[i+1])
		if err != nil {
			t.Fatal(err)
		}
		if _, err = part.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return body, w.FormDataContentType()
}

func (b *browser) beginUpload(path string, size int) answer {
	b.Helper()
	body, kind := form(b.T, "bundle", sign.BundleName(path, ""))
	return b.send(http.MethodPost, "/uploads", body, "Content-Type", kind, "Upload-Length", strconv.Itoa(size),
		"Upload-Metadata", "filename "+base64.StdEncoding.EncodeToString([]byte("../../"+filepath.Base(path))))
}

func (b *browser) piece(at string, offset int, data []byte) answer {
	b.Helper()
	return b.send(http.MethodPatch, at, bytes.NewReader(data), "Content-Type", "application/offset+octet-stream", "Upload-Offset", strconv.Itoa(offset))
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestUpload loses the console at a third of an upload, continues it, imports the archive, and removes the version
// again.
func TestUpload(t *testing.T) {
	s := startSite(t)
	b := s.in(t)
	path := s.vendor.Archive(t, "1.0.0", 13<<20)
	data := read(t, path)
	begun := b.beginUpload(path, len(data))
	at := begun.Header.Get("Location")
	if begun.StatusCode != http.StatusCreated || at == "" {
		t.Fatalf("%d %s", begun.StatusCode, begun.body)
	}
	if a := b.piece(at, 0, data[:5<<20]); a.StatusCode != http.StatusNoContent || a.Header.Get("Upload-Offset") != strconv.Itoa(4<<20) {
		t.Fatalf("%d %s %s", a.StatusCode, a.Header.Get("Upload-Offset"), a.body)
	}
	if a := b.beginUpload(path, len(data)-1); a.StatusCode < 400 || !strings.Contains(a.body, `"mismatch"`) {
		t.Errorf("a file that was cut off: %d %s", a.StatusCode, a.body)
	}
	s.restart(t)
	b = s.in(t)
	if a := b.get("/import"); !strings.Contains(a.body, "demo-1.0.0.iso") || strings.Contains(a.body, "../") {
		t.Errorf("the page does not show the upload:\n%s", a.body)
	}
	a := b.send(http.MethodHead, at, nil)
	offset, err := strconv.Atoi(a.Header.Get("Upload-Offset"))
	if a.StatusCode != http.StatusOK || err != nil || offset != 4<<20 || a.Header.Get("Upload-Length") != strconv.Itoa(len(data)) {
		t.Fatalf("%d, goes on at %d, %v", a.StatusCode, offset, err)
	}
	if again := b.beginUpload(path, len(data)); again.Header.Get("Location") != at {
		t.Errorf("the same files begin another upload: %d %s", again.StatusCode, again.Header.Get("Location"))
	}
	if a = b.piece(at, 1, data[1:]); a.StatusCode != http.StatusConflict {
		t.Errorf("a piece at another place: %d", a.StatusCode)
	}
	wrong := bytes.Clone(data[offset:])
	wrong[4<<20+17] ^= 1
	if a = b.piece(at, offset, wrong); a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, "bytes 8388608 to 12582911") {
		t.Errorf("altered bytes: %d %s", a.StatusCode, a.body)
	}
	if a = b.piece(at, 8<<20, data[8<<20:]); a.StatusCode != http.StatusNoContent || a.Header.Get("Upload-Offset") != strconv.Itoa(len(data)) {
		t.Fatalf("%d %s %s", a.StatusCode, a.Header.Get("Upload-Offset"), a.body)
	}
	if got, n := s.spooled(t); n != 1 || !bytes.Equal(got, data) {
		t.Fatalf("%d files; what has arrived is not what was sent", n)
	}
	page := strings.Replace(at, "/uploads/", "/import/", 1)
	b.get(page) // begins the examination
	if events := b.get(page + "/events"); !strings.HasSuffix(events.body, "event: end\ndata:\n\n") {
		t.Fatalf("events end with %q", events.body)
	}
	shown := b.get(page)
	for _, want := range []string{"Import demo 1.0.0?", "Signed by vendor, which you trust", "0 images", "What activating it would change", "active version of demo"} {
		if !strings.Contains(shown.body, want) {
			t.Errorf("the examination does not say %q", want)
		}
	}
	if got := s.stored(t); len(got) > 0 {
		t.Errorf("stored before it was asked for: %q", got)
	}
	if steps := b.ends(b.post(page)); len(steps) == 0 {
		t.Error("nothing was reported")
	}
	if got := s.stored(t); !slices.Equal(got, []string{"demo-1.0.0"}) {
		t.Errorf("stored %q", got)
	}
	if _, n := s.spooled(t); n != 0 {
		t.Error("the upload is still there")
	}
	gone := "/solutions/demo/unimport?version=1.0.0"
	if a = b.get("/solutions/demo"); !strings.Contains(a.body, "/unimport?version=1.0.0") || !strings.Contains(a.body, "/solutions/demo/content/1.0.0") {
		t.Error("the page of the Solution does not lead to unimport, or not to the content")
	}
	a = b.get("/solutions/demo/content/1.0.0")
	for _, want := range []string{"Content of demo 1.0.0", "There is no provenance", "The vendor states nothing", "The packages were not listed yet"} {
		if a.StatusCode != http.StatusOK || !strings.Contains(a.body, want) {
			t.Errorf("%d: the content does not have %q", a.StatusCode, want)
		}
	}
	for path, status := range map[string]int{"/solutions/demo/content/9.9.9": http.StatusNotFound, "/solutions/demo/content/x": http.StatusBadRequest} {
		if a = b.get(path); a.StatusCode != status {
			t.Errorf("%s: %d, want %d", path, a.StatusCode, status)
		}
	}
	if a = b.get(gone); a.StatusCode != http.StatusOK || !strings.Contains(a.body, "demo-1.0.0") {
		t.Errorf("%d\n%s", a.StatusCode, a.body)
	}
	if a = b.post(gone, "confirm", "demo"); a.StatusCode < 400 || len(s.stored(t)) != 1 {
		t.Errorf("not confirmed: %d", a.StatusCode)
	}
	b.ended(b.post(gone, "confirm", "demo-1.0.0")).has(t, "not Open demo")
	if got := s.stored(t); len(got) > 0 {
		t.Errorf("stored %q", got)
	}
}

// TestFaultOfTheHost keeps an upload that the host cannot judge or import, and examines it again.
func TestFaultOfTheHost(t *testing.T) {
	s := startSite(t)
	b := s.in(t)
	path := s.vendor.Archive(t, "1.0.0", 0)
	data := read(t, path)
	at := b.beginUpload(path, len(data)).Header.Get("Location")
	if a := b.piece(at, 0, data); a.StatusCode != http.StatusNoContent {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	page := strings.Replace(at, "/uploads/", "/import/", 1)
	examine := func() answer {
		b.get(page)
		b.get(page + "/events")
		return b.get(page)
	}
	good := s.desk.Options.Trusted
	s.desk.Options.Trusted = func() (*trust.Store, error) {
		return nil, report.Errorf(report.TrustStore, "policy.yaml has a mistake")
	}
	if a := examine(); a.StatusCode < 400 || !strings.Contains(a.body, "policy.yaml has a mistake") {
		t.Errorf("%d\n%s", a.StatusCode, a.body)
	}
	if _, n := s.spooled(t); n != 1 {
		t.Errorf("%d files, want the upload", n)
	}
	s.desk.Options.Trusted = good
	if a := examine(); a.StatusCode != http.StatusOK {
		t.Fatalf("%d\n%s", a.StatusCode, a.body)
	}
	if err := os.WriteFile(s.places.Configuration, []byte("kind: Other\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.ended(b.post(page)).has(t, s.places.Configuration)
	if _, n := s.spooled(t); n != 1 {
		t.Errorf("%d files after an import that failed, want the upload", n)
	}
}

// TestUploadRefused are uploads of which nothing may be kept.
func TestUploadRefused(t *testing.T) {
	s := startSite(t)
	b := s.in(t)
	path := s.vendor.Archive(t, "1.0.0", 0)
	size := len(read(t, path))
	foreign := vendortest.New(t).Archive(t, "1.0.0", 0)
	for _, test := range []struct {
		name string
		do   func() answer
		code string
	}{
		{"no signature", func() answer {
			body, kind := form(t, "archive", path)
			return b.send(http.MethodPost, "/uploads", body, "Content-Type", kind, "Upload-Length", strconv.Itoa(size))
		}, `"unsigned"`},
		{"a stranger's", func() answer { return b.beginUpload(foreign, len(read(t, foreign))) }, `"untrusted"`},
		{"of another size", func() answer { return b.beginUpload(path, size+1) }, `"mismatch"`},
		{"without a size", func() answer { return b.beginUpload(path, -1) }, `"usage"`},
		{"of another user", func() answer { return b.piece("/uploads/AAAAAAAAAAAAAAAAAAAAAAAAAA", 0, []byte("x")) }, `"not-found"`},
		{"out of the spool", func() answer { return b.piece("/uploads/..%2f..%2fstate", 0, []byte("x")) }, "404"},
		{"in another protocol", func() answer { return b.send(http.MethodPost, "/uploads", nil, "Tus-Resumable", "0.2.2") }, `"usage"`},
		{"from another site", func() answer {
			return b.send(http.MethodPatch, "/uploads/AAAAAAAAAAAAAAAAAAAAAAAAAA", nil, "Sec-Fetch-Site", "cross-site")
		}, "cross-origin"},
		{"without a user", func() answer {
			nobody := s.browser(t)
			return nobody.beginUpload(path, size)
		}, `"unauthenticated"`},
		{"more than a piece may have", func() answer {
			return b.send(http.MethodPost, "/uploads/x/discard", bytes.NewReader(make([]byte, 3<<20)), "Content-Type", "application/x-www-form-urlencoded")
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := test.do()
			if test.code != "" && (a.StatusCode < 400 || !strings.Contains(a.body, test.code)) {
				t.Errorf("%d %s, want %s", a.StatusCode, a.body, test.code)
			}
			if left, _ := os.ReadDir(s.uploads); len(left) > 0 {
				t.Errorf("%v is kept", left)
			}
		})
	}
}

// TestUploadDowngrade refuses an older version in the words of the page, to a script as to a browser without one.
func TestUploadDowngrade(t *testing.T) {
	s := startSite(t)
	b := s.in(t)
	newer := s.vendor.Archive(t, "2.0.0", 0)
	b.get("/import/path?path=" + newer)
	b.ends(b.post("/import/path", "path", newer))
	older := s.vendor.Archive(t, "1.0.0", 0)
	a := b.beginUpload(older, len(read(t, older)))
	var refused struct {
		Code, Command string
		Hints         []string
	}
	if err := json.Unmarshal([]byte(a.body), &refused); err != nil {
		t.Fatal(err, a.body)
	}
	hints := []string{page.Text("problem.downgrade")}
	if refused.Code != string(report.Downgrade) || refused.Command != "solutionctl deploy import FILE.iso --allow-downgrade" || !slices.Equal(refused.Hints, hints) {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

// TestPlainForm imports without a script: by a form with both files, and by the path of a file on the host.
func TestPlainForm(t *testing.T) {
	s := startSite(t)
	b := s.in(t)
	path := s.vendor.Archive(t, "1.0.0", 5<<20)
	body, kind := form(t, "bundle", sign.BundleName(path, ""), "archive", path)
	a := b.send(http.MethodPost, "/import", body, "Content-Type", kind)
	page := a.Header.Get("Location")
	if a.StatusCode != http.StatusSeeOther || !strings.HasPrefix(page, "/import/") {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	b.get(page)
	b.get(page + "/events")
	b.ends(b.post(page))
	next := s.vendor.Archive(t, "1.1.0", 0)
	if a = b.get("/import/path?path=" + next); a.StatusCode != http.StatusOK || !strings.Contains(a.body, "Import demo 1.1.0?") {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	b.ends(b.post("/import/path", "path", next))
	if got := s.stored(t); !slices.Equal(got, []string{"demo-1.0.0", "demo-1.1.0"}) {
		t.Errorf("stored %q", got)
	}
	unsigned := s.vendor.Archive(t, "1.2.0", 0)
	if err := os.Remove(sign.BundleName(unsigned, "")); err != nil {
		t.Fatal(err)
	}
	if a = b.get("/import/path?path=" + unsigned); a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, "unsigned") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if a = b.post("/import/path", "path", unsigned); a.StatusCode < 400 {
		t.Errorf("%d", a.StatusCode)
	}
	joe := s.with(t, "joe")
	if a = joe.get("/import/path?path=" + next); a.StatusCode != http.StatusForbidden {
		t.Errorf("somebody else names files of the host: %d", a.StatusCode)
	}
}

// TestPathReplaced refuses to import another archive than the one that the page has shown.
func TestPathReplaced(t *testing.T) {
	s := startSite(t)
	b := s.in(t)
	shown, other := s.vendor.Archive(t, "1.0.0", 0), s.vendor.Archive(t, "2.0.0", 0)
	examined := func() string {
		a := b.get("/import/path?path=" + shown)
		_, digest, _ := strings.Cut(a.body, `name="sha256" value="`)
		digest, _, _ = strings.Cut(digest, `"`)
		if len(digest) != 64 {
			t.Fatalf("the page has no digest: %d\n%s", a.StatusCode, a.body)
		}
		return digest
	}
	first := examined()
	for from, to := range map[string]string{other: shown, sign.BundleName(other, ""): sign.BundleName(shown, "")} {
		if err := os.WriteFile(to, read(t, from), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const refusal = "the archive is not the one that was examined"
	b.ended(b.post("/import/path", "path", shown, "sha256", first)).has(t, refusal)
	second := examined() // in another window, say
	b.ended(b.post("/import/path", "path", shown, "sha256", first)).has(t, refusal)
	if got := s.stored(t); len(got) > 0 {
		t.Fatalf("stored %q", got)
	}
	b.ends(b.post("/import/path", "path", shown, "sha256", second))
	if got := s.stored(t); !slices.Equal(got, []string{"demo-2.0.0"}) {
		t.Errorf("stored %q", got)
	}
}

// TestImportRights: a user without the permission is refused, also in a console whose host is another process.
func TestImportRights(t *testing.T) {
	s := startSite(t)
	s.api.May = func(a authorization.ResourceAttributes) bool {
		return a.Group != rights.ArchivesGroup && a.Verb != "*"
	}
	joe := s.with(t, "joe")
	if a := joe.get("/import"); !strings.Contains(a.body, rights.ArchivesGroup) || strings.Contains(a.body, `type="file"`) {
		t.Errorf("the page does not name the missing right:\n%s", a.body)
	}
	if a := joe.get("/solutions/demo/content/1.0.0"); a.StatusCode != http.StatusForbidden {
		t.Errorf("the content: %d", a.StatusCode)
	}
	path := s.vendor.Archive(t, "1.0.0", 0)
	if a := joe.beginUpload(path, len(read(t, path))); a.StatusCode != http.StatusForbidden {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if left, _ := os.ReadDir(s.uploads); len(left) > 0 {
		t.Errorf("%v is kept", left)
	}
}
