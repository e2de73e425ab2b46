package doctor

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/deployer/host/node"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// host checks the needs of archives on this host.
func (x *examination) host() {
	entries := x.archives()
	x.space(entries)
	x.configuration()
	x.notifications()
	if data, err := os.ReadFile(x.Authority); err == nil {
		if block, _ := pem.Decode(data); block != nil {
			if c, err := x509.ParseCertificate(block.Bytes); err == nil {
				x.certificate("host", "", "the certificate authority of this host's registry", c.NotAfter,
					fmt.Sprintf("'%s' renews it: see that it runs, then '%s' and '%s' distribute the new one",
						report.Run("deploy serve"), report.Run("deploy registry add", "URL"), report.Run("deploy node config")))
			}
		}
	}
}

// archives looks at the store: is every archive there, with the size that was recorded, and safe from others?
func (x *examination) archives() []store.Entry {
	entries, err := x.Store.Entries()
	switch {
	case errors.Is(err, fs.ErrPermission):
		c := failure("host", "store", "", err)
		c.Result = schema.CheckSkipped
		x.record(c)
		return nil
	case err != nil:
		x.failed("host", "store", err)
		return nil
	case len(entries) == 0:
		x.skip("host", "store", "nothing was imported on this host: %s is empty", x.Store.Dir())
		return nil
	}
	good := true
	if info, err := os.Stat(x.Store.Dir()); err == nil && info.Mode().Perm()&0o022 != 0 {
		good = false
		x.add(schema.CheckProblem, "host", "store", fmt.Sprintf("others than root may write to %s: its mode is %04o", x.Store.Dir(), info.Mode().Perm()),
			"chmod go-w "+report.ShellFile(x.Store.Dir()))
	}
	for _, e := range entries {
		f, err := x.Store.Open(e)
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			good = false
			x.record(failure("host", "store", e.ID(), err))
		}
	}
	if good {
		x.ok("host", "store", "%s in %s, each with its recorded size", report.Count(len(entries), "archive"), x.Store.Dir())
	}
	return entries
}

// space judges the free space of the store.
func (x *examination) space(entries []store.Entry) {
	const little = 1 << 30
	free, total, err := x.Store.Space()
	if errors.Is(err, errors.ErrUnsupported) {
		x.skip("host", "space", "free space is only known on Linux")
		return
	}
	if err != nil {
		x.failed("host", "space", err)
		return
	}
	var largest int64
	for _, e := range entries {
		largest = max(largest, e.Size)
	}
	text := fmt.Sprintf("%s of %s are free for archives", size(free), size(total))
	hint := fmt.Sprintf("remove versions that nothing uses with '%s', or give the file system more space", report.Run("deploy unimport"))
	switch {
	case free < little:
		x.add(schema.CheckProblem, "host", "space", text, hint)
	case free < 2*largest:
		x.add(schema.CheckWarning, "host", "space", text+fmt.Sprintf("; the largest archive has %s", size(largest)), hint)
	default:
		x.ok("host", "space", "%s", text)
	}
}

func size(n int64) string { return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30)) }

// notifications reports a damaged record of the problems that were sent to a webhook. A host without one sends none.
func (x *examination) notifications() {
	path := x.Store.NotificationsPath()
	damaged := path + store.DamagedSuffix
	data, err := os.ReadFile(path)
	if err == nil {
		_, err = schema.ParseStored[schema.Notifications]("notifications", path, data)
	}
	switch _, kept := os.Stat(damaged); {
	case err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission):
		x.add(schema.CheckWarning, "host", "notifications", fmt.Sprintf("the record of sent problems is damaged: %v", err),
			fmt.Sprintf("the next '%s' keeps a copy and writes it again", report.Run("deploy notify")))
	case kept == nil:
		x.add(schema.CheckWarning, "host", "notifications", fmt.Sprintf("the record of sent problems was damaged and written again; the damaged file is %s", damaged),
			fmt.Sprintf("check the file system of %s; then: rm %s", x.Store.Dir(), report.ShellFile(damaged)))
	case err == nil:
		x.ok("host", "notifications", "the record of sent problems is intact")
	}
}

// configuration reads the file that MetalK8s reads.
func (x *examination) configuration() {
	c, err := x.Configuration.Load()
	switch {
	case errors.Is(err, fs.ErrPermission):
		x.unread("host", "configuration", fmt.Errorf("this user has no permission to read %s", x.Configuration.Path))
	case err != nil:
		x.failed("host", "configuration", err)
	case c.IsOlder():
		x.add(schema.CheckWarning, "host", "configuration", x.Configuration.Path+" is in the older form, which MetalK8s does not read",
			fmt.Sprintf("the next '%s' converts it and keeps a copy", report.Run("deploy import")))
	case len(c.Archives) == 0:
		x.skip("host", "configuration", "%s lists no archives", x.Configuration.Path)
	default:
		x.listed(c.Archives)
	}
}

// listed looks whether the archives of the configuration are there.
func (x *examination) listed(archives []string) {
	good := true
	for _, path := range archives {
		if _, err := os.Stat(path); err != nil {
			good = false
			x.add(schema.CheckWarning, "host", "configuration", fmt.Sprintf("%s lists %s, which cannot be read: %v", x.Configuration.Path, path, err),
				"import the archive again, or take the line out")
		}
	}
	if good {
		x.ok("host", "configuration", "%s is valid and lists %s", x.Configuration.Path, report.Count(len(archives), "archive"))
	}
}

// activeVersions finds versions that are imported on this host of MetalK8s and active in the cluster, and that the configuration does not list as active:
// they were activated on another machine.
func (x *examination) activeVersions() {
	if x.Store == nil {
		return
	}
	if mode, err := x.Store.RegistryMode(); err != nil || mode != schema.RegistryMetalK8s {
		return
	}
	c, err := x.Configuration.Load()
	if err != nil || c.IsOlder() { // it is reported
		return
	}
	solutions, err := x.Deployer.Records.Documents.Solutions(x.ctx)
	if err != nil {
		x.failed("host", "active versions", err)
		return
	}
	var unlisted, others, commands []string
	for _, name := range slices.Sorted(maps.Keys(solutions.Versions)) {
		for _, v := range solutions.Versions[name] {
			listed := c.Active[name]
			if !v.Active || !slices.Contains(c.Archives, v.Archive) || listed == schema.ActiveLatest || listed == v.Version || x.isActivating(name, listed) {
				continue
			}
			commands = append(commands, report.Run("deploy activate", name, v.Version).String())
			if listed == "" {
				unlisted = append(unlisted, v.ID)
			} else {
				others = append(others, fmt.Sprintf("%s instead of %s", listed, v.ID))
			}
		}
	}
	remedy := "run on this host: " + strings.Join(commands, "; ")
	if len(unlisted) > 0 {
		x.add(schema.CheckProblem, "host", "active versions", fmt.Sprintf("%s does not list as active: %s; MetalK8s would delete their CRDs, with all custom resources",
			x.Configuration.Path, strings.Join(unlisted, ", ")), remedy)
	}
	if len(others) > 0 {
		x.add(schema.CheckProblem, "host", "active versions", fmt.Sprintf("%s lists other versions than those that are active in the cluster: %s; MetalK8s would apply their CRDs",
			x.Configuration.Path, strings.Join(others, ", ")), remedy)
	}
}

// isActivating reports whether an unfinished activation makes a version active. An error is reported with the records.
func (x *examination) isActivating(solution, version string) bool {
	activating, err := x.Deployer.Records.Activating(x.ctx, solution)
	return err == nil && version != "" && activating == version
}

// node looks whether this host, if it is a node, takes images from the registry.
func (x *examination) node(registry *schema.ClusterRegistry) {
	runtime, err := node.Detect(x.Root)
	switch {
	case err != nil:
		x.skip("node", "registry", "this host is not a node: %v", err)
		return
	case registry.Mode == schema.RegistryMetalK8s:
		x.ok("node", "registry", "MetalK8s configures its nodes itself")
		return
	case len(registry.Endpoints) == 0:
		x.skip("node", "registry", "the cluster knows no endpoint of the registry yet")
		return
	}
	plan, err := node.NewPlan(x.Root, node.Config{
		Runtime: runtime, Host: registry.Host, Endpoints: registry.Endpoints, CA: []byte(registry.CA), Node: x.Node,
	})
	if err != nil {
		x.failed("node", "registry", err)
		return
	}
	for _, change := range plan.Changes {
		if change.Action == schema.NodeCreate || change.Action == schema.NodeUpdate {
			x.add(schema.CheckProblem, "node", "registry", fmt.Sprintf("%s is not configured to use the registry: %s is missing or out of date", runtime, change.Path),
				report.Run("deploy node config").String())
			return
		}
	}
	x.ok("node", "registry", "%s on this host knows the registry", runtime)
}
