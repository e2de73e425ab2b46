// Package cri pulls images through the container runtime of a node, and keeps them from the garbage collection of the kubelet.
//
// [Dial] returns a [Runtime] for a socket. [Runtime.Status], [Runtime.Pull] and [Runtime.Version] are calls of the Container Runtime
// Interface, which every runtime has. CRI has no call that keeps an image: [Runtime.Kept], [Runtime.Keep], [Runtime.Release]
// and [Runtime.Tag] are calls of containerd, which answers them on the same socket, and [ErrNoKeeping] on others, such as CRI-O.
//
// The messages are few and small, so they are written field by field, without generated code: see docs/adr/0039-preload-through-cri.md.
package cri

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Runtime is the container runtime behind a socket. It is safe for concurrent use.
type Runtime struct {
	socket string
	conn   *grpc.ClientConn
}

// maxAnswer bounds an answer. A list of a thousand images has less than a megabyte.
const maxAnswer = 16 << 20

// Dial returns the runtime that listens on a socket. Nothing is sent before the first call.
func Dial(socket string) (*Runtime, error) {
	conn, err := grpc.NewClient("passthrough:///runtime",
		grpc.WithTransportCredentials(insecure.NewCredentials()), // the socket is protected by its mode
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(codec{}), grpc.MaxCallRecvMsgSize(maxAnswer)))
	return &Runtime{socket, conn}, err
}

// Close ends the connection.
func (r *Runtime) Close() { _ = r.conn.Close() }

// answerTime bounds each call but a pull.
const answerTime = 20 * time.Second

// Methods of the Container Runtime Interface, and of containerd.
const (
	methodVersion = "/runtime.v1.RuntimeService/Version"
	methodStatus  = "/runtime.v1.ImageService/ImageStatus"
	methodPull    = "/runtime.v1.ImageService/PullImage"
	methodList    = "/containerd.services.images.v1.Images/List"
	methodGet     = "/containerd.services.images.v1.Images/Get"
	methodCreate  = "/containerd.services.images.v1.Images/Create"
	methodUpdate  = "/containerd.services.images.v1.Images/Update"
)

// Version returns the name and the version of the runtime, such as "containerd v2.1.0".
func (r *Runtime) Version(ctx context.Context) (string, error) {
	answer, err := r.call(ctx, methodVersion, nil)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(answer.text(2) + " " + answer.text(3)), nil
}

// Image is the state of an image in a runtime.
type Image struct {
	Digests []string // NAME@DIGEST
	Pinned  bool     // the kubelet does not remove it
}

// Status returns nil for an image that the runtime does not have.
func (r *Runtime) Status(ctx context.Context, reference string) (*Image, error) {
	answer, err := r.call(ctx, methodStatus, imageSpec(reference))
	if err != nil {
		return nil, err
	}
	image := answer.message(1)
	if image == nil {
		return nil, nil //nolint:nilnil // the image is not there
	}
	return &Image{image.texts(3), image.number(8) == 1}, nil
}

// Pull pulls an image from where the node's configuration of registries finds it.
func (r *Runtime) Pull(ctx context.Context, reference string) error {
	_, err := r.invoke(ctx, methodPull, imageSpec(reference))
	return err
}

// imageSpec is a request about an image: all of them have it in their first field.
func imageSpec(reference string) message {
	return message{}.withMessage(1, message{}.withText(1, reference))
}

// Labels of images in containerd.
const (
	pinLabel = "io.cri-containerd.pinned" // its CRI plugin reports images with it as pinned
	pinValue = "pinned"
	ownLabel = "solutionctl.io/preloaded" // so that only images that were kept here are released
	ownValue = "true"
)

// ErrNoKeeping is the error of a runtime that keeps images by its own configuration only.
var ErrNoKeeping = errors.New("this container runtime keeps images by its configuration only")

// Kept returns the names of the images that the runtime keeps, with true for those that [Runtime.Keep] has marked.
func (r *Runtime) Kept(ctx context.Context) (map[string]bool, error) {
	answer, err := r.call(ctx, methodList, message{}.withText(1, `labels."`+pinLabel+`"==`+pinValue))
	if err != nil {
		return nil, err
	}
	kept := map[string]bool{}
	for _, image := range answer.messages(1) {
		kept[image.text(1)] = image.entries(2)[ownLabel] == ownValue
	}
	return kept, nil
}

// Keep marks an image, by its name, so that the kubelet does not remove it.
func (r *Runtime) Keep(ctx context.Context, name string) error {
	return r.label(ctx, name, pinValue, ownValue)
}

// Release takes the marks of [Runtime.Keep] away: the kubelet removes the image when it needs the space.
func (r *Runtime) Release(ctx context.Context, name string) error { return r.label(ctx, name, "", "") }

// Tag gives an image that the runtime has a further name, and takes that from the image that had it. Nothing is pulled.
func (r *Runtime) Tag(ctx context.Context, name, further string) error {
	answer, err := r.call(ctx, methodGet, message{}.withText(1, name))
	if err != nil {
		return err
	}
	image := message{}.withText(1, further).withMessage(3, answer.message(1).message(3))
	_, err = r.call(ctx, methodCreate, message{}.withMessage(1, image))
	if errors.Is(err, errExists) {
		_, err = r.call(ctx, methodUpdate, message{}.withMessage(1, image).withMessage(2, message{}.withText(1, "target")))
	}
	return err
}

// errExists is the error of a name that is taken.
var errExists = errors.New("the image exists already")

// label sets both labels of an image, or takes them away if they are empty, and changes nothing else of it. The mask leaves the target alone, but
// containerd, up to 2.4 at least, crashes without one.
func (r *Runtime) label(ctx context.Context, name, pin, own string) error {
	image := message{}.withText(1, name).withEntry(2, pinLabel, pin).withEntry(2, ownLabel, own).withMessage(3, nil)
	mask := message{}.withText(1, "labels."+pinLabel).withText(1, "labels."+ownLabel)
	_, err := r.call(ctx, methodUpdate, message{}.withMessage(1, image).withMessage(2, mask))
	return err
}

// call is a call that a runtime answers at once.
func (r *Runtime) call(ctx context.Context, method string, request message) (message, error) {
	brief, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	return r.invoke(brief, method, request)
}

// invoke calls a method with a message, and returns its answer. The code of an error is that of its cause.
func (r *Runtime) invoke(ctx context.Context, method string, request message) (answer message, err error) {
	ctx = metadata.AppendToOutgoingContext(ctx, "containerd-namespace", "k8s.io") // where containerd has the images of Kubernetes
	if err = r.conn.Invoke(ctx, method, &request, &answer); err == nil {
		return answer, nil
	}
	const maxText = 600
	of := status.Convert(err)
	text := report.OneLine(of.Message(), maxText)
	switch {
	case of.Code() == codes.Unimplemented:
		return nil, ErrNoKeeping
	case of.Code() == codes.AlreadyExists:
		return nil, errExists
	case of.Code() == codes.NotFound:
		return nil, report.Errorf(report.NotFound, "%s", text)
	case strings.Contains(text, "no space left on device"):
		return nil, report.Errorf(report.NoSpace, "%s", text)
	case of.Code() == codes.Unavailable || of.Code() == codes.DeadlineExceeded:
		return nil, report.Errorf(report.Unavailable, "the container runtime does not answer at %s: %s", r.socket, text).
			WithHint("look at its log on the node, with journalctl, and restart it")
	}
	return nil, errors.New(text)
}

// codec carries messages as they are on the wire.
type codec struct{}

func (codec) Marshal(v any) ([]byte, error) { return *v.(*message), nil } //nolint:forcetypeassert // called by invoke only

func (codec) Unmarshal(data []byte, v any) error {
	*v.(*message) = slices.Clone(data) //nolint:forcetypeassert // called by invoke only
	return nil
}

func (codec) Name() string { return "proto" }
