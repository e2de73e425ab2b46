package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/build/artifact"
	"github.com/solutionctl/solutionctl/build/layout"
	"github.com/solutionctl/solutionctl/build/oci"
	"github.com/solutionctl/solutionctl/deployer/host/registry"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/chunk"
)

// keeper keeps a registry in step with a store. All of it runs in one goroutine, except the verification of archives
// that stay in place.
type keeper struct {
	registry *registry.Registry
	store    *store.Store
	fixed    []*registry.Archive
	log      *AccessLog
	sink     report.Sink
	now      func() time.Time

	held     map[string]*holding  // by key
	seen     string               // the last state of the store
	trouble  string               // why it could not be read last time
	reported map[string]string    // last reported error of each archive that is served although it changed
	verified chan verdict         // of verifications that are over
	running  int                  // verifications that are not
	missed   chan chan<- struct{} // requests to read the store now; the sent channel is closed when that is done
	ended    chan struct{}        // closed when the loop ends

	outlook atomic.Pointer[outlook] // for /metrics, which is asked for by other goroutines
}

// verdict is the end of a verification.
type verdict struct {
	h   *holding
	err error
}

// holding is an archive of the store.
type holding struct {
	key     string
	entry   store.Entry
	archive *registry.Archive // nil: it is not served
	file    *store.File       // while it is being verified
	cancel  context.CancelFunc
	// verified is when all of it was compared with its digests: as it was imported or, in place, since this program runs.
	verified time.Time
	problem  error
	retry    time.Time // when to try again
}

// retryAfter is the interval between attempts to serve a failed archive. A damaged one is not retried until it is
// requested.
const retryAfter = 30 * time.Second

func newKeeper(r *registry.Registry, o Options) *keeper {
	return &keeper{
		registry: r, store: o.Store, fixed: o.Archives, log: o.AccessLog, sink: o.Sink, now: o.Registry.Now,
		held: map[string]*holding{}, reported: map[string]string{}, verified: make(chan verdict),
		missed: make(chan chan<- struct{}), ended: make(chan struct{}),
	}
}

// start serves the present archives.
func (k *keeper) start(ctx context.Context) error {
	if err := k.registry.Set(k.fixed); err != nil {
		return err
	}
	defer k.judge()
	if k.store == nil {
		return nil
	}
	k.seen = k.look()
	return k.refresh(ctx)
}

// lookNow reads the store for a request of an unknown image, and returns when new imports are served, or ctx ends. It
// is safe for concurrent use.
func (k *keeper) lookNow(ctx context.Context) {
	looked := make(chan struct{})
	select {
	case k.missed <- looked:
	case <-k.ended:
		return
	case <-ctx.Done():
		return
	}
	select {
	case <-looked:
	case <-ctx.Done():
	}
}

// follow keeps up with the store until ctx ends.
func (k *keeper) follow(ctx context.Context, reload <-chan struct{}) error {
	defer close(k.ended)
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	for {
		forced := false
		var looked chan<- struct{}
		select {
		case <-ctx.Done():
			return nil
		case v := <-k.verified:
			k.running--
			k.finish(v.h, v.err)
			k.judge()
			continue
		case <-reload:
			forced = true
			for _, h := range k.held {
				h.retry = time.Time{}
			}
			for _, a := range k.served() {
				a.Retry()
			}
			if err := k.log.reopen(); err != nil {
				k.sink.Emit(report.Event{Step: "access log", State: report.Failed, Note: err.Error()})
			}
		case looked = <-k.missed:
		case <-ticks.C:
		}
		if k.store != nil {
			if seen := k.look(); forced || seen != k.seen || k.trouble != "" || k.hasRetries() {
				k.seen = seen
				k.note(k.refresh(ctx))
			}
		}
		if looked != nil {
			close(looked)
		}
		k.judge()
	}
}

// judge finds out which archives are not served as they should be, for /readyz, for /metrics and for people.
func (k *keeper) judge() {
	seen := &outlook{readable: k.trouble == "", archives: map[string]standing{}}
	reported := map[string]string{}
	for _, a := range k.served() {
		err := a.Check()
		seen.archives[a.ID()] = standing{state: stateOf(err)}
		if err != nil {
			reported[a.ID()] = err.Error()
			if k.reported[a.ID()] != err.Error() {
				k.sink.Emit(report.Event{Step: "serve", Name: a.ID(), State: report.Failed, Note: err.Error() + "; import it again"})
			}
		}
	}
	k.reported = reported
	var missing []string
	for _, key := range slices.Sorted(maps.Keys(k.held)) {
		h := k.held[key]
		one := standing{state: stateVerifying, verified: h.verified}
		switch {
		case h.problem != nil:
			one.state = stateOf(h.problem)
			missing = append(missing, h.entry.ID())
		case h.archive != nil:
			one.state = seen.archives[h.entry.ID()].state
		default: // another host must not take it for removed
			missing = append(missing, h.entry.ID())
		}
		seen.archives[h.entry.ID()] = one
	}
	k.registry.SetMissing(missing)
	k.outlook.Store(seen)
}

// note reports why the store cannot be read, once.
func (k *keeper) note(err error) {
	trouble := ""
	if err != nil {
		trouble = err.Error()
	}
	if trouble != "" && trouble != k.trouble {
		k.sink.Emit(report.Event{Step: "read the store", State: report.Failed, Note: trouble})
	}
	k.trouble = trouble
}

// look returns a text that changes with every import and unimport.
func (k *keeper) look() string {
	entries, err := os.ReadDir(k.store.Dir())
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && strings.HasSuffix(entry.Name(), ".json") {
			fmt.Fprintf(&b, "%s %d %d\n", entry.Name(), info.Size(), info.ModTime().UnixNano())
		}
	}
	return b.String()
}

func (k *keeper) hasRetries() bool {
	for _, h := range k.held {
		if h.isDue(k.now()) {
			return true
		}
	}
	return false
}

func (h *holding) isDue(now time.Time) bool { return h.problem != nil && !now.Before(h.retry) }

// refresh stops serving archives that were removed from the store, and serves new ones.
func (k *keeper) refresh(ctx context.Context) error {
	entries, err := k.store.Entries()
	if err != nil {
		return err
	}
	wanted := map[string]store.Entry{}
	for _, e := range entries {
		wanted[fmt.Sprint(e.ID(), " ", e.SHA256, " ", e.Path, " ", e.ImportedAt.UnixNano())] = e
	}
	if err := k.drop(func(h *holding) bool { _, keep := wanted[h.key]; return !keep }); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		h := k.held[key]
		switch {
		case h == nil:
			h = &holding{key: key, entry: wanted[key]}
			if !h.entry.InPlace {
				h.verified = h.entry.ImportedAt
			}
			k.held[key] = h
		case !h.isDue(k.now()):
			continue
		}
		k.add(ctx, h)
	}
	return k.registry.Set(k.served()) // there may be other signatures
}

// drop stops serving some archives.
func (k *keeper) drop(unwanted func(*holding) bool) error {
	var gone []*holding
	for key, h := range k.held {
		if unwanted(h) {
			gone = append(gone, h)
			delete(k.held, key)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	if err := k.registry.Set(k.served()); err != nil {
		return err
	}
	slices.SortFunc(gone, func(a, b *holding) int { return cmp.Compare(a.key, b.key) })
	for _, h := range gone {
		switch {
		case h.cancel != nil:
			h.cancel() // its file is closed when the verification has ended
		case h.archive != nil:
			if err := h.archive.Close(); err != nil {
				return err
			}
			k.sink.Emit(report.Event{Step: "withdraw", Name: h.entry.ID(), State: report.Done})
		}
	}
	return nil
}

// served returns every archive that is being served, in the order of their names.
func (k *keeper) served() []*registry.Archive {
	archives := slices.Clone(k.fixed)
	for _, key := range slices.Sorted(maps.Keys(k.held)) {
		if a := k.held[key].archive; a != nil {
			archives = append(archives, a)
		}
	}
	return archives
}

// add opens an archive and serves it, or has it verified first.
func (k *keeper) add(ctx context.Context, h *holding) {
	f, err := k.store.Open(h.entry)
	if err != nil {
		k.fail(h, err)
		return
	}
	h.file = f
	if !h.entry.InPlace {
		k.serve(h)
		return
	}
	h.problem = nil
	ctx, h.cancel = context.WithCancel(ctx)
	k.running++
	go func() {
		k.verified <- verdict{h, verify(ctx, f, k.sink)}
	}()
}

// verify compares every byte of an archive with its imported digests.
func verify(ctx context.Context, f *store.File, sink report.Sink) error {
	name := f.Entry.ID()
	sink.Emit(report.Event{Step: "verify", Name: name, State: report.Started})
	bad, err := chunk.Verify(ctx, f.File, f.Verified.List(), runtime.GOMAXPROCS(0), report.Discard)
	switch {
	case err != nil:
	case len(bad) > 0:
		err = report.Errorf(report.Corrupt, "bytes %d to %d of %s are not what was imported", bad[0].From, bad[0].To-1, f.Entry.Path)
	default:
		sink.Emit(report.Event{Step: "verify", Name: name, State: report.Done})
		return nil
	}
	sink.Emit(report.Event{Step: "verify", Name: name, State: report.Failed, Note: err.Error()})
	return err
}

// finish takes the result of a verification.
func (k *keeper) finish(h *holding, err error) {
	h.cancel()
	h.cancel = nil
	unimported := k.held[h.key] != h
	switch {
	case err != nil || unimported:
		if err = errors.Join(err, h.file.Close()); !unimported {
			k.fail(h, err)
		}
	default:
		h.verified = k.now()
		k.serve(h)
	}
}

// serve starts to serve an archive, whose file is open.
func (k *keeper) serve(h *holding) {
	// Records and manifests are read through the digests of the import. They are copied to memory of their own, so that
	// the reader's can be freed.
	a, err := archive.Open(h.file.Verified, h.entry.Size)
	if err != nil {
		k.fail(h, errors.Join(err, h.file.Close()))
		return
	}
	images := len(a.Images.Images())
	indexed, err := registry.NewArchive(a, h.file.File)
	if err != nil {
		k.fail(h, errors.Join(err, h.file.Close()))
		return
	}
	indexed.Share(k.shared(h.entry, h.file.File))
	h.archive, h.file = indexed, nil
	if err := k.registry.Set(k.served()); err != nil {
		h.archive = nil
		k.fail(h, errors.Join(err, indexed.Close()))
		return
	}
	h.problem = nil
	k.sink.Emit(report.Event{Step: "serve", Name: h.entry.ID(), State: report.Done, Note: fmt.Sprintf("images: %d", images)})
}

// shared is an archive of the store as other hosts pull it, with the signatures that it has by then.
func (k *keeper) shared(e store.Entry, f io.ReaderAt) registry.Shared {
	return registry.Shared{
		Repository: artifact.ServedIn + e.Name, Tag: artifact.DefaultTag(e.Version),
		Image: func(ctx context.Context) (*oci.Image, error) {
			stored, err := k.store.Bundles(e)
			if err != nil {
				return nil, err
			}
			var bundles []layout.Bundle
			for _, data := range stored {
				bundles = append(bundles, layout.Bundle{Data: data})
			}
			described, err := artifact.Describe(ctx, layout.Source{Name: e.ID(), ReaderAt: f, Size: e.Size}, e.SHA256, bundles)
			if err != nil {
				return nil, err
			}
			return described.Image, nil
		},
	}
}

// fail leaves an archive out for a while. The same error is reported once.
func (k *keeper) fail(h *holding, err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	if h.problem == nil || h.problem.Error() != err.Error() || h.retry.IsZero() {
		note := err.Error()
		if errors.Is(err, fs.ErrNotExist) {
			note += "; it is served as soon as it is there"
		}
		k.sink.Emit(report.Event{Step: "serve", Name: h.entry.ID(), State: report.Failed, Note: note})
	}
	h.problem, h.file, h.retry = err, nil, k.now().Add(retryAfter)
	if isDamaged(err) {
		h.retry = never // reading all of it again and again would not make it better
	}
}

// isDamaged reports whether an error means that an archive has other bytes than the imported ones.
func isDamaged(err error) bool {
	return report.CodeOf(err) == report.Corrupt && !errors.Is(err, fs.ErrNotExist)
}

// never is a time that does not come; a reload sets another one.
var never = time.Unix(1<<40, 0)

// close closes every archive. No registry serves them any more.
func (k *keeper) close() error {
	for _, h := range k.held {
		if h.cancel != nil {
			h.cancel()
		}
	}
	var problems []error
	for ; k.running > 0; k.running-- {
		v := <-k.verified
		problems = append(problems, v.h.file.Close())
	}
	for _, a := range k.served() {
		problems = append(problems, a.Close())
	}
	return errors.Join(problems...)
}
