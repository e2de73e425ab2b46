package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// hostFlags say where this host keeps imported archives, and what else names them.
type hostFlags struct {
	*clusterFlags
	store, solutionsFile, nginxDir string
	noCluster                      bool
}

func (a *app) addHostFlags(cmd *cobra.Command) *hostFlags {
	f := &hostFlags{clusterFlags: a.addClusterFlags(cmd)}
	flags := cmd.Flags()
	flags.DurationVar(&f.lockWait, "lock-wait", 0, "wait for `DURATION` when somebody else is at work")
	f.addPlaces(cmd)
	flags.StringVar(&f.nginxDir, "nginx-dir", store.DefaultNginxDir, "where MetalK8s' nginx looks for what it serves, a `DIRECTORY`")
	return f
}

// addPlaces adds the flags that say where archives are kept and listed.
func (f *hostFlags) addPlaces(cmd *cobra.Command) {
	addStoreFlag(cmd, &f.store)
	cmd.Flags().StringVar(&f.solutionsFile, "solutions-file", store.DefaultConfiguration, "MetalK8s' configuration, a `FILE`")
}

// addNoCluster adds the flag of a command that can do its part on the host alone.
func (f *hostFlags) addNoCluster(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.noCluster, "no-cluster", false, "change this host only; the same command without it tells the cluster later")
}

func addStoreFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "store", store.DefaultDir, "where this host keeps imported archives, a `DIRECTORY`")
}

// host is this host with everything on it that names imported archives, and the cluster that it serves.
type host struct {
	app           *app
	flags         *hostFlags
	store         *store.Store
	configuration *store.Configuration
	mounts        *store.Mounts
	nginx         *store.Nginx
	deployer      *deployer.Deployer // nil: --no-cluster
}

func (a *app) openHost(f *hostFlags) (*host, error) {
	s, err := store.Open(f.store)
	if err != nil {
		return nil, err
	}
	h := &host{
		app: a, flags: f, store: s, mounts: &store.Mounts{}, nginx: &store.Nginx{Dir: f.nginxDir},
		configuration: &store.Configuration{Path: f.solutionsFile, Identify: identifyArchive},
	}
	if !f.noCluster {
		h.deployer, err = a.deployer(f.clusterFlags)
	}
	return h, err
}

// orWithoutCluster adds the other remedy to what is wrong with the connection to a cluster.
func orWithoutCluster(err error) error {
	return report.Errorf(report.CodeOf(err), "%w", err).WithHint("where there is no cluster yet, --no-cluster prepares the host")
}

// importOptions say how archives are imported.
type importOptions struct {
	verifyOptions
	skipVerify, inPlace bool
	mount, registryMode string
	endpoints           []string
	ca                  string
}

// unfinished is the error of a command that has changed something and can be run again.
func unfinished(err error) error {
	if errors.Is(err, context.Canceled) {
		return report.Errorf(report.Interrupted, "%w", err).WithHint("run the same command again, which finishes the work")
	}
	return err
}

// importing is an import on its way.
type importing struct {
	*host
	o         importOptions
	admission *admission
	mode      schema.RegistryMode
	recorded  schema.RegistryMode     // on this host; "" before its first import
	registry  *schema.ClusterRegistry // to be recorded in the cluster; nil: it is
	mounting  bool
	absent    error // why the cluster cannot be told
	report    schema.ImportReport
}

// importArchives imports archives: all of them are judged before the first one is stored, and all are stored before the
// first one counts. What the report says was done even when there is an error.
func (h *host) importArchives(ctx context.Context, paths []string, o importOptions) (*schema.ImportReport, error) {
	i := &importing{host: h, o: o, report: schema.ImportReport{Archives: []schema.ArchiveReport{}, Notices: []string{}}}
	var err error
	if i.admission, err = h.app.newAdmission(h.store, o.verifyOptions, o.skipVerify); err != nil {
		return nil, err
	}
	list, err := i.admission.all(ctx, paths)
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, c := range list {
			c.close()
		}
	}()
	if err = i.prepare(ctx, list); err != nil {
		return nil, err
	}
	locked, err := h.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer locked.Unlock() //nolint:errcheck // the end of the process gives it back, too
	if err = i.admission.again(list); err != nil {
		return nil, err
	}
	entries, err := i.bring(ctx, locked, list)
	if err != nil {
		return nil, err
	}
	if err = i.publish(ctx, list, entries); err != nil {
		return &i.report, unfinished(err)
	}
	return &i.report, unfinished(i.tellCluster(ctx, list, entries))
}

// judgeImport tells what stands against importing archives, as importArchives does before it stores the first one.
func (h *host) judgeImport(ctx context.Context, paths []string, o importOptions) error {
	i := &importing{host: h, o: o}
	var err error
	if i.admission, err = h.app.newAdmission(h.store, o.verifyOptions, o.skipVerify); err != nil {
		return err
	}
	list, err := i.admission.all(ctx, paths)
	if err != nil {
		return err
	}
	for _, c := range list {
		defer c.close()
	}
	return i.judge(ctx, list)
}

// judge finds out what the cluster and this host have against the import. Nothing is changed.
func (i *importing) judge(ctx context.Context, list []*admitted) error {
	if err := i.askCluster(ctx, list); err != nil {
		return err
	}
	return i.chooseMode()
}

// prepare finds out whether anything stands against the import, while nothing is changed yet.
func (i *importing) prepare(ctx context.Context, list []*admitted) error {
	if err := i.configuration.Check(); err != nil {
		return err
	}
	if err := i.judge(ctx, list); err != nil {
		return err
	}
	i.report.RegistryMode = i.mode
	if err := i.describeRegistry(ctx); err != nil {
		return err
	}
	return i.chooseMount()
}

// chooseMode says who serves the images.
func (i *importing) chooseMode() (err error) {
	if i.recorded, err = i.store.RegistryMode(); err != nil {
		return err
	}
	wanted := schema.RegistryMode(i.o.registryMode)
	if wanted == "auto" {
		wanted = ""
	}
	switch {
	case i.mode == "" && i.recorded != "":
		i.mode = i.recorded
	case i.mode == "" && wanted != "":
		i.mode = wanted
	case i.mode == "":
		i.mode = store.DetectRegistryMode(i.flags.nginxDir)
	}
	if wanted != "" && wanted != i.mode {
		return report.Errorf(report.Refused, "the first import chose registry mode %s, not %s", i.mode, wanted).
			WithHint("what was deployed names its images by the first one; leave out --registry-mode")
	}
	return nil
}

// describeRegistry says where nodes find images, if the cluster is to learn that now.
func (i *importing) describeRegistry(ctx context.Context) error {
	switch {
	case len(i.o.endpoints) > 0 && i.mode == schema.RegistryMetalK8s:
		return report.Errorf(report.Usage, "--endpoint is for registry mode %s: here MetalK8s' nginx serves the images", schema.RegistryOwn)
	case len(i.o.endpoints) == 0 && i.o.ca != "":
		return report.Errorf(report.Usage, "--ca goes with --endpoint: it is the authority of that endpoint")
	case len(i.o.endpoints) == 0 && i.registry == nil:
		return nil
	}
	i.registry = &schema.ClusterRegistry{Mode: i.mode, Host: registryHosts[i.mode], Endpoints: i.o.endpoints}
	var err error
	i.registry.CA, err = i.app.authorityFor(i.o.endpoints, i.o.ca, i.flags.store, func(string) error { return nil })
	if err != nil {
		return err
	}
	if err = deployer.CheckAuthority(ctx, *i.registry); err != nil || i.deployer == nil || i.absent != nil {
		return err
	}
	_, err = i.deployer.AddEndpoints(ctx, *i.registry, deployer.EndpointOptions{DryRun: true})
	return err
}

// askCluster reads what the cluster knows. That it does not answer is no reason not to store the archives.
func (i *importing) askCluster(ctx context.Context, list []*admitted) error {
	if i.deployer == nil {
		return nil
	}
	registry, err := i.deployer.Registry(ctx)
	if err == nil && registry != nil {
		i.mode = registry.Mode
	}
	var catalog *deployer.Catalog
	if err == nil {
		catalog, err = i.deployer.Catalog(ctx)
	}
	if report.CodeOf(err) == report.Unavailable && ctx.Err() == nil {
		i.absent = err
		return nil
	}
	if err != nil {
		return err
	}
	for _, c := range list {
		for _, known := range catalog.Of(c.source.Name) {
			if known.Version == c.source.Version && known.Archive.SHA256 != c.source.SHA256 && !schema.Replaceable(known.Version) {
				return report.Errorf(report.Replaced, "the cluster knows %s with other content (sha256:%s)", c.id(), known.Archive.SHA256).
					WithHint("a released version never changes, a pre-release such as %s-rc.1 may: ask the vendor which of the two is genuine", known.Version)
			}
		}
	}
	if registry == nil {
		i.registry = &schema.ClusterRegistry{}
	}
	return nil
}

func (i *importing) chooseMount() error {
	possible := i.mounts.Possible()
	switch {
	case i.o.mount == "always":
		i.mounting = true
		return possible
	case i.mode == schema.RegistryMetalK8s && i.o.mount == "never":
		return report.Errorf(report.Usage, "MetalK8s' nginx serves mounted archives only, so --mount never does not go with registry mode %s", i.mode)
	case i.mode == schema.RegistryMetalK8s && possible != nil:
		return fmt.Errorf("registry mode %s: %w", i.mode, mustMount(possible))
	case i.o.mount == "auto":
		i.mounting = possible == nil
	}
	return nil
}

// mustMount takes the hint from an error that does not apply where archives have to be mounted.
func mustMount(err error) error {
	if os.Geteuid() != 0 {
		return report.Errorf(report.CodeOf(err), "%w", errors.New(err.Error())).WithHint("run the command as root: MetalK8s' nginx serves mounted archives only")
	}
	return report.Errorf(report.CodeOf(err), "%w", errors.New(err.Error())).WithHint("MetalK8s' nginx serves mounted archives only: import where the kernel can mount them")
}

// bring stages all archives and then makes them entries of the store.
func (i *importing) bring(ctx context.Context, locked *store.Locked, list []*admitted) (entries []store.Entry, err error) {
	var staged []*store.Staged
	defer func() {
		for _, s := range staged[len(entries):] {
			err = errors.Join(err, s.Discard())
		}
	}()
	for _, c := range list {
		s, failure := locked.Stage(ctx, c.source, store.StageOptions{
			InPlace: i.o.inPlace, Now: i.app.now(), WrittenBy: readVersion().Version, Sink: i.app.sink,
		})
		if failure != nil {
			return nil, failure
		}
		staged = append(staged, s)
	}
	if i.mode != i.recorded {
		if err = locked.SetRegistryMode(i.mode, readVersion().Version); err != nil {
			return nil, err
		}
	}
	for n, s := range staged {
		entry, failure := s.Commit()
		if failure != nil {
			return entries, failure
		}
		entries = append(entries, entry)
		done := schema.ArchiveReport{
			Solution: entry.Name, Version: entry.Version, Original: entry.Original, Path: entry.Path, SHA256: entry.SHA256, Size: entry.Size,
			Method: string(s.Method), Replaces: s.Replaces, Signers: append([]string{}, list[n].names...),
		}
		if s.Method == store.Copied {
			done.BytesCopied = entry.Size
		}
		i.report.Archives = append(i.report.Archives, done)
	}
	return entries, i.admission.remember(list)
}

// publish makes MetalK8s and this host know the archives.
func (i *importing) publish(ctx context.Context, list []*admitted, entries []store.Entry) error {
	edited, err := i.configuration.Edit(ctx, func(c *schema.SolutionsConfiguration) {
		for _, e := range entries {
			store.ListArchive(c, e)
		}
	})
	if err != nil {
		return err
	}
	i.report.Notices = append(i.report.Notices, edited.Notes...)
	changed := false
	for n, e := range entries {
		served, err := i.publishOne(ctx, list[n], e, &i.report.Archives[n])
		if err != nil {
			return err
		}
		changed = changed || served
	}
	if changed {
		i.report.Notices = append(i.report.Notices, "MetalK8s' nginx serves the images after: salt-call state.sls metalk8s.repo.installed")
	}
	return nil
}

// publishOne mounts an archive and lets MetalK8s' nginx serve it. It reports whether nginx has something new to serve.
func (i *importing) publishOne(ctx context.Context, c *admitted, e store.Entry, done *schema.ArchiveReport) (changed bool, err error) {
	if !i.mounting {
		mounted, failure := i.mounts.Mounted(e)
		if mounted {
			done.Mountpoint = store.MountPoint(e.ID())
		}
		return false, failure
	}
	changed, err = i.mounts.Mount(ctx, e)
	switch {
	case err == nil:
		done.Mountpoint = store.MountPoint(e.ID())
	case i.o.mount == "auto" && i.mode == schema.RegistryOwn && ctx.Err() == nil:
		i.report.Notices = append(i.report.Notices, fmt.Sprintf("not mounted, which 'solutionctl deploy serve' does not need: %v", err))
		return false, nil
	case i.mode == schema.RegistryMetalK8s:
		return false, report.Errorf(report.CodeOf(err), "%w", errors.New(err.Error())).
			WithHint("when the cause is removed, run the same command again; MetalK8s' nginx serves mounted archives only")
	default:
		return false, err
	}
	if i.mode != schema.RegistryMetalK8s {
		return false, nil
	}
	if c.nginx == nil {
		return false, report.Errorf(report.Invalid, "archive %s has no %s, so that MetalK8s' nginx cannot serve it", e.ID(), store.NginxTemplate)
	}
	included, err := i.nginx.Include(ctx, e.ID(), c.nginx)
	return changed || included, err
}

// tellCluster makes the cluster know the archives.
func (i *importing) tellCluster(ctx context.Context, list []*admitted, entries []store.Entry) error {
	if i.deployer == nil {
		return nil
	}
	err := i.absent
	for n := 0; err == nil && n < len(list); n++ {
		record := deployer.ImportRecord{Payload: list[n].payload, Path: entries[n].Path, SHA256: entries[n].SHA256, Size: entries[n].Size}
		record.Registry, i.registry = i.registry, nil
		var notices []string
		notices, err = i.deployer.RecordImport(ctx, record)
		i.report.Notices = append(i.report.Notices, notices...)
	}
	if err != nil {
		e := report.Errorf(report.CodeOf(err), "imported on this host, but the cluster does not know it yet: %w", err)
		return e.WithHint("run the same command again when the cause is removed; with --no-cluster it would have left the cluster out")
	}
	i.report.Recorded = true
	return nil
}

// registryHosts are the names of the registries that serve images.
var registryHosts = map[schema.RegistryMode]string{
	schema.RegistryOwn: schema.RegistryHostOwn, schema.RegistryMetalK8s: schema.RegistryHostMetalK8s,
}

// unimportArchive takes an archive away, from the cluster first: what it still uses stays.
func (h *host) unimportArchive(ctx context.Context, words ...string) (*schema.UnimportReport, error) {
	locked, err := h.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer locked.Unlock() //nolint:errcheck // the end of the process gives it back, too
	e, err := h.store.Find(words...)
	if err != nil {
		return h.unimported(h.elsewhere(ctx, err, words), words)
	}
	done := &schema.UnimportReport{Solution: e.Name, Version: e.Version, Path: e.Path, Notices: []string{}}
	if !e.InPlace {
		done.Freed = e.Size
	}
	if err = errors.Join(h.checkInactive(e), h.configuration.Check()); err != nil {
		return nil, err
	}
	if h.deployer != nil {
		if err = h.deployer.RecordUnimport(ctx, e.ID()); err != nil {
			return nil, err
		}
		done.Recorded = true
	}
	if err = h.withdraw(ctx, e, done); err == nil {
		err = locked.Remove(e.ID())
	}
	return done, unfinished(err)
}

// lock takes the lock of the store.
func (h *host) lock(ctx context.Context) (*store.Locked, error) {
	return h.store.LockWithin(ctx, h.flags.lockWait, h.app.sink)
}

// errElsewhere is in the error for what was imported on another host.
var errElsewhere = errors.New("imported on another host")

// unimported tells that there is nothing to take away of a version that was named in full: the command was run before, perhaps
// by somebody who was interrupted. Anything else that is not there is an error.
func (h *host) unimported(err error, words []string) (*schema.UnimportReport, error) {
	at, full := schema.SolutionAt{}, false
	switch len(words) {
	case 1:
		for i, c := range words[0] { // a name may have dashes, too
			if _, failure := schema.ParseVersion(words[0][i:]); !full && i > 1 && words[0][i-1] == '-' && failure == nil {
				at, full = schema.SolutionAt{Solution: words[0][:i-1], Version: words[0][i:]}, c != '-'
			}
		}
	case 2:
		at = schema.SolutionAt{Solution: words[0], Version: words[1]}
		_, failure := schema.ParseVersion(words[1])
		full = failure == nil
	}
	if !full || report.CodeOf(err) != report.NotFound || errors.Is(err, errElsewhere) {
		return nil, err
	}
	return &schema.UnimportReport{
		Solution: at.Solution, Version: at.Version, Recorded: h.deployer != nil,
		Notices: append([]string{err.Error() + ": there is nothing to do"}, report.Hints(err)...),
	}, nil
}

// elsewhere explains that an archive is not in the store of this host.
func (h *host) elsewhere(ctx context.Context, err error, words []string) error {
	if report.CodeOf(err) != report.NotFound || h.deployer == nil {
		return err
	}
	catalog, failure := h.deployer.Catalog(ctx)
	if failure != nil {
		return err // what the store said is what was asked
	}
	for _, i := range catalog.Imports() {
		if len(words) == 1 && (words[0] == i.ID() || words[0] == i.Archive.Path) || len(words) == 2 && words[0] == i.Name && words[1] == i.Version {
			return report.Errorf(report.NotFound, "%s was %w by %s, as %s", i.ID(), errElsewhere, i.ImportedBy, i.Archive.Path).
				WithHint("run the command on the host that has this file")
		}
	}
	return err
}

// checkInactive refuses to take away what MetalK8s' configuration makes active.
func (h *host) checkInactive(e store.Entry) error {
	configuration, err := h.configuration.Load()
	if err != nil || h.deployer != nil { // the cluster knows better
		return err
	}
	active := configuration.Active[e.Name]
	if active == schema.ActiveLatest {
		entries, err := h.store.Entries()
		if err != nil {
			return err
		}
		for _, other := range entries { // ordered by version
			if other.Name == e.Name {
				active = other.Version
			}
		}
	}
	if active != e.Version {
		return nil
	}
	return report.Errorf(report.InUse, "%s is active, says %s", e.ID(), h.configuration.Path).
		WithHint("deactivate it first: solutionctl deploy deactivate %s", e.Name)
}

// withdraw takes away everything on this host that names an archive.
func (h *host) withdraw(ctx context.Context, e store.Entry, done *schema.UnimportReport) error {
	edited, err := h.configuration.Edit(ctx, func(c *schema.SolutionsConfiguration) { store.UnlistArchive(c, e) })
	if err != nil {
		return err
	}
	done.Notices = append(done.Notices, edited.Notes...)
	excluded, err := h.nginx.Exclude(e.ID())
	if err != nil {
		return err
	}
	if excluded {
		done.Notices = append(done.Notices, "MetalK8s' nginx forgets the images after: salt-call state.sls metalk8s.repo.installed")
	}
	_, err = h.mounts.Unmount(ctx, e)
	return err
}
