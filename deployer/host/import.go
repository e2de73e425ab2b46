package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign"
	"github.com/solutionctl/solutionctl/sign/trust"
)

// ImportOptions select the archives to import, the trust store, and the way of the import.
type ImportOptions struct {
	Archives []string      // files
	Opened   []OpenArchive // and these, which are open already
	Expect   []string      // digests of Archives, then of Opened, as the user has seen them; "", and those that are missing, stand for any
	More     []string      // files and directories that have further parts of the archives

	// Trusted returns whose signatures count. It is asked again once the store is locked, since an import may wait for that.
	Trusted        func() (*trust.Store, error)
	State          string   // the file with the history of imports
	Bundles        []string // files with the signatures; nil: those beside the archives
	AllowDowngrade bool
	SkipVerify     bool // import without a trusted signature, if the policy allows it

	InPlace      bool                // do not copy archives, which are on read-only media of root
	Mount        Mounting            // "" is MountAuto
	RegistryMode schema.RegistryMode // which registry serves images; "" keeps the recorded one, or is derived from the host
	Environment  string              // in which the archives will be deployed, for the names of their powers; "" where it is unknown
	Endpoints    []string            // at which nodes reach the registry of this host
	CA           string              // the file by which nodes trust them; "" is the authority of this host

	Replicas       int           // how many endpoints must serve the archives before the import ends; 0: it does not wait
	ReplicaTimeout time.Duration // for how long it waits for them

	PushTo *PushTarget // the registry of the site that gets the images; nil: none
}

// OpenArchive is an archive that the caller has opened, with all its signatures. The caller closes the file.
type OpenArchive struct {
	Name    string // by which messages call it; nothing is opened by it
	File    *os.File
	Bundles []sign.NamedBundle
}

// Mounting selects whether archives are mounted.
type Mounting string

// The ways to mount.
const (
	MountAuto   Mounting = "auto" // where the kernel can
	MountAlways Mounting = "always"
	MountNever  Mounting = "never"
)

// importing is an import on its way.
type importing struct {
	*Host
	o           ImportOptions
	admission   *admission
	mode        schema.RegistryMode
	clusterMode schema.RegistryMode     // recorded in the cluster; "" before its first import
	recorded    schema.RegistryMode     // on this host; "" before its first import
	registry    *schema.ClusterRegistry // to be recorded in the cluster; nil: it is
	mounting    bool
	absent      error // why the cluster cannot be reached
	report      schema.ImportReport
}

// Import imports archives: all are judged before the first one is stored, and all are stored before the first one
// counts. The report lists the completed steps even when there is an error.
func (h *Host) Import(ctx context.Context, o ImportOptions) (*schema.ImportReport, error) {
	o.Mount = cmp.Or(o.Mount, MountAuto)
	i := &importing{Host: h, o: o, report: schema.ImportReport{Archives: []schema.ArchiveReport{}, Notices: []string{}}}
	var err error
	if i.admission, err = h.newAdmission(o); err != nil {
		return nil, err
	}
	list, err := i.admission.all(ctx)
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
	if err = i.prepare(ctx, list); err != nil { // other processes may have decided since
		return nil, err
	}
	entries, err := i.bring(ctx, locked, list)
	if len(entries) == 0 {
		return nil, err
	}
	if err != nil {
		return &i.report, unfinished(err)
	}
	if err = i.publish(ctx, list, entries); err != nil {
		return &i.report, unfinished(err)
	}
	if err = i.push(ctx, entries); err != nil {
		return &i.report, err
	}
	if err = i.registerInCluster(ctx, list, entries); err == nil {
		err = i.awaitReplicas(ctx, entries)
	}
	return &i.report, unfinished(err)
}

// judgeImport returns the reason against importing archives, as Import does before it stores the first one.
func (h *Host) judgeImport(ctx context.Context, o ImportOptions) error {
	i := &importing{Host: h, o: o}
	var err error
	if i.admission, err = h.newAdmission(o); err != nil {
		return err
	}
	list, err := i.admission.all(ctx)
	if err != nil {
		return err
	}
	for _, c := range list {
		defer c.close()
	}
	return i.judge(ctx, list)
}

// RegistryMode returns which registry will serve the images of an import: that of the cluster's record, that of the
// host's, or the one that the host is prepared for.
func (h *Host) RegistryMode(ctx context.Context, o ImportOptions) (schema.RegistryMode, error) {
	i := &importing{Host: h, o: o}
	if err := i.askCluster(ctx, nil); err != nil {
		return "", err
	}
	err := i.chooseMode()
	return i.mode, err
}

// judge checks the import against the cluster and this host. Nothing is changed.
func (i *importing) judge(ctx context.Context, list []*admitted) error {
	if err := i.askCluster(ctx, list); err != nil {
		return err
	}
	return i.chooseMode()
}

// prepare checks, before any change, whether the import is possible.
func (i *importing) prepare(ctx context.Context, list []*admitted) error {
	if err := i.Configuration.Check(); err != nil {
		return err
	}
	if err := i.judge(ctx, list); err != nil {
		return err
	}
	i.report.RegistryMode = i.mode
	if err := i.checkReplicas(ctx); err != nil {
		return err
	}
	if err := i.describeRegistry(ctx); err != nil {
		return err
	}
	return i.chooseMount()
}

// chooseMode sets which registry serves the images.
func (i *importing) chooseMode() (err error) {
	if i.recorded, err = i.Store.RegistryMode(); err != nil {
		return err
	}
	wanted := i.o.RegistryMode
	if i.o.PushTo != nil {
		wanted = schema.RegistryExternal
	}
	if i.mode = cmp.Or(i.clusterMode, i.recorded, wanted); i.mode == "" {
		i.mode = store.DetectRegistryMode(i.Nginx.Dir)
	}
	if registryHosts[wanted] == registryHosts[i.mode] && (wanted == schema.RegistryExternal || i.mode == schema.RegistryExternal) {
		i.mode = schema.RegistryExternal // images keep their names
		return nil
	}
	if wanted != "" && wanted != i.mode {
		return report.Errorf(report.Refused, "the first import chose registry mode %s, not %s", i.mode, wanted).
			WithHint("what was deployed names its images by the first one; leave out --registry-mode and --push-to")
	}
	return nil
}

// describeRegistry sets the endpoints for images, if this import is to record them in the cluster.
func (i *importing) describeRegistry(ctx context.Context) error {
	switch {
	case i.o.PushTo != nil:
		return i.describePushed(ctx)
	case len(i.o.Endpoints) > 0 && i.mode == schema.RegistryMetalK8s:
		return report.Errorf(report.Usage, "--endpoint is for registry mode %s: here MetalK8s' nginx serves the images", schema.RegistryOwn)
	case len(i.o.Endpoints) == 0 && i.o.CA != "":
		return report.Errorf(report.Usage, "--ca goes with --endpoint: it is the authority of that endpoint")
	case len(i.o.Endpoints) == 0 && i.registry == nil:
		return nil
	}
	i.registry = &schema.ClusterRegistry{Mode: i.mode, Host: registryHosts[i.mode], Endpoints: i.o.Endpoints}
	var err error
	i.registry.CA, err = i.authorityFor(i.o.Endpoints, i.o.CA)
	if err != nil {
		return err
	}
	if err = records.CheckAuthority(ctx, *i.registry); err != nil || i.Cluster == nil || i.absent != nil {
		return err
	}
	_, err = i.Cluster.AddEndpoints(ctx, deployer.EndpointOptions{More: *i.registry, DryRun: true})
	return err
}

// askCluster reads the records of the cluster. Archives are stored even if it does not answer; it is not asked twice then.
func (i *importing) askCluster(ctx context.Context, list []*admitted) error {
	if i.Cluster == nil || i.absent != nil {
		return nil
	}
	registry, err := i.Cluster.Registry(ctx)
	if err == nil && registry != nil {
		i.clusterMode = registry.Mode
	}
	var imports []schema.Import
	if err == nil {
		if imports, err = i.Cluster.Imports(ctx); report.CodeOf(err) == report.Corrupt {
			err = nil // the import writes the record again, and reports it
		}
	}
	if report.CodeOf(err) == report.Unavailable && ctx.Err() == nil {
		i.absent = err
		return nil
	}
	if err != nil {
		return err
	}
	for _, c := range list {
		for _, known := range imports {
			if known.ID() == c.id() && known.Archive.SHA256 != c.source.SHA256 && !schema.Replaceable(known.Version) {
				return report.Errorf(report.Replaced, "the cluster knows %s with other content (sha256:%s)", c.id(), known.Archive.SHA256).
					WithHint("a released version never changes, a pre-release such as %s-rc.1 may: ask the vendor which of the two is genuine", known.Version)
			}
		}
	}
	if i.registry = nil; registry == nil {
		i.registry = &schema.ClusterRegistry{}
	}
	return nil
}

func (i *importing) chooseMount() error {
	possible := i.Mounts.Possible()
	switch {
	case i.o.Mount == MountAlways:
		i.mounting = true
		return possible
	case i.mode == schema.RegistryMetalK8s && i.o.Mount == MountNever:
		return report.Errorf(report.Usage, "MetalK8s' nginx serves mounted archives only, so --mount never does not go with registry mode %s", i.mode)
	case i.mode == schema.RegistryMetalK8s && possible != nil:
		return fmt.Errorf("registry mode %s: %w", i.mode, mustMount(possible))
	case i.o.Mount == MountAuto:
		i.mounting = possible == nil
	}
	return nil
}

// mustMount takes the hint from an error that does not apply where archives have to be mounted.
func mustMount(err error) error {
	if os.Geteuid() != 0 {
		return report.WithoutHints(err).WithHint("run the command as root: MetalK8s' nginx serves mounted archives only")
	}
	return report.WithoutHints(err).WithHint("MetalK8s' nginx serves mounted archives only: import where the kernel can mount them")
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
			InPlace: i.o.InPlace, Now: i.Now(), WrittenBy: i.Version, Sink: i.Sink,
		})
		if failure != nil {
			return nil, i.admission.explain(ctx, c, failure)
		}
		staged = append(staged, s)
	}
	if i.mode != i.recorded {
		if err = locked.SetRegistryMode(i.mode, i.Version); err != nil {
			return nil, err
		}
	}
	for n, s := range staged {
		// First the history: a process that is killed between the two leaves no archive that older versions may follow.
		if err = i.admission.remember(list[n]); err != nil {
			return entries, err
		}
		entry, failure := s.Commit()
		if failure != nil {
			return entries, failure
		}
		entries = append(entries, entry)
		done := schema.ArchiveReport{
			Solution: entry.Name, Version: entry.Version, Original: entry.Original, Path: entry.Path, SHA256: entry.SHA256, Size: entry.Size,
			Method: string(s.Method), Replaces: s.Replaces, Signers: append([]string{}, list[n].names...),
			Powers: append([]string{}, list[n].powers.Summary...),
		}
		if s.Method == store.Copied {
			done.BytesCopied = entry.Size
		}
		i.report.Archives = append(i.report.Archives, done)
		if s.Damage != nil {
			i.report.Notices = append(i.report.Notices, fmt.Sprintf("%s in the store was damaged and was replaced: %v", entry.ID(), s.Damage))
		}
	}
	return entries, nil
}

// active returns which of the entries are active in the cluster, as after the loss of the host that imported them. MetalK8s would delete the CRDs of
// an active version that is mounted and not listed as active.
func (i *importing) active(ctx context.Context, entries []store.Entry) (active []store.Entry) {
	if i.Cluster == nil || i.absent != nil {
		return nil
	}
	for _, e := range entries {
		version, err := i.Cluster.Active(ctx, e.Name)
		if err != nil {
			i.report.Notices = append(i.report.Notices, fmt.Sprintf("whether %s is active is not known, and %s does not list it as active: %v", e.ID(), i.Configuration.Path, err))
		}
		if version == e.Version {
			active = append(active, e)
		}
	}
	return active
}

// publish makes MetalK8s and this host know the archives.
func (i *importing) publish(ctx context.Context, list []*admitted, entries []store.Entry) error {
	active := i.active(ctx, entries)
	var unknown []string // Solutions that are not listed as active, while the cluster is not asked
	edited, err := i.Configuration.Edit(ctx, func(c *schema.SolutionsConfiguration) {
		for _, e := range entries {
			store.ListArchive(c, e)
			if i.mode == schema.RegistryMetalK8s && (i.Cluster == nil || i.absent != nil) && c.Active[e.Name] == "" && !slices.Contains(unknown, e.Name) {
				unknown = append(unknown, e.Name)
			}
		}
		for _, e := range active {
			c.Active[e.Name] = cmp.Or(c.Active[e.Name], e.Version) // what the file has can be newer than our record: doctor reports a difference
		}
	})
	if err != nil {
		return err
	}
	for _, name := range unknown {
		i.report.Notices = append(i.report.Notices, fmt.Sprintf("%s does not list %s as active, and the cluster was not asked. If it is active there, MetalK8s would delete its CRDs: "+
			"before MetalK8s runs, import it again with access to the cluster, or run on this host: %s", i.Configuration.Path, name, report.Run("deploy activate", name, "VERSION")))
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
		mounted, failure := i.Mounts.Mounted(e)
		if mounted {
			done.Mountpoint = store.MountPoint(e.ID())
		}
		return false, failure
	}
	changed, err = i.Mounts.Mount(ctx, e)
	switch {
	case err == nil:
		done.Mountpoint = store.MountPoint(e.ID())
	case i.o.Mount == MountAuto && i.mode != schema.RegistryMetalK8s && ctx.Err() == nil:
		i.report.Notices = append(i.report.Notices, fmt.Sprintf("not mounted, which '%s' does not need: %v", report.Run("deploy serve"), err))
		return false, nil
	case i.mode == schema.RegistryMetalK8s:
		return false, report.WithoutHints(err).
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
	included, err := i.Nginx.Include(ctx, e.ID(), c.nginx)
	return changed || included, err
}

// registerInCluster makes the cluster know the archives.
func (i *importing) registerInCluster(ctx context.Context, list []*admitted, entries []store.Entry) error {
	if i.Cluster == nil {
		return nil
	}
	err := i.absent
	for n := 0; err == nil && n < len(list); n++ {
		record := records.ImportRecord{Payload: list[n].payload, Path: entries[n].Path, SHA256: entries[n].SHA256, Size: entries[n].Size}
		record.Signers = append([]string{}, list[n].names...)
		record.Registry, i.registry = i.registry, nil
		var notices []string
		notices, err = i.Cluster.RecordImport(ctx, record)
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
	schema.RegistryOwn: schema.RegistryHostOwn, schema.RegistryExternal: schema.RegistryHostOwn, schema.RegistryMetalK8s: schema.RegistryHostMetalK8s,
}
