package cri_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/solutionctl/solutionctl/deployer/host/cri"
	"github.com/solutionctl/solutionctl/schema/report"
)

// raw carries messages as they are on the wire.
type raw struct{}

func (raw) Marshal(v any) ([]byte, error)      { return *v.(*[]byte), nil }
func (raw) Unmarshal(data []byte, v any) error { *v.(*[]byte) = slices.Clone(data); return nil }
func (raw) Name() string                       { return "raw" }

// serve runs the server of grpc-go behind a socket. That containerd agrees is proved by the scripts of deployer/e2e.
func serve(t *testing.T, answer func(ctx context.Context, method string, request []byte) ([]byte, error)) *cri.Runtime {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.ForceServerCodec(raw{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		method, _ := grpc.MethodFromServerStream(stream)
		var request []byte
		if err := stream.RecvMsg(&request); err != nil {
			return err
		}
		data, err := answer(stream.Context(), method, request)
		if err != nil {
			return err
		}
		return stream.SendMsg(&data)
	}))
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return dial(t, socket)
}

func dial(t *testing.T, socket string) *cri.Runtime {
	t.Helper()
	r, err := cri.Dial(socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// field is a field of a message: a text, a number, or the fields of a message.
func field(number protowire.Number, value any) []byte {
	switch value := value.(type) {
	case int:
		return protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), uint64(value)) //nolint:gosec // G115: small
	case []byte:
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), value)
	}
	return field(number, []byte(value.(string)))
}

func fields(all ...[]byte) []byte { return slices.Concat(all...) }

const reference = "registry.solutionctl.invalid/shop-1.0.0/web:1@sha256:12"

func TestCalls(t *testing.T) {
	var got []string
	r := serve(t, func(ctx context.Context, method string, request []byte) ([]byte, error) {
		space := metadata.ValueFromIncomingContext(ctx, "containerd-namespace")
		got = append(got, fmt.Sprintf("%s %s %q", method, space, request))
		switch method {
		case "/runtime.v1.RuntimeService/Version":
			return fields(field(1, "0.1.0"), field(2, "containerd"), field(3, "v2.4.2"), field(4, "v1")), nil
		case "/runtime.v1.ImageService/ImageStatus":
			if !strings.Contains(string(request), "web") {
				return nil, nil
			}
			return field(1, fields(field(1, "sha256:99"), field(2, "web:1"), field(3, "web@sha256:12"), field(4, 7), field(5, field(1, 3)), field(8, 1))), nil
		case "/containerd.services.images.v1.Images/List":
			label := func(key, value string) []byte { return field(2, fields(field(1, key), field(2, value))) }
			return fields(
				field(1, fields(field(1, "site"), label("io.cri-containerd.pinned", "pinned"))),
				field(1, fields(field(1, "ours"), label("io.cri-containerd.pinned", "pinned"), label("solutionctl.io/preloaded", "true"))),
			), nil
		}
		return nil, nil
	})
	ctx := t.Context()
	if version, err := r.Version(ctx); version != "containerd v2.4.2" || err != nil {
		t.Errorf("version %q, %v", version, err)
	}
	image, err := r.Status(ctx, reference)
	if err != nil || image == nil || !image.Pinned || !slices.Equal(image.Digests, []string{"web@sha256:12"}) {
		t.Errorf("status %+v, %v", image, err)
	}
	if image, err := r.Status(ctx, "absent"); image != nil || err != nil {
		t.Errorf("status of an absent image: %+v, %v", image, err)
	}
	if kept, err := r.Kept(ctx); err != nil || len(kept) != 2 || !kept["ours"] || kept["site"] {
		t.Errorf("kept %v, %v", kept, err)
	}
	if err := errors.Join(r.Pull(ctx, reference), r.Keep(ctx, "web"), r.Release(ctx, "web")); err != nil {
		t.Error(err)
	}
	spec := field(1, field(1, reference))
	mask := field(2, fields(field(1, "labels.io.cri-containerd.pinned"), field(1, "labels.solutionctl.io/preloaded")))
	update := func(pin, own string) []byte {
		entry := func(key, value string) []byte { return field(2, fields(field(1, key), field(2, value))) }
		return fields(field(1, fields(field(1, "web"), entry("io.cri-containerd.pinned", pin), entry("solutionctl.io/preloaded", own), field(3, ""))), mask)
	}
	for _, want := range []string{
		fmt.Sprintf("/runtime.v1.ImageService/PullImage [k8s.io] %q", spec),
		fmt.Sprintf("/containerd.services.images.v1.Images/Update [k8s.io] %q", update("pinned", "true")),
		fmt.Sprintf("/containerd.services.images.v1.Images/Update [k8s.io] %q", update("", "")),
	} {
		if !slices.Contains(got, want) {
			t.Errorf("no call %s in\n%s", want, strings.Join(got, "\n"))
		}
	}
}

// TestErrors: what a runtime answers becomes one sentence with a code.
func TestErrors(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		call func(context.Context, *cri.Runtime) error
		code report.Code
		text string
	}{
		{"full disk", status.Error(codes.Unknown, "failed to extract layer: write /var/lib/x: no space left on device"), pull, report.NoSpace, "no space left on device"},
		{"not initialized", status.Error(codes.Unavailable, "server is not initialized yet"), pull, report.Unavailable, "server is not initialized yet"},
		{"not found", status.Error(codes.NotFound, "image “x”: not found"), pull, report.NotFound, "image “x”: not found"},
		{"lines and escapes", status.Error(codes.Unknown, "a\n\x1b[31mb"), pull, report.Failure, `a \u001b[31mb`},
		{"without containerd", status.Error(codes.Unimplemented, "unknown service"), list, report.Failure, cri.ErrNoKeeping.Error()},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := serve(t, func(context.Context, string, []byte) ([]byte, error) { return nil, test.err })
			err := test.call(t.Context(), r)
			if err == nil || report.CodeOf(err) != test.code || !strings.Contains(err.Error(), test.text) {
				t.Errorf("%s: %v, want %s: %s", report.CodeOf(err), err, test.code, test.text)
			}
		})
	}
}

func pull(ctx context.Context, r *cri.Runtime) error { return r.Pull(ctx, reference) }

func list(ctx context.Context, r *cri.Runtime) error {
	_, err := r.Kept(ctx)
	return err
}

// TestNoRuntime: nothing listens, something else does, or it does not answer.
func TestNoRuntime(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	gone := dial(t, socket)
	if _, err := gone.Version(t.Context()); report.CodeOf(err) != report.Unavailable || !strings.Contains(err.Error(), "does not answer at "+socket) {
		t.Errorf("nothing listens: %v", err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // of a test
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("SSH-2.0-x\r\n"))
			_ = conn.Close()
		}
	}()
	if _, err := gone.Version(t.Context()); report.CodeOf(err) != report.Unavailable {
		t.Errorf("something else listens: %v", err)
	}
	mute := serve(t, func(ctx context.Context, _ string, _ []byte) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() })
	brief, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := mute.Version(brief); err == nil {
		t.Error("a mute runtime has answered")
	}
}

// FuzzMessage: the contents of a field have no more bytes than the message, and are the same after writing them.
func FuzzMessage(f *testing.F) {
	f.Add(field(1, fields(field(1, "sha256:99"), field(3, "web@sha256:12"), field(8, 1))))
	f.Add([]byte{0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		list := cri.Contents(data)
		if size := len(slices.Concat(list...)); size > len(data) {
			t.Errorf("%d bytes in a message of %d", size, len(data))
		}
		if again := cri.Contents(cri.Message(list)); !slices.EqualFunc(again, list, bytes.Equal) {
			t.Errorf("got %q, want %q", again, list)
		}
	})
}

// TestTag: a further name has the target of the image, whether the name was free or not.
func TestTag(t *testing.T) {
	target := fields(field(1, "application/vnd.oci.image.index.v1+json"), field(2, "sha256:12"), field(3, 7))
	image := fields(field(1, "web:1"), field(3, target))
	for _, taken := range []bool{false, true} {
		var got []string
		r := serve(t, func(_ context.Context, method string, request []byte) ([]byte, error) {
			got = append(got, fmt.Sprintf("%s %q", method, request))
			switch {
			case strings.HasSuffix(method, "/Get"):
				return field(1, fields(field(1, "web@sha256:12"), field(3, target))), nil
			case strings.HasSuffix(method, "/Create") && taken:
				return nil, status.Error(codes.AlreadyExists, "image web:1: already exists")
			}
			return nil, nil
		})
		if err := r.Tag(t.Context(), "web@sha256:12", "web:1"); err != nil {
			t.Fatal(err)
		}
		const service = "/containerd.services.images.v1.Images/"
		want := []string{fmt.Sprintf(service+"Get %q", field(1, "web@sha256:12")), fmt.Sprintf(service+"Create %q", field(1, image))}
		if taken {
			want = append(want, fmt.Sprintf(service+"Update %q", fields(field(1, image), field(2, field(1, "target")))))
		}
		if !slices.Equal(got, want) {
			t.Errorf("calls\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}
