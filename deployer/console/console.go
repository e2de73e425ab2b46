// Package console is the web console: the verbs of package deployer in a browser, for users who do not know Kubernetes.
//
// A [Console] is an http.Handler; [Serve] runs one on an address. Every page is a document of package schema: a browser
// gets it as HTML from package page, and a request for application/json gets the document itself from the same URL. GET
// shows a plan, POST carries it out and leads to the operation, whose steps come as server-sent events.
//
// The console has no permissions of its own. It uses the API server as the user who is logged in: with the token of the
// identity provider, with one that was pasted, or, for a link that was printed on the host, as the user who runs the
// program. Tokens stay in the memory of this process.
//
// A browser stores only the random name of its session or, where several replicas share keys, the sealed session
// itself: see ADR 0016. Sessions of one user share an identity: its tokens, its connection, and one feed of the state
// of the cluster, which is read only while a browser shows it.
package console

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/console/archives"
	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/console/session"
	"github.com/solutionctl/solutionctl/deployer/console/web"
	"github.com/solutionctl/solutionctl/deployer/support/doctor"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/trust"
)

// Options describe a console. Connect, Origin, Version and Now are required, and one way to log in.
type Options struct {
	// Connect reaches the cluster with a token, which is requested before each request; nil means the user who runs the
	// program. It sends nothing before the first method of its result is called.
	Connect func(token session.Token) (*cluster.Cluster, error)
	// ConnectAs reaches the cluster with the permission of the user who runs the program to impersonate a user of the
	// provider; admit is called before each request. With it, the API server need not know the provider; nil sends the
	// user's tokens to it.
	ConnectAs func(user string, groups []string, admit func(ctx context.Context) error) (*cluster.Cluster, error)
	// Origin is where browsers find the console: https://solutions.example.com, perhaps with a path.
	Origin string
	// Links admits a browser with a link of [Console.NewLink], with the permissions of the user who runs the program.
	Links bool
	// Tokens admits users who paste a token that the API server accepts.
	Tokens bool
	// Provider admits the users of an identity provider; nil for none.
	Provider *session.Provider
	// Keys returns the keys of sessions that every replica with the same keys accepts; nil keeps sessions in this
	// process.
	Keys func() session.Keys
	// Exports is the directory for data that is exported before it is deleted; "" refuses to delete data.
	Exports string
	// Examine returns the options of the doctor for this host; nil for a console whose users are not users of this
	// host.
	Examine func() (doctor.Options, error)
	Version string // of the program
	Host    string // shown to users who wait for a lock
	// LockWait is how long an operation waits for a lock.
	LockWait time.Duration
	// Active is the list of active versions on this host; nil for none.
	Active deployer.ActiveVersions
	// Archives is the host that keeps archives; nil where it is another one.
	Archives archives.Host
	// Trusted returns the trust store of this host, for users with a link; nil where another program or host has it.
	Trusted func() (*trust.Store, error)
	// Settings are the settings of this host, which users with a link can change; nil where another host has them.
	Settings *HostSettings
	// Uploads is the directory for incomplete archives, which only this user can access; "" disables uploads.
	Uploads string
	// ArchivePaths lets users with a link name archives by their path on this host.
	ArchivePaths bool
	Sink         report.Sink // receives errors of the console itself; nil for silence
	Now          func() time.Time
	// After reports that a time has passed on the clock of Now; nil is time.After.
	After func(time.Duration) <-chan time.Time
}

// Console serves the pages. Its methods may be called by several goroutines at once.
type Console struct {
	Options
	server   *web.Server
	handler  http.Handler
	archives *archives.Pages
}

// New returns a console. Its background work ends with ctx; [Console.Wait] waits for that.
func New(ctx context.Context, o Options) (*Console, error) {
	origin, err := url.Parse(o.Origin)
	if err != nil || origin.Host == "" || origin.Scheme != "https" && origin.Scheme != "http" || origin.RawQuery != "" || origin.User != nil {
		return nil, report.Errorf(report.Usage, "origin %q is not a URL like https://solutions.example.com", o.Origin)
	}
	if !o.Links && !o.Tokens && o.Provider == nil {
		return nil, report.Errorf(report.Usage, "no way to log in to this console is enabled")
	}
	if o.Sink == nil {
		o.Sink = report.Discard
	}
	if o.After == nil {
		o.After = time.After
	}
	base := strings.TrimRight(origin.EscapedPath(), "/")
	pages, err := page.New(base)
	if err != nil {
		return nil, err
	}
	c := &Console{Options: o, server: web.New(web.Options{
		Context: ctx, Pages: pages, FormPage: formPage, Version: o.Version, Host: o.Host, LockWait: o.LockWait, Sink: o.Sink, Now: o.Now, After: o.After, Active: o.Active,
		Login: session.Options{
			Connect: o.Connect, ConnectAs: o.ConnectAs, Origin: o.Origin, Links: o.Links, Tokens: o.Tokens, Provider: o.Provider, Keys: o.Keys,
			Base: base, Secure: origin.Scheme == "https", Sink: o.Sink, Now: o.Now,
		},
	})}
	if c.archives, err = archives.New(c.server, archives.Options{Host: o.Archives, Uploads: o.Uploads, Paths: o.ArchivePaths}); err != nil {
		return nil, err
	}
	c.handler = c.guard(origin.Host, c.below(c.routes()))
	return c, nil
}

// ServeHTTP answers a request.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) { c.handler.ServeHTTP(w, r) }

// Wait waits until the operations have ended, which they do when the context of the console does, and returns how many of
// them were interrupted.
func (c *Console) Wait() (interrupted int) { return c.server.Operations.Wait() }

// NewLink returns a link that logs in the user who follows it first, with the rights of the user who runs the program.
func (c *Console) NewLink() string { return c.server.Sessions.NewLink() }

// onInstance is the pattern of the pages of an instance.
const onInstance = "/environments/{environment}/apps/{namespace}/{kind}/{name}"

// onComponents is the pattern of the page of the components of a Solution in an environment.
const onComponents = "/environments/{environment}/components/{solution}"

// onObjects and onLogs are the patterns of the pages of a deployed Solution down to its containers, and of their logs.
const (
	onObjects = "/environments/{environment}/objects/{solution}"
	onLogs    = "/environments/{environment}/logs/{solution}"
)

func (c *Console) routes() http.Handler {
	logs, settings := logPages{c}, settingsPages{c}
	mux := http.NewServeMux()
	mux.Handle("GET /static/", c.server.Pages.Static())
	mux.HandleFunc("GET /login", c.server.Sessions.Login)
	if c.Links {
		mux.HandleFunc("GET /start", c.server.Sessions.Start)
	}
	if c.Tokens {
		mux.HandleFunc("POST /login/token", c.server.Sessions.LoginToken)
	}
	if c.Provider != nil {
		mux.HandleFunc("GET /auth/start", c.server.Sessions.StartProvider)
		mux.HandleFunc("GET /auth/callback", c.server.Sessions.FinishProvider)
	}
	mux.HandleFunc("POST /logout", c.server.Sessions.Logout)
	for pattern, read := range map[string]web.Handler{
		"/{$}":                                 c.overview,
		"/solutions":                           c.solutions,
		"/solutions/{solution}":                c.solution,
		"/environments":                        c.environments,
		"/environments/new":                    c.newEnvironment,
		"/environments/{environment}":          c.environment,
		"/environments/{environment}/apps":     c.apps,
		"/environments/{environment}/apps/new": c.newApp,
		onComponents:                           c.components,
		onObjects:                              c.objects,
		onLogs:                                 logs.show,
		onInstance:                             c.app,
		onInstance + "/edit":                   c.editApp,
		onInstance + "/delete":                 c.askDeleteApp,
		"/alerts":                              c.alerts,
		"/doctor":                              c.doctor,
		"/support":                             c.support,
		"/settings":                            settings.show,
		"/settings/remove":                     settings.askRemove,
		"/history":                             c.history,
		"/states":                              c.states,
		"/loader":                              c.loader,
		"/operations":                          c.showOperations,
		"/operations/{id}":                     c.showOperation,
		"/":                                    c.nothing,
	} {
		mux.Handle("GET "+pattern, c.server.HandleRead(read))
	}
	for pattern, v := range verbs {
		mux.Handle("GET "+pattern, c.server.HandleRead(c.plan(v)))
		mux.Handle("POST "+pattern, c.server.HandleRead(c.perform(v))) // the operation does the rest
		if v.parts {
			mux.Handle("GET "+valuesPath(pattern), c.server.HandleRead(c.values(v)))
			mux.Handle("POST "+valuesPath(pattern), c.server.HandleRead(c.saveValues(v))) // in memory
		}
	}
	for pattern, change := range map[string]web.Handler{
		"/environments":                    c.createEnvironment,
		"/environments/{environment}/apps": c.createApp,
		onInstance + "/edit":               c.saveApp,
		onInstance + "/scale":              c.scaleApp,
		onInstance + "/delete":             c.deleteApp,
		"/operations/resume":               c.resume,
		"/operations/{id}/stop":            c.stopOperation,
		"/settings/endpoints":              settings.change(settings.addEndpoint),
		setUpPath:                          c.setUpImages,
		"/settings/keys":                   settings.change(settings.addKey),
		"/settings/remove":                 settings.change(settings.remove),
	} {
		mux.Handle("POST "+pattern, c.server.Handle(change))
	}
	c.archives.AddRoutes(mux)
	mux.Handle("POST /support", c.server.SignedIn(c.sendSupport))
	mux.Handle("GET /operations/{id}/export", c.server.SignedIn(c.sendExport))
	mux.Handle("GET /operations/{id}/events", c.server.Stream(c.followOperation))
	mux.Handle("GET "+onLogs+"/download", c.server.SignedIn(logs.download))
	mux.Handle("GET "+onLogs+"/events", c.server.Stream(logs.follow))
	mux.Handle("GET /events", c.server.Stream(c.followStatus))
	return mux
}

// states explains the states of deployments and applications.
func (c *Console) states(v *web.Visit) (*web.Answer, error) {
	v.Frame.Section = page.SectionOverview
	v.Frame.Trail = []page.Link{{Label: page.Text("section.overview"), URL: page.URL()}}
	return &web.Answer{Document: schema.States(), Content: &page.States{States: schema.States()}}, nil
}

// nothing is every page that is not there.
func (c *Console) nothing(*web.Visit) (*web.Answer, error) {
	return nil, report.Errorf(report.NotFound, "there is no such page")
}
