package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"

	"github.com/solutionctl/solutionctl/schema/report"
)

// FieldManager owns the fields that this tool sets. It is a constant, because a manager named after the program's file
// conflicts with itself as soon as that file is renamed.
const FieldManager = "solutionctl"

// SystemNamespace is the namespace of the tool's own state.
const SystemNamespace = "solutionctl-system"

// InFlight is the number of requests of a connection that run at once, unless its options say otherwise.
const InFlight = 8

// Options choose the cluster, the user and the limits of a connection. Only Now is required.
type Options struct {
	Kubeconfig  string   // file to read; it must exist
	Environment string   // the value of KUBECONFIG: a list of files, of which some may be missing; ignored if Kubeconfig is set
	Home        string   // the user's home directory, for .kube/config; "" looks at no such file
	Context     string   // context of the kubeconfig; "" is its current one
	As          string   // user to impersonate
	AsGroups    []string // groups to impersonate; only with As
	QPS         float32  // requests per second; 0 or less is as many as the server takes
	InFlight    int      // requests at once, without watches and what keeps a lock; 0 is [InFlight]
	UserAgent   string

	// Token, if set, returns the bearer token of a request; it is called for each, so that an expired token can be replaced. Of the
	// kubeconfig then only address, authority and proxy are used, and no certificate, token, password, helper program or
	// impersonation of it or of the pod's service account. Only As is impersonated, with the rights of the token: this is for a
	// service that is allowed to impersonate its users.
	//
	// Several goroutines call Token at once, and it should not take long. Its error ends the request at once, with the code
	// Unauthenticated unless it has its own code; neither the error nor a token is logged.
	Token func(ctx context.Context) (string, error)

	// Admit, if it is set, is called before each request to check that its user may still be impersonated. Its error ends the
	// request as that of Token does, and it is called as Token is.
	Admit func(ctx context.Context) error

	// Retry is for how long one request is tried again while the server, which has answered before, does not. 0 means 30
	// seconds; what must not wait sets it to something negative.
	Retry time.Duration

	Now  func() time.Time // the wall clock, for what other people read; never used to measure time
	Sink report.Sink      // receives warnings of the API server, and reports that it cannot be reached; may be nil
}

// Cluster is a connection to one API server. Its methods may be called by several goroutines at once.
type Cluster struct {
	options Options
	source  source
	base    *url.URL
	client  *http.Client
	limit   flowcontrol.RateLimiter // nil without a limit
	slots   chan struct{}           // has room for as many requests as run at a time
	config  *rest.Config

	retry time.Duration
	kinds discovery
	user  onceUser

	answered atomic.Bool // the server has answered before, so it may come back
	absent   atomic.Bool // the server does not answer, and the user knows
	changed  atomic.Bool // something in the cluster was changed
	warned   sync.Map    // warnings that the user has seen

	renewals chan struct{} // has room for as many locks as are renewed at a time
	freed    freedLeases
}

// source names the kubeconfig or service account of the connection, for messages.
type source struct {
	file    string // kubeconfig; "" for a pod's service account
	context string
	user    string
}

func (s source) String() string {
	switch {
	case s.file == "":
		return "the service account of this pod"
	case s.context == "":
		return s.file
	default:
		return fmt.Sprintf("%s, context %q", s.file, s.context)
	}
}

// adminConfig is the kubeconfig that kubeadm and MetalK8s leave on a control-plane node.
const adminConfig = "/etc/kubernetes/admin.conf"

// Connect finds out how to reach the cluster: from Options.Kubeconfig, else from the files in Options.Environment, else
// from .kube/config in Options.Home, else from /etc/kubernetes/admin.conf, else, inside a pod, from its service account.
// No request is sent.
func Connect(o Options) (*Cluster, error) {
	silence()
	config, from, err := load(o)
	if err != nil {
		return nil, err
	}
	config.UserAgent = o.UserAgent
	config.Timeout = 0 // each attempt has its own, watches have none
	config.WarningHandler = rest.NoWarnings{}
	if o.Token != nil {
		config = rest.AnonymousClientConfig(config)
	}
	if o.As != "" {
		config.Impersonate = rest.ImpersonationConfig{UserName: o.As, Groups: o.AsGroups}
	} else if len(o.AsGroups) > 0 {
		return nil, report.Errorf(report.Usage, "groups to impersonate without a user").WithHint("add --as USER")
	}
	c := &Cluster{options: o, source: from, config: config, retry: o.Retry, renewals: make(chan struct{}, atOnce)}
	c.slots = make(chan struct{}, max(1, cmp.Or(o.InFlight, InFlight)))
	if c.retry == 0 {
		c.retry = 30 * time.Second
	}
	if c.options.Sink == nil {
		c.options.Sink = report.Discard
	}
	if c.base, _, err = rest.DefaultServerUrlFor(config); err != nil {
		return nil, report.Errorf(report.Usage, "%s: server %q: %w", from, config.Host, err)
	}
	if c.client, err = rest.HTTPClientFor(config); err != nil {
		return nil, report.Errorf(report.Usage, "%s: %w", from, err).
			WithHint("check the certificates and keys that the kubeconfig names")
	}
	client := *c.client
	client.CheckRedirect = o.redirect
	c.client = &client
	if o.QPS > 0 {
		c.limit = flowcontrol.NewTokenBucketRateLimiter(o.QPS, max(1, int(o.QPS)))
	}
	return c, nil
}

// redirect follows a redirect of the API server only. A redirect of a Service would send credentials to another server, or pass
// another server's answer off as that of the Service. A token of a user is not sent elsewhere either.
func (o Options) redirect(_ *http.Request, before []*http.Request) error {
	const enough = 10
	if o.Token != nil || isProxied(before[0].URL.Path) || len(before) >= enough {
		return http.ErrUseLastResponse
	}
	return nil
}

// Contexts returns the names of the contexts that Options.Context may have, sorted; none when the kubeconfig cannot be
// read.
func Contexts(o Options) []string {
	rules, _ := o.rules()
	if rules == nil {
		return nil
	}
	config, err := rules.Load()
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(config.Contexts))
}

// Server is the address of the API server.
func (c *Cluster) Server() string { return c.base.Scheme + "://" + c.base.Host }

// rules returns the files that make up the kubeconfig, and their name in messages; nil when there are none.
func (o Options) rules() (*clientcmd.ClientConfigLoadingRules, string) {
	if o.Kubeconfig == "" && o.Environment != "" {
		return &clientcmd.ClientConfigLoadingRules{Precedence: filepath.SplitList(o.Environment)}, o.Environment
	}
	file := o.Kubeconfig
	if file == "" {
		file = defaultConfig(o.Home)
	}
	if file == "" {
		return nil, ""
	}
	return &clientcmd.ClientConfigLoadingRules{ExplicitPath: file}, file
}

// load reads the configuration and returns where it was found.
func load(o Options) (*rest.Config, source, error) {
	rules, file := o.rules()
	if rules == nil {
		return inCluster(o)
	}
	from := source{file: file}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: o.Context})
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, from, badConfig(from, err)
	}
	from.context = raw.CurrentContext
	if o.Context != "" {
		from.context = o.Context
	}
	context, known := raw.Contexts[from.context]
	switch {
	case known:
		from.user = context.AuthInfo
	case len(raw.Clusters) == 0:
		return nil, from, report.Errorf(report.Usage, "%s names no cluster", from.file).
			WithHint("name the kubeconfig of the cluster with --kubeconfig or in KUBECONFIG")
	case from.context == "":
		return nil, from, report.Errorf(report.Usage, "%s has no current context", from.file).
			WithHint("choose one with --context: %s", list(raw.Contexts))
	default:
		return nil, from, report.Errorf(report.Usage, "%s has no context %q", from.file, from.context).
			WithHint("it has: %s", list(raw.Contexts))
	}
	if o.Token != nil { // nor are files of credentials looked at, which need not be there
		from.user, context.AuthInfo, raw.AuthInfos = "", "", nil
		loader = clientcmd.NewNonInteractiveClientConfig(raw, from.context, &clientcmd.ConfigOverrides{}, rules)
	}
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, from, badConfig(from, err)
	}
	return config, from, nil
}

// defaultConfig returns the first of the files that are there without being named.
func defaultConfig(home string) string {
	var candidates []string
	if home != "" {
		candidates = append(candidates, filepath.Join(home, ".kube", "config"))
	}
	for _, file := range append(candidates, adminConfig) {
		if _, err := os.Stat(file); err == nil {
			return file
		}
	}
	return ""
}

func inCluster(o Options) (*rest.Config, source, error) {
	config, err := rest.InClusterConfig()
	switch {
	case errors.Is(err, rest.ErrNotInCluster):
		return nil, source{}, report.Errorf(report.Usage, "no cluster is named").
			WithHint("name its kubeconfig with --kubeconfig or in KUBECONFIG; on a control-plane node that is %s", adminConfig)
	case err != nil:
		return nil, source{}, report.Errorf(report.Failure, "service account of this pod: %w", err)
	case o.Context != "":
		return nil, source{}, report.Errorf(report.Usage, "context %q is asked for, but there is no kubeconfig", o.Context).
			WithHint("name a kubeconfig with --kubeconfig or in KUBECONFIG")
	}
	return config, source{}, nil
}

// list writes the keys of a map, sorted.
func list[V any](m map[string]V) string {
	return strings.Join(slices.Sorted(maps.Keys(m)), ", ")
}

func badConfig(from source, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return report.Errorf(report.Usage, "kubeconfig %s does not exist", from.file)
	case errors.Is(err, fs.ErrPermission):
		return report.Errorf(report.Usage, "this user has no permission to read kubeconfig %s", from.file).
			WithHint("run as root, or copy the file to where you may read it")
	default:
		return report.Errorf(report.Usage, "kubeconfig %s: %w", from.file, err)
	}
}

// silence keeps the libraries below from writing to the standard error of the process: what they know comes back as an
// error or a warning.
var silence = sync.OnceFunc(func() { klog.SetLogger(logr.Discard()) })
