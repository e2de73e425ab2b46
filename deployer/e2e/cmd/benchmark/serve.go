//go:build linux

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/solutionctl/solutionctl/build/iso"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/chunk"
)

const (
	connections = 200
	leastLayer  = 8 << 20 // smaller blobs are not asked for
	sentTimes   = 6       // what is pulled in a round, in sizes of the archive
	serveStarts = 11      // how often a server is started to measure when it is ready
)

// contender is a server that is measured while clients pull from it.
type contender struct {
	name    string
	command []string
	url     string // of a blob, without its digest
	process *exec.Cmd
	ready   time.Duration // of the last start
	median  time.Duration // of several starts
}

// benchmarkServe compares the registry with nginx, which sends the same layers from unpacked files with sendfile.
func benchmarkServe(ctx context.Context, s settings) (err error) {
	if _, err = exec.LookPath("nginx"); err != nil {
		fmt.Println("nginx is not installed: there is nothing to compare serving with")
		return nil
	}
	archive, err := buildLarge(ctx, s, s.size)
	if err != nil {
		return err
	}
	dir := filepath.Join(s.dir, "serve")
	layers, image, err := unpackLayers(archive, filepath.Join(dir, "blobs"))
	if err != nil {
		return err
	}
	if err = importArchive(ctx, archive, filepath.Join(dir, "store")); err != nil {
		return err
	}
	if err = writeCertificate(dir); err != nil {
		return err
	}
	contenders, err := newContenders(s, dir, image)
	if err != nil {
		return err
	}
	for _, c := range contenders {
		if err = c.startOften(ctx); err != nil {
			return err
		}
		if err = c.start(ctx); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, c.stop()) }()
	}
	samples := make([][]sample, len(contenders))
	for round := range s.rounds + 1 {
		for i, c := range contenders {
			taken, err := c.measure(ctx, layers, sentTimes*s.size)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			if round > 0 {
				samples[i] = append(samples[i], taken)
			}
		}
	}
	printServe(contenders, samples)
	return nil
}

// unpackLayers writes the layers of an archive to files, and returns their digests and an image that has them all.
func unpackLayers(path, to string) (layers map[string]int64, image string, err error) {
	if err = os.MkdirAll(to, 0o755); err != nil {
		return nil, "", err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, "", err
	}
	defer f.Close() //nolint:errcheck // read only
	info, err := f.Stat()
	if err != nil {
		return nil, "", err
	}
	fsys, err := iso.Open(f, info.Size())
	if err != nil {
		return nil, "", err
	}
	layers = map[string]int64{}
	entries, err := fs.ReadDir(fsys, "images/image-0/1.0.0")
	if err != nil {
		return nil, "", err
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			return nil, "", err
		}
		if info.Size() < leastLayer {
			continue
		}
		layers[entry.Name()] = info.Size()
		layer := filepath.Join(to, entry.Name())
		if err := copyOut(fsys, "images/image-0/1.0.0/"+entry.Name(), layer); err != nil {
			return nil, "", err
		}
		if err := forget(layer); err != nil { // as an import does not go through the page cache either
			return nil, "", err
		}
	}
	return layers, "image-0", nil
}

func copyOut(fsys fs.FS, name, to string) error {
	in, err := fsys.Open(name)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // read only
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// importArchive does what an import does on the host.
func importArchive(ctx context.Context, path, dir string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // read only
	info, err := f.Stat()
	if err != nil {
		return err
	}
	sums, err := chunk.Sum(ctx, f, info.Size(), report.Discard)
	if err != nil {
		return err
	}
	s, err := store.Open(dir)
	if err != nil {
		return err
	}
	locked, err := s.Lock()
	if err != nil {
		return err
	}
	_, _, err = locked.Add(ctx, store.Source{
		Content: f, File: f, Chunks: &sums.Chunks, SHA256: hex.EncodeToString(sums.SHA256[:]), Path: path, Name: "benchmark", Version: "1.0.0",
		Payload: "sha256:" + strings.Repeat("0", 64),
	}, store.StageOptions{Now: time.Now()})
	return errors.Join(err, locked.Unlock())
}

// writeCertificate writes a certificate for the loopback interface that all encrypting servers use.
func writeCertificate(dir string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "cert.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600),
		os.WriteFile(filepath.Join(dir, "key.pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600))
}

const nginxConfiguration = `daemon off;
user root;
worker_processes auto;
pid %[1]s/nginx-%[2]s.pid;
error_log stderr error;
events { worker_connections 1024; }
http {
    access_log off;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 1000000;
    server {
        listen %[2]s %[3]s;
        ssl_certificate %[1]s/cert.pem;
        ssl_certificate_key %[1]s/key.pem;
        ssl_protocols TLSv1.3;
        location ~ "^/v2/benchmark-1.0.0/[^/]+/blobs/sha256:([a-f0-9]{64})$" {
            types { } default_type application/octet-stream;
            alias %[1]s/blobs/$1;
        }
    }
}
`

// servers are the contenders, in this order.
var servers = []string{"nginx", "net/http and a file for each layer (floor)", "solutionctl deploy serve"}

// serveFiles is the floor of a server in Go: it sends files, and does nothing else.
func serveFiles(ctx context.Context, dir, address, option string) error {
	server := &http.Server{Addr: address, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, filepath.Join(dir, "blobs", filepath.Base(strings.Replace(r.URL.Path, "sha256:", "", 1))))
	})}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })() // its clients have gone
	var err error
	if option == "" {
		err = server.ListenAndServe()
	} else {
		server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS13}
		server.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){} // HTTP/1.1, as the others
		err = server.ListenAndServeTLS(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

func newContenders(s settings, dir, image string) ([]*contender, error) {
	var contenders []*contender
	for _, secure := range []bool{false, true} {
		for _, name := range servers {
			address, err := freeAddress()
			if err != nil {
				return nil, err
			}
			c := &contender{name: name, url: "http://" + address + "/v2/benchmark-1.0.0/" + image + "/blobs/sha256:"}
			option := ""
			if secure {
				c.name, c.url, option = name+", TLS", strings.Replace(c.url, "http:", "https:", 1), "ssl"
			}
			switch name {
			case servers[0]:
				file := filepath.Join(dir, "nginx-"+address+".conf")
				if err = os.WriteFile(file, fmt.Appendf(nil, nginxConfiguration, dir, address, option), 0o600); err != nil {
					return nil, err
				}
				c.command = []string{"nginx", "-c", file, "-p", dir, "-e", "stderr"}
			case servers[1]:
				c.command = []string{os.Args[0], "serve-files", dir, address, option}
			default:
				c.command = []string{s.binary, "deploy", "serve", "--quiet", "--store", filepath.Join(dir, "store"), "--listen", address}
				if secure {
					c.command = append(c.command, "--tls-cert", filepath.Join(dir, "cert.pem"), "--tls-key", filepath.Join(dir, "key.pem"))
				}
			}
			contenders = append(contenders, c)
		}
	}
	return contenders, nil
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// client returns one that has a connection of its own.
func client() *http.Client {
	return &http.Client{Transport: &http.Transport{
		MaxConnsPerHost: 1, DisableCompression: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // its own server
	}}
}

// startOften measures several starts of a server.
func (c *contender) startOften(ctx context.Context) error {
	var ready []time.Duration
	for range serveStarts {
		if err := c.start(ctx); err != nil {
			return err
		}
		if err := c.stop(); err != nil {
			return err
		}
		ready = append(ready, c.ready)
	}
	c.median = median(ready)
	return nil
}

// start starts a server and waits until it answers.
func (c *contender) start(ctx context.Context) error {
	c.process = exec.CommandContext(ctx, c.command[0], c.command[1:]...)
	c.process.Stderr = os.Stderr
	started := time.Now()
	if err := c.process.Start(); err != nil {
		return err
	}
	address := strings.SplitN(c.url, "/", 4)[2]
	for {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			c.ready = time.Since(started)
			return conn.Close()
		}
		if time.Since(started) > time.Minute {
			return fmt.Errorf("%s does not listen: %w", c.name, err)
		}
		time.Sleep(time.Millisecond)
	}
}

func (c *contender) stop() error {
	err := c.process.Process.Signal(os.Interrupt)
	if _, waited := c.process.Process.Wait(); waited != nil {
		err = errors.Join(err, waited)
	}
	return err
}

// processes are the server and its workers.
func (c *contender) processes() []int {
	pids := []int{c.process.Process.Pid}
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pids[0]))
	if err != nil {
		return pids
	}
	for text := range strings.FieldsSeq(string(data)) {
		if pid, err := strconv.Atoi(text); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// cpu returns the processor time that the threads of the server have used so far.
func (c *contender) cpu() (total time.Duration) {
	for _, pid := range c.processes() {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid)) // the pattern is a good one
		for _, name := range threads {
			data, err := os.ReadFile(name)
			if err != nil {
				continue
			}
			text, _, _ := strings.Cut(string(data), " ")
			n, _ := strconv.ParseInt(text, 10, 64)
			total += time.Duration(n)
		}
	}
	return total
}

// measure pulls layers over many connections at once.
func (c *contender) measure(ctx context.Context, layers map[string]int64, total int64) (s sample, err error) {
	var digests []string
	for digest := range layers {
		digests = append(digests, digest)
	}
	var peaks []func() int64
	for _, pid := range c.processes() {
		peaks = append(peaks, watchMemory(pid))
	}
	before, started := c.cpu(), time.Now()
	var left atomic.Int64
	left.Store(total)
	group, ctx := errgroup.WithContext(ctx)
	for n := range connections {
		group.Go(func() error {
			one := client()
			defer one.CloseIdleConnections()
			buffer := make([]byte, 256<<10)
			for i := n; left.Load() > 0; i++ {
				digest := digests[i%len(digests)]
				left.Add(-layers[digest])
				read, failed := pull(ctx, one, c.url+digest, buffer)
				if failed != nil {
					return failed
				}
				if read != layers[digest] {
					return fmt.Errorf("%d bytes of %s, want %d", read, digest, layers[digest])
				}
			}
			return nil
		})
	}
	err = group.Wait()
	s.wall, s.cpu = time.Since(started), c.cpu()-before
	s.read = total - left.Load()
	for _, peak := range peaks {
		s.anon += peak()
	}
	return s, err
}

func pull(ctx context.Context, client *http.Client, url string, buffer []byte) (int64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, err
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close() //nolint:errcheck // it was read to its end
	if response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s: %s", url, response.Status)
	}
	return io.CopyBuffer(struct{ io.Writer }{io.Discard}, response.Body, buffer)
}

func printServe(contenders []*contender, samples [][]sample) {
	fmt.Printf("\nServe, %d connections, layers of at least %d MiB\n\n"+
		"| | CPU per GiB | to nginx | wall per GiB | peak RssAnon | ready after |\n|---|---|---|---|---|---|\n", connections, leastLayer>>20)
	perGiB := func(d time.Duration, s sample) float64 { return d.Seconds() / (float64(s.read) / (1 << 30)) }
	for i, c := range contenders {
		ratios := make([]float64, len(samples[i]))
		for n, s := range samples[i] {
			nginx := samples[i-i%len(servers)][n] // with the same encryption
			ratios[n] = perGiB(s.cpu, s) / perGiB(nginx.cpu, nginx)
		}
		fmt.Printf("| %s | %.3f s | %.2f | %.3f s | %.1f MiB | %.1f ms |\n", c.name,
			medianOf(samples[i], func(s sample) float64 { return perGiB(s.cpu, s) }), median(ratios),
			medianOf(samples[i], func(s sample) float64 { return perGiB(s.wall, s) }),
			median(anon(samples[i])), c.median.Seconds()*1e3)
	}
}
