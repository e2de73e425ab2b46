package oci

import (
	"context"
	"io"
	"io/fs"
	"net/http"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Keychain finds the credentials of a registry.
type Keychain = authn.Keychain

// DefaultKeychain reads the configuration files of docker and podman and runs the credential programs they name.
func DefaultKeychain() Keychain { return authn.DefaultKeychain }

// Options say where a Resolver may look and what it takes.
type Options struct {
	BaseDir   string            // directory that relative paths in sources start from
	CacheDir  string            // holds compressed layers from build to build; empty: a temporary directory until Close
	Platforms []schema.Platform // take these platforms of an index; empty: all

	Transport  http.RoundTripper   // nil: http.DefaultTransport
	Keychain   Keychain            // nil: anonymous
	Mirrors    map[string][]string // registry or repository prefix → endpoints tried before it, in order
	DockerHost string              // socket of docker-daemon: sources, such as "unix:///var/run/docker.sock"
	Stdin      io.Reader           // content of sources whose file is "-"

	OpenArchive func(path string) (fs.FS, io.Closer, error) // opens the archive of a solution: source

	Jobs int // parallel compressions and requests; 0: the number of processors
	Sink report.Sink
}

// Resolver finds images. It is safe for concurrent use: what several images share (a tar file, an archive, a registry
// token) is opened once.
type Resolver struct{ o Options }

// NewResolver returns a resolver; Close it when no blob is read any more.
func NewResolver(o Options) *Resolver { return &Resolver{o} }

// Resolve finds the image that source names and gives it the name ref. It reads manifests only (and uncompressed
// layers, which it compresses into the cache); blobs are streamed later.
func (r *Resolver) Resolve(ctx context.Context, ref schema.ImageRef, source string) (*Image, error) {
	return nil, nil
}

// Close closes open files and removes temporary ones.
func (r *Resolver) Close() error { return nil }

// VerifyReader returns a reader of r that fails with [report.Corrupt] at the end of r, or as soon as more than d.Size
// bytes were read, unless the bytes have the digest and the size of d.
func VerifyReader(r io.Reader, d Descriptor) io.Reader { return r }

// Entry is one file of an archive. Either Data or Blob is set. Entries with equal keys have equal content.
type Entry struct {
	Path string
	Size int64
	Key  string
	Data []byte
	Blob *Blob
}

// Layout returns the files that hold the images.
func Layout(images []*Image) ([]Entry, error) { return nil, nil }

// Forms of the registry configuration.
const (
	Extended = "extended"
	Legacy   = "legacy"
)

// RegistryConfig returns registry-config.inc.j2.
func RegistryConfig(images []*Image, form string) ([]byte, error) { return nil, nil }

// PayloadType is the artifact type of a payload image.
const PayloadType = "application/vnd.solutionctl.payload.v1"

// PayloadFile is one file of a payload.
type PayloadFile struct {
	Path   string
	Digest Digest
	Size   int64
	Open   func(ctx context.Context, offset int64) (io.ReadCloser, error)
}

// PayloadImage returns an OCI artifact with one layer per file. The caller sets Ref. It has no images/ directory in
// a Layout, as MetalK8s takes each for an image, and its blobs share their keys (digests) with the files.
func PayloadImage(files []PayloadFile) (*Image, error) { return nil, nil }

// Store reads the images of an archive.
type Store struct{}

// Open reads the OCI view of an archive, or its images/ directories when it has none.
func Open(fsys fs.FS) (*Store, error) { return nil, nil }

// Images returns the images, ordered by name and tag.
func (s *Store) Images() []*Image { return nil }

// Image returns the image, or nil when the archive has none of that name.
func (s *Store) Image(ref schema.ImageRef) *Image { return nil }
