package preload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/host/cri"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Runtime is the container runtime of a node. [cri.Runtime] is one.
type Runtime interface {
	Version(ctx context.Context) (string, error)
	Status(ctx context.Context, reference string) (*cri.Image, error)
	Pull(ctx context.Context, reference string) error
	Kept(ctx context.Context) (map[string]bool, error)
	Keep(ctx context.Context, name string) error
	Release(ctx context.Context, name string) error
	Tag(ctx context.Context, name, further string) error
}

// OnNode makes a node have images, and keep these and no others of an earlier run. A failure is part of the result: the next images are tried,
// unless the runtime does not answer or its disk is full.
func OnNode(ctx context.Context, r Runtime, images []string, sink report.Sink) *schema.NodePreload {
	w := &nodeWork{runtime: r, sink: sink, result: &schema.NodePreload{}}
	if err := w.run(ctx, images); err != nil {
		w.fail(err)
	}
	return w.result
}

// nodeWork is one call of OnNode.
type nodeWork struct {
	runtime Runtime
	sink    report.Sink
	result  *schema.NodePreload
	kept    map[string]bool // nil where the runtime keeps images by its configuration only
}

func (w *nodeWork) run(ctx context.Context, images []string) (err error) {
	w.result.Missing = slices.Clone(images)
	for _, image := range images {
		if _, digest, found := strings.Cut(image, "@sha256:"); !found || digest == "" {
			return report.Errorf(report.Usage, "image %s has no digest", image)
		}
	}
	if w.result.Runtime, err = w.runtime.Version(ctx); err != nil {
		return err
	}
	w.kept, err = w.runtime.Kept(ctx)
	if err != nil && !errors.Is(err, cri.ErrNoKeeping) {
		return err
	}
	if err = w.release(ctx, images); err != nil { // first, so that the kubelet can make room
		return err
	}
	for _, image := range images {
		err := w.image(ctx, image)
		switch code := report.CodeOf(err); {
		case err == nil:
			w.result.Missing = slices.DeleteFunc(w.result.Missing, func(missing string) bool { return missing == image })
		case ctx.Err() != nil || code == report.NoSpace || code == report.Unavailable:
			return err
		default:
			w.fail(err)
		}
	}
	return w.check(ctx, images)
}

// fail records the first failure.
func (w *nodeWork) fail(err error) {
	if w.result.Problem == "" {
		w.result.Code, w.result.Problem, w.result.Hint = report.CodeOf(err), err.Error(), strings.Join(report.Hints(err), "; ")
	}
}

// release releases the images that an earlier run kept and that are not needed.
func (w *nodeWork) release(ctx context.Context, images []string) error {
	needed := map[string]bool{}
	for _, image := range images {
		needed[nameOf(image)], needed[taggedOf(image)] = true, true
	}
	for name, ours := range w.kept {
		if !ours || needed[name] {
			continue
		}
		err := w.runtime.Release(ctx, name)
		switch {
		case report.CodeOf(err) == report.NotFound: // removed by another process
			continue
		case err != nil:
			return fmt.Errorf("release %s: %w", name, err)
		}
		if strings.Contains(name, "@") { // its tag is not another image
			w.result.Released++
		}
	}
	return nil
}

// image pulls an image unless the node has it, and keeps it.
func (w *nodeWork) image(ctx context.Context, image string) error {
	have, err := w.runtime.Status(ctx, image)
	if err != nil {
		return fmt.Errorf("image %s: %w", image, err)
	}
	pulled := have == nil
	if pulled {
		event := report.Event{Step: "pull", Name: image, State: report.Started}
		w.sink.Emit(event)
		if err = w.runtime.Pull(ctx, image); err != nil {
			event.State, event.Note = report.Failed, err.Error()
			w.sink.Emit(event)
			return pullFailed(image, err)
		}
		event.State = report.Done
		w.sink.Emit(event)
	}
	if err = w.tag(ctx, image); err != nil {
		return err
	}
	pinned := false
	for _, name := range []string{nameOf(image), taggedOf(image)} {
		if _, kept := w.kept[name]; w.kept == nil || kept {
			continue
		}
		if err := w.runtime.Keep(ctx, name); err != nil {
			return fmt.Errorf("keep image %s: %w", name, err)
		}
		pinned = true
	}
	if pinned {
		w.result.Pinned++
	}
	if pulled {
		w.result.Pulled++
	} else {
		w.result.Present++
	}
	return nil
}

// tag makes the name with the tag stand for the image: operators start images by it. containerd needs no registry for that. Others pull the
// tag, which must have the same digest.
func (w *nodeWork) tag(ctx context.Context, image string) error {
	tagged := taggedOf(image)
	isSame := func() (bool, error) {
		have, err := w.runtime.Status(ctx, tagged)
		return have != nil && slices.Contains(have.Digests, nameOf(image)), err
	}
	same, err := isSame()
	if err != nil || same {
		return err
	}
	if w.kept != nil {
		if err = w.runtime.Tag(ctx, nameOf(image), tagged); err != nil {
			return fmt.Errorf("tag image %s: %w", tagged, err)
		}
		delete(w.kept, tagged) // the labels belong to the name, which may be new
		return nil
	}
	if err = w.runtime.Pull(ctx, tagged); err != nil {
		return pullFailed(tagged, err)
	}
	if same, err = isSame(); err == nil && !same {
		err = report.Errorf(report.Mismatch, "image %s of the registry has another digest than the imported archive", tagged).
			WithHint("see what serves it: %s", report.Run("deploy doctor"))
	}
	return err
}

func pullFailed(image string, err error) error {
	err = fmt.Errorf("pull image %s: %w", image, err)
	switch report.CodeOf(err) {
	case report.NoSpace:
		return report.As(report.NoSpace, err).WithHint("free space on the disk of this node's images, then run the command again: it continues")
	case report.Unavailable:
		return err
	}
	return report.As(report.CodeOf(err), err).WithHint("'%s' shows whether the registry has it, and '%s' whether this node finds the registry", report.Run("deploy doctor"), report.Run("deploy node config"))
}

// settleTime is how long a runtime takes at most to report an image as pinned.
const settleTime = 5 * time.Second

// check lists the images that the kubelet may remove. containerd learns of labels a moment later.
func (w *nodeWork) check(ctx context.Context, images []string) error {
	wait, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	w.result.Unpinned = slices.DeleteFunc(slices.Clone(images), func(image string) bool { return slices.Contains(w.result.Missing, image) })
	for {
		var failure error
		w.result.Unpinned = slices.DeleteFunc(w.result.Unpinned, func(image string) bool {
			status, err := w.runtime.Status(ctx, image)
			failure = errors.Join(failure, err)
			return status != nil && status.Pinned
		})
		if failure != nil {
			return failure
		}
		if len(w.result.Unpinned) == 0 || w.kept == nil {
			break
		}
		if cluster.Sleep(wait, settleTime/50) != nil {
			return ctx.Err()
		}
	}
	return nil
}

// nameOf is the name of an image by its digest, as runtimes have it: a reference without its tag.
func nameOf(reference string) string {
	name, digest, _ := strings.Cut(reference, "@")
	if colon := strings.LastIndex(name, ":"); colon > strings.LastIndex(name, "/") {
		name = name[:colon]
	}
	return name + "@" + digest
}

// taggedOf is a reference without its digest.
func taggedOf(reference string) string {
	name, _, _ := strings.Cut(reference, "@")
	return name
}

// UnpinnedText is a notice about the images of a node that the kubelet may remove.
func UnpinnedText(n *schema.NodePreload) string {
	text := fmt.Sprintf("%s: the kubelet may remove %s, because %s does not keep them: ", n.Node, report.Count(len(n.Unpinned), "image"), n.Runtime)
	if strings.HasPrefix(strings.ToLower(n.Runtime), "cri-o") {
		return text + "its configuration has to name them, as the lines of " + report.Run("deploy node preload").With("runtime", "crio").With("print", Shell).String() + " do"
	}
	return text + "a newer release of it does"
}
