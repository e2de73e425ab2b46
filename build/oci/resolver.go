package oci

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Options are the sources and limits of a Resolver.
type Options struct {
	BaseDir   string            // directory that relative paths in sources start from
	CacheDir  string            // keeps compressed layers from run to run; empty: temporary files until Close
	WorkDir   string            // of temporary files; empty: the system's
	Platforms []schema.Platform // take these platforms of an index; empty: all
	Bills     bool              // take the bills of materials as well that a registry lists as referrers, or that attest one platform

	Transport  http.RoundTripper   // nil: one like http.DefaultTransport
	Keychain   Keychain            // nil: anonymous
	CertsDirs  []string            // with HOST[:PORT]/*.crt, *.cert and *.key of registries, for an *http.Transport; the first that has a host counts
	Mirrors    map[string][]string // registry or repository prefix → "[http://]HOST[/PREFIX]" to try before it, in order
	PlainHTTP  []string            // registries, HOST[:PORT], that are asked without TLS; mirrors say so themselves
	NoMirrors  bool                // the user has no way to name one, so that hints do not
	DockerHost string              // of docker-daemon: sources; empty: "unix:///var/run/docker.sock"
	Stdin      io.Reader           // content of sources whose file is "-"

	// OpenArchive opens the archive of a solution: source; the resolver closes it.
	OpenArchive func(path string) (fs.FS, io.Closer, error)

	Jobs int         // parallel compressions and manifest requests; 0: the number of processors
	Sink report.Sink // receives compressions; nil: report.Discard
}

// Resolver finds images. It is safe for concurrent use: sources of several images (a tar file, an archive, a token of a
// registry) are opened once.
type Resolver struct {
	o    Options
	wait func(context.Context, time.Duration) error // between attempts
	idle time.Duration                              // without a byte from a registry before its connection is closed

	layers once[*layerCache]
	places onces[string, *place]
	repos  onces[string, *endpoint]
	images onces[string, *Image] // by source
}

// place is an opened file or directory that holds images.
type place struct {
	layout *layout
	store  *Store
	close  func() error
}

// NewResolver returns a resolver; Close it when no blob is read any more.
func NewResolver(o Options) *Resolver {
	if o.Transport == nil {
		o.Transport = defaultTransport()
	}
	if t, ok := o.Transport.(*http.Transport); ok && len(o.CertsDirs) > 0 {
		o.Transport = &hostCertificates{dirs: o.CertsDirs, below: t}
	}
	if o.Sink == nil {
		o.Sink = report.Discard
	}
	if o.Jobs <= 0 {
		o.Jobs = runtime.GOMAXPROCS(0)
	}
	return &Resolver{o: o, wait: sleep, idle: time.Minute}
}

func defaultTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ResponseHeaderTimeout = 30 * time.Second
	return t
}

// TrustingTransport is the transport that a resolver has by default, and trusts certificates in PEM as well.
func TrustingTransport(ca []byte) (*http.Transport, error) {
	t := defaultTransport()
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	return t, appendAuthority(t.TLSClientConfig, ca)
}

// Resolve finds the image that source names and gives it the name ref. It reads manifests only, except that it spools
// tar files that cannot be read in place and compresses uncompressed layers into the cache. Blobs are streamed later. A source is resolved
// once, so that two plans with one resolver have the same image.
func (r *Resolver) Resolve(ctx context.Context, ref schema.ImageRef, source string) (*Image, error) {
	if err := checkRef(ref); err != nil {
		return nil, err
	}
	src, err := parseSource(source)
	if err != nil {
		return nil, err
	}
	image, err := r.images.get(source, func() (*Image, error) {
		found, failure := r.from(ctx, src)
		if failure == nil {
			failure = found.holdConfigs(ctx)
		}
		if failure == nil {
			failure = found.CheckLayers(ctx)
		}
		if failure == nil && r.o.Bills {
			failure = found.bringBills(ctx, r.o.Jobs)
		}
		return found, failure
	})
	if err != nil {
		return nil, inContext(Redact(source), err)
	}
	named := *image
	named.Ref = ref
	return &named, nil
}

func (r *Resolver) from(ctx context.Context, src source) (*Image, error) {
	switch src.kind {
	case kindLayout:
		p, err := r.open(src.kind, src.path, openLayout)
		if err != nil {
			return nil, err
		}
		return r.fromLayout(ctx, p.layout, src.ref)
	case kindLayoutArchive:
		p, err := r.tarball(ctx, src.path)
		if err != nil {
			return nil, err
		}
		return r.fromLayout(ctx, p.layout, src.ref)
	case kindDockerArchive:
		p, err := r.tarball(ctx, src.path)
		if err != nil {
			return nil, err
		}
		return r.fromDocker(ctx, p, src.ref)
	case kindDockerDaemon:
		p, err := r.daemonTarball(ctx, src.ref)
		if err != nil {
			return nil, err
		}
		return r.fromDocker(ctx, p, "")
	case kindDir:
		return r.fromDir(ctx, src.path)
	case kindSolution:
		return r.fromSolution(ctx, src)
	default:
		return r.fromRegistry(ctx, src.ref)
	}
}

func (r *Resolver) fromLayout(ctx context.Context, l *layout, ref string) (*Image, error) {
	image, err := l.named(ctx, ref, r.o.Platforms)
	if errors.Is(err, fs.ErrNotExist) && !hasIndex(l.fsys) {
		err = report.Errorf(report.Invalid, "there is no index.json: not an OCI image layout").
			WithHint("write one with `skopeo copy … oci:DIR:TAG`; a directory of skopeo's dir: format is the source dir:DIR, a `docker save` file docker-archive:FILE")
	}
	if image != nil && slices.ContainsFunc(image.Blobs, func(b Blob) bool { return isUncompressed(b.Descriptor) }) && image.Note == "" {
		image.Note = "some layers are uncompressed; they are kept as they are"
	}
	return image, err
}

func hasIndex(fsys fs.FS) bool {
	_, err := fs.Stat(fsys, indexFile)
	return err == nil
}

func (r *Resolver) fromDocker(ctx context.Context, p *place, ref string) (*Image, error) {
	cache, err := r.layers.get(func() (*layerCache, error) {
		return newLayerCache(r.o.CacheDir, r.o.WorkDir, r.o.Jobs, r.o.Sink), nil
	})
	if err != nil {
		return nil, err
	}
	a := &dockerArchive{layout: p.layout, cache: cache}
	return a.image(ctx, ref, r.o.Platforms)
}

func (r *Resolver) fromDir(ctx context.Context, dir string) (*Image, error) {
	fsys := Directory(r.path(dir))
	image, err := skopeoDir{fsys, "."}.image(ctx, r.o.Platforms)
	if _, noManifest := fs.Stat(fsys, manifestFile); errors.Is(noManifest, fs.ErrNotExist) {
		err = report.Errorf(report.Invalid, "there is no manifest.json: not a directory that skopeo wrote").
			WithHint("write one with `skopeo copy … dir:DIR`; an OCI image layout is the source oci:DIR")
	}
	return image, err
}

func (r *Resolver) fromSolution(ctx context.Context, src source) (*Image, error) {
	p, err := r.open(src.kind, src.path, r.openArchive)
	if err != nil {
		return nil, err
	}
	image, err := p.store.Find(ctx, src.ref, r.o.Platforms)
	if report.CodeOf(err) == report.NotFound {
		err = report.As(report.Invalid, err)
	}
	return image, err
}

func (r *Resolver) openArchive(path string) (*place, error) {
	if r.o.OpenArchive == nil {
		return nil, report.Errorf(report.Invalid, "images cannot be taken from archives here")
	}
	fsys, closer, err := r.o.OpenArchive(path)
	if err != nil {
		return nil, err
	}
	store, err := Open(fsys)
	if err != nil {
		return nil, errors.Join(err, closer.Close())
	}
	return &place{store: store, close: closer.Close}, nil
}

func openLayout(dir string) (*place, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, notFound(err)
	}
	if !info.IsDir() {
		return nil, report.Errorf(report.Invalid, "%s is a file", dir).WithHint("for a tar file, write oci-archive:FILE or docker-archive:FILE")
	}
	return &place{layout: &layout{fsys: Directory(dir)}, close: func() error { return nil }}, nil
}

// tarball opens a tar file, or standard input.
func (r *Resolver) tarball(ctx context.Context, path string) (*place, error) {
	if path == "-" {
		return r.places.get("-", func() (*place, error) {
			if r.o.Stdin == nil {
				return nil, report.Errorf(report.Invalid, "there is no standard input to read an image from")
			}
			return r.spool(ctx, r.o.Stdin)
		})
	}
	return r.open("tar", path, func(path string) (*place, error) {
		if info, err := os.Stat(path); err != nil {
			return nil, notFound(err)
		} else if info.IsDir() {
			return nil, report.Errorf(report.Invalid, "%s is a directory", path).WithHint("for a directory, write oci:DIR or dir:DIR")
		}
		return tarPlace(openTarball(ctx, path, r.o.WorkDir))
	})
}

func (r *Resolver) spool(ctx context.Context, stream io.Reader) (*place, error) {
	return tarPlace(spoolTarball(ctx, func() (io.ReadCloser, error) { return io.NopCloser(stream), nil }, r.o.WorkDir))
}

func tarPlace(t *tarball, err error) (*place, error) {
	if err != nil {
		return nil, err
	}
	return &place{layout: &layout{fsys: t}, close: t.Close}, nil
}

func notFound(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return report.As(report.Invalid, err).WithHint("relative paths start from the directory of solution.yaml, those of flags from the current directory")
	}
	return err
}

// open opens the source at a path, once.
func (r *Resolver) open(kind, path string, open func(path string) (*place, error)) (*place, error) {
	path = r.path(path)
	return r.places.get(kind+":"+path, func() (*place, error) { return open(path) })
}

func (r *Resolver) path(p string) string {
	if filepath.IsAbs(p) {
		return p
	}
	return filepath.Join(r.o.BaseDir, filepath.FromSlash(p))
}

// Close closes open files and removes temporary ones.
func (r *Resolver) Close() error {
	var errs []error
	for p := range r.places.drain() {
		errs = append(errs, p.close())
	}
	if cache, ok := r.layers.take(); ok {
		errs = append(errs, cache.Close())
	}
	return errors.Join(errs...)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// trimScheme splits "scheme://rest"; the scheme is empty when there is none.
func trimScheme(s string) (scheme, rest string) {
	if scheme, rest, ok := strings.Cut(s, "://"); ok {
		return scheme, rest
	}
	return "", s
}
