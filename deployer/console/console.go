// Package console is the web console: the verbs of package deployer in a browser, for people who do not know Kubernetes.
//
// A [Console] is an http.Handler; [Serve] runs one on an address. Every page is a document of package schema: a browser gets it
// as HTML from package page, and whoever asks for application/json gets the document itself from the same URL. GET shows a
// plan, POST carries it out and leads to the operation, whose steps come as server-sent events.
//
// The console has no rights of its own. What it asks of the API server it asks as the user who is logged in: with the token
// that came from the identity provider or was pasted, or, for a link that was printed on the host, as whoever runs the
// program. Tokens stay in the memory of this process.
//
// A browser keeps a random name of its session and nothing else, or, where several replicas share keys, the session itself,
// sealed: see ADR 0016. Sessions of one user share an identity: its tokens, its connection, and one feed of what the cluster is
// like, which is asked for only while somebody looks.
package console

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/console/archives"
	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/console/session"
	"github.com/solutionctl/solutionctl/deployer/console/web"
	"github.com/solutionctl/solutionctl/deployer/support/doctor"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/trust"
)

// Options describe a console. Connect, Origin, Version and Now are required, and one way to log in.
type Options struct {
	// Connect reaches the cluster with a token, which is asked for before each request; nil stands for whoever runs the
	// program. Nothing is sent before the first method of what it returns is called.
	Connect func(token session.Token) (*cluster.Cluster, error)
	// ConnectAs reaches the cluster with the rights of whoever runs the program to impersonate a user of the provider, who is asked for
	// before each request. Where it is set, the API server need not know the provider; nil sends the user's tokens to it.
	ConnectAs func(user string, groups []string, admit func(ctx context.Context) error) (*cluster.Cluster, error)
	// Origin is where browsers find the console: https://solutions.example.com, perhaps with a path.
	Origin string
	// Links lets in whoever has a link of [Console.NewLink], with the rights of whoever runs the program.
	Links bool
	// Tokens lets in whoever pastes a token that the API server knows.
	Tokens bool
	// Provider lets in whom an identity provider knows; nil for nobody.
	Provider *session.Provider
	// Keys give the keys for sessions that every replica with the same keys goes on with; nil keeps sessions in this process.
	Keys func() session.Keys
	// Exports is the directory for data that is exported before it is deleted; "" refuses to delete data.
	Exports string
	// Examine says what the doctor looks at on this host; nil, for a console whose users are not those of this host, is nothing.
	Examine func() (doctor.Options, error)
	Version string // of the program
	Host    string // for whoever finds a lock taken
	// LockWait is for how long an operation waits while somebody else is at work.
	LockWait time.Duration
	// Configuration is MetalK8s' file on this host, which is told which versions are active; "" for none.
	Configuration string
	// Archives is the host that keeps archives; nil where it is another one.
	Archives archives.Host
	// Trusted is whom this host trusts, for whoever comes by a link; nil where another program or host keeps that.
	Trusted func() (*trust.Store, error)
	// Settings are those of this host, which whoever comes by a link may change; nil where it is another one.
	Settings *HostSettings
	// Uploads is the directory for archives on their way, of this user alone; "" takes none.
	Uploads string
	// ArchivePaths lets whoever comes by a link name archives by their path on this host.
	ArchivePaths bool
	Sink         report.Sink // told of what goes wrong and is no user's business; nil for silence
	Now          func() time.Time
}

// Console serves the pages. Its methods may be called by several goroutines at once.
type Console struct {
	Options
	server   *web.Server
	handler  http.Handler
	archives *archives.Pages
}

// New returns a console. What it does beyond a request ends with ctx; [Console.Wait] waits for that.
func New(ctx context.Context, o Options) (*Console, error) {
	origin, err := url.Parse(o.Origin)
	if err != nil || origin.Host == "" || origin.Scheme != "https" && origin.Scheme != "http" || origin.RawQuery != "" || origin.User != nil {
		return nil, report.Errorf(report.Usage, "origin %q is not a URL like https://solutions.example.com", o.Origin)
	}
	if !o.Links && !o.Tokens && o.Provider == nil {
		return nil, report.Errorf(report.Usage, "nobody could log in to this console")
	}
	if o.Sink == nil {
		o.Sink = report.Discard
	}
	base := strings.TrimRight(origin.EscapedPath(), "/")
	pages, err := page.New(base)
	if err != nil {
		return nil, err
	}
	c := &Console{Options: o, server: web.New(web.Options{
		Context: ctx, Pages: pages, FormPage: formPage, Version: o.Version, Host: o.Host, LockWait: o.LockWait, Sink: o.Sink, Now: o.Now,
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

func (c *Console) routes() http.Handler {
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
		onInstance:                             c.app,
		onInstance + "/edit":                   c.editApp,
		onInstance + "/delete":                 c.askDeleteApp,
		"/alerts":                              c.alerts,
		"/doctor":                              c.doctor,
		"/support":                             c.support,
		"/settings":                            c.settings,
		"/settings/remove":                     c.askRemoveSetting,
		"/history":                             c.history,
		"/loader":                              c.loader,
		"/operations":                          c.showOperations,
		"/operations/{id}":                     c.showOperation,
		"/":                                    c.nothing,
	} {
		mux.Handle("GET "+pattern, c.server.Handle(read))
	}
	for pattern, v := range verbs {
		mux.Handle("GET "+pattern, c.server.Handle(c.plan(v)))
		mux.Handle("POST "+pattern, c.server.Handle(c.perform(v)))
	}
	for pattern, change := range map[string]web.Handler{
		"/environments":                    c.createEnvironment,
		"/environments/{environment}/apps": c.createApp,
		onInstance + "/edit":               c.saveApp,
		onInstance + "/scale":              c.scaleApp,
		onInstance + "/delete":             c.deleteApp,
		"/operations/resume":               c.resume,
		"/operations/{id}/stop":            c.stopOperation,
		"/settings/endpoints":              c.changeSettings(c.addEndpoint),
		"/settings/keys":                   c.changeSettings(c.addKey),
		"/settings/remove":                 c.changeSettings(c.removeSetting),
	} {
		mux.Handle("POST "+pattern, c.server.Handle(change))
	}
	c.archives.AddRoutes(mux)
	mux.Handle("POST /support", c.server.SignedIn(c.sendSupport))
	mux.Handle("GET /operations/{id}/export", c.server.SignedIn(c.sendExport))
	mux.Handle("GET /operations/{id}/events", c.server.Stream(c.followOperation))
	mux.Handle("GET /events", c.server.Stream(c.followStatus))
	return mux
}

// nothing is every page that is not there.
func (c *Console) nothing(*web.Visit) (*web.Answer, error) {
	return nil, report.Errorf(report.NotFound, "there is no such page")
}
