package console

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/console/session"
	"github.com/solutionctl/solutionctl/deployer/console/web"
	"github.com/solutionctl/solutionctl/deployer/host"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema/report"
	"github.com/solutionctl/solutionctl/sign/trust"
)

// HostSettings are the settings of this host.
type HostSettings struct {
	Open     func() (*host.Host, error) // whose registry serves images
	TrustDir string                     // has the keys of signers
	Images   *HostImages                // nil for a user who is not allowed to write the files of this host
}

// settingsPages are the pages with the settings of the host.
type settingsPages struct{ *Console }

// show shows the settings of the console, and the sessions of the user.
func (c settingsPages) show(v *web.Visit) (*web.Answer, error) { return c.showSettings(v, nil) }

// showSettings shows the settings, and the problem with a change that was asked for.
func (c settingsPages) showSettings(v *web.Visit, problem error) (*web.Answer, error) {
	v.Frame.Section = page.SectionSettings
	content := &page.Settings{ReadOnly: page.Text("settings.elsewhere"), Actions: []page.Action{{
		Label: page.Text("action.logoutAll"), URL: "/logout", Post: true, Fields: []page.Hidden{{Name: "all", Value: "true"}},
	}}}
	registry, err := v.Deployer(nil).Records.Registry(v.Context())
	if report.CodeOf(err) == report.Unauthenticated {
		return nil, err
	}
	if err == nil && registry != nil {
		content.Registry = records.Endpoints(registry)
	}
	content.RegistryUnknown = err != nil
	v.Frame.Problem = page.ProblemOf(cmp.Or(problem, err))
	c.showTrust(v, content)
	if c.Settings.mayChange(v) == nil {
		content.ReadOnly = ""
		addChanges(v, content, c.Trusted != nil, problem)
	}
	list := c.server.Sessions.SessionsOf(v.Identity)
	slices.SortFunc(list, func(a, b *session.Session) int { return a.Started.Compare(b.Started) })
	for _, s := range list {
		content.Sessions = append(content.Sessions, page.Session{
			User: s.User, Way: page.Text("way." + string(s.Way)), Started: s.Started, Seen: c.server.Sessions.LastSeen(s), Current: s.Id == v.Id,
		})
	}
	content.About = []page.Fact{{Name: page.Text("settings.version"), Value: c.Version}, {Name: page.Text("settings.apiserver"), Value: v.Cluster.Server()}}
	if version, err := v.Cluster.Version(v.Context()); err == nil {
		content.About = append(content.About, page.Fact{Name: page.Text("settings.kubernetes"), Value: version})
	}
	a := &web.Answer{Document: records.Endpoints(registry), Content: content}
	if problem != nil {
		a.Status, a.Document = web.StatusOf(problem), web.FailureOf(problem)
	}
	return a, nil
}

// showTrust shows the keys that this host trusts to users with a link, who can read its files anyway.
func (c settingsPages) showTrust(v *web.Visit, content *page.Settings) {
	if c.Trusted == nil || v.Way != session.ByLink {
		content.TrustElsewhere = page.Text("settings.trustelsewhere")
		return
	}
	store, err := c.Trusted()
	if err != nil {
		content.TrustElsewhere = err.Error()
		return
	}
	for _, k := range store.List() {
		content.Keys = append(content.Keys, page.TrustedKey{Name: k.Name, ID: k.Key.Fingerprint(), Algorithm: k.Key.Algorithm(), Revoked: k.Revoked})
	}
	content.PolicyFile = store.Source().File
}

// mayChange returns why the user is not allowed to change the settings of this host: only the user who runs the program is, who can
// write its files anyway.
func (h *HostSettings) mayChange(v *web.Visit) error {
	if h == nil || v.Way != session.ByLink {
		return report.Errorf(report.Forbidden, "settings are changed on the host that keeps the archives, by the user who runs the console there")
	}
	return nil
}

// removal returns the action that leads to the question whether to remove a key or an endpoint.
func removal(kind, name string) page.Action {
	return page.Action{Label: page.Text("action.remove"), URL: page.Query("/settings/remove", kind, name)}
}

// addChanges adds the possible changes. A refused input stays in its field.
func addChanges(v *web.Visit, content *page.Settings, keys bool, problem error) {
	if content.Registry != nil {
		content.RemoveEndpoint = map[string]page.Action{}
		for _, e := range content.Registry.Endpoints {
			content.RemoveEndpoint[e.URL] = v.Offer(removal("endpoint", e.URL))
		}
		content.AddEndpoint = &page.Form{Action: v.Offer(page.Action{Label: page.Text("action.addEndpoint"), URL: "/settings/endpoints", Post: true, Weight: page.WeightPrimary})}
		content.AddEndpoint.Inputs = inputs(v, "url", "ca")
		for _, r := range report.RemediesOf(problem) {
			if slices.ContainsFunc(r.Options, func(o report.Option) bool { return o.Name == "replace" }) {
				content.AddEndpoint.Checkboxes = []page.Checkbox{{Name: "replace", Value: "true", Label: page.Text("settings.replace"), Explanation: page.Text("settings.replace.explanation")}}
			}
		}
	}
	if !keys {
		return
	}
	for i, k := range content.Keys {
		remove := removal("key", k.Name)
		content.Keys[i].Remove = &remove
	}
	content.AddKey = &page.Form{Action: page.Action{Label: page.Text("action.addKey"), URL: "/settings/keys", Post: true, Weight: page.WeightPrimary}, Inputs: inputs(v, "name", "file")}
}

// inputs are fields of a form of the settings; the first one has to be filled in, as has a file.
func inputs(v *web.Visit, names ...string) (list []page.Input) {
	for _, name := range names {
		list = append(list, page.Input{
			Name: name, Label: page.Text("settings." + name), Help: page.Text("settings." + name + ".help"), Value: v.PostFormValue(name), Required: name != "ca",
		})
	}
	return list
}

// change carries a change out, and shows the settings with the problem where that is refused.
func (c settingsPages) change(change func(ctx context.Context, v *web.Visit) error) web.Handler {
	return func(v *web.Visit) (*web.Answer, error) {
		err := c.Settings.mayChange(v)
		if err == nil {
			err = change(context.WithoutCancel(v.Context()), v)
		}
		if report.CodeOf(err) == report.Unauthenticated {
			return nil, err
		}
		if err != nil {
			return c.showSettings(v, err)
		}
		return &web.Answer{To: "/settings"}, nil
	}
}

// openHost opens this host with the cluster of a visit.
func (c *Console) openHost(v *web.Visit) (*host.Host, error) {
	h, err := c.Settings.Open()
	if err != nil {
		return nil, err
	}
	h.LockWait, h.Sink, h.Now, h.Version, h.Cluster = c.LockWait, report.Discard, c.Now, c.Version, host.ClusterOf(v.Deployer(nil))
	return h, nil
}

func (c settingsPages) addEndpoint(ctx context.Context, v *web.Visit) error {
	h, err := c.openHost(v)
	if err != nil {
		return err
	}
	o := host.EndpointOptions{URLs: []string{strings.TrimSpace(v.PostFormValue("url"))}, CA: strings.TrimSpace(v.PostFormValue("ca"))}
	o.Replace = v.PostFormValue("replace") == "true"
	_, err = h.AddEndpoints(ctx, o)
	return err
}

func (c settingsPages) addKey(_ context.Context, v *web.Visit) error {
	data, err := os.ReadFile(strings.TrimSpace(v.PostFormValue("file")))
	if err != nil {
		return report.As(report.NotFound, err)
	}
	_, err = trust.Add(c.Settings.TrustDir, strings.TrimSpace(v.PostFormValue("name")), data, nil)
	return err
}

// askRemove asks before a key or an endpoint goes.
func (c settingsPages) askRemove(v *web.Visit) (*web.Answer, error) {
	if err := c.Settings.mayChange(v); err != nil {
		return nil, err
	}
	v.Frame.Section = page.SectionSettings
	v.Frame.Trail = []page.Link{{Label: page.Text("settings.title"), URL: "/settings"}}
	kind, name := "endpoint", v.FormValue("endpoint")
	if name == "" {
		kind, name = "key", v.FormValue("key")
	}
	action := page.Action{
		Label: page.Text("action.remove"), URL: "/settings/remove", Post: true, Fields: []page.Hidden{{Name: kind, Value: name}}, Weight: page.WeightDanger, Confirm: name,
	}
	return &web.Answer{Document: struct{}{}, Content: &page.Confirmation{
		Heading: page.Text("settings.remove."+kind, name), Warnings: []page.Notice{{Tone: page.ToneWarn, Text: page.Text("settings.remove." + kind + ".explanation")}},
		Form: page.Form{Action: action, Cancel: page.Link{URL: "/settings"}},
	}}, nil
}

func (c settingsPages) remove(ctx context.Context, v *web.Visit) error {
	endpoint, key := v.PostFormValue("endpoint"), v.PostFormValue("key")
	if name := cmp.Or(endpoint, key); name == "" || v.PostFormValue("confirm") != name {
		return report.Errorf(report.Cancelled, "not confirmed: the name that was typed is not %s", name)
	}
	if endpoint == "" {
		return trust.Remove(c.Settings.TrustDir, key)
	}
	_, err := v.Deployer(nil).RemoveEndpoints(ctx, deployer.RemoveEndpointsOptions{Endpoints: []string{endpoint}})
	return err
}
