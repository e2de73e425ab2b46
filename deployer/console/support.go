package console

import (
	"bytes"
	"mime"
	"net/http"
	"slices"

	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/support/bundle"
	"github.com/solutionctl/solutionctl/deployer/support/doctor"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// examination is what the doctor looks at for a user.
func (c *Console) examination(v *visit) (*schema.Diagnosis, doctor.Options, error) {
	o := doctor.Options{} // nothing of the host, for those who come over the network
	if c.Examine != nil {
		var err error
		if o, err = c.Examine(); err != nil {
			return nil, o, err
		}
	}
	o.Deployer, o.Now = v.deployer(nil), c.Now
	return doctor.Examine(v.Context(), o), o, v.Context().Err()
}

// doctor looks for what stands against working.
func (c *Console) doctor(v *visit) (*answer, error) {
	v.frame.Section = page.SectionDoctor
	found, _, err := c.examination(v)
	if err != nil {
		return nil, err
	}
	return &answer{document: found, content: &page.Doctor{
		Diagnosis: found, Support: &page.Action{Label: page.Text("action.support"), URL: "/support"},
	}}, nil
}

// support asks what goes into a support bundle.
func (c *Console) support(v *visit) (*answer, error) {
	v.frame.Section = page.SectionDoctor
	v.frame.Trail = []page.Link{{Label: page.Text("doctor.title"), URL: "/doctor"}}
	form := page.Form{
		Action: page.Action{Label: page.Text("action.download"), URL: "/support", Post: true, Weight: page.WeightPrimary},
		Checkboxes: []page.Checkbox{{
			Name: "logs", Value: "true", Label: page.Text("support.logs"), Explanation: page.Text("support.logs.explanation"),
		}},
		Cancel: page.Link{URL: "/doctor"},
	}
	return &answer{document: struct{}{}, content: &page.Support{Form: form}}, nil
}

// sendSupport sends a support bundle. It is never written to a disk of this host.
func (c *Console) sendSupport(w http.ResponseWriter, v *visit) {
	found, o, err := c.examination(v)
	var data bytes.Buffer
	if err == nil {
		var archives []store.Entry
		if o.Store != nil {
			archives, _ = o.Store.Entries() // what is wrong with the store is in the diagnosis
		}
		var b *bundle.Bundle
		now := c.Now()
		b, err = bundle.Collect(v.Context(), bundle.Options{
			Diagnosis: found, Archives: archives, Deployer: o.Deployer, Tool: c.Version, Now: now, Logs: v.PostFormValue("logs") == "true",
		})
		if err == nil {
			err = bundle.Write(&data, b.Files, now)
		}
	}
	if err != nil {
		c.answer(w, v, failed(err))
		return
	}
	name := "solutionctl-support-" + c.Now().UTC().Format("20060102T150405Z") + ".tar.gz"
	w.Header().Set("Content-Type", "application/gzip")
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	_, _ = data.WriteTo(w) // the browser has gone
}

// settings shows what the console works with, and where the user is logged in.
func (c *Console) settings(v *visit) (*answer, error) {
	v.frame.Section = page.SectionSettings
	content := &page.Settings{ReadOnly: page.Text("settings.elsewhere"), Actions: []page.Action{{
		Label: page.Text("action.logoutAll"), URL: "/logout", Post: true, Fields: []page.Hidden{{Name: "all", Value: "true"}},
	}}}
	registry, err := v.deployer(nil).Records.Registry(v.Context())
	if report.CodeOf(err) == report.Unauthenticated {
		return nil, err
	}
	if err != nil {
		v.frame.Problem = page.ProblemOf(err)
	} else if registry != nil {
		content.Registry = records.Endpoints(registry)
	}
	c.showTrust(v, content)
	list := c.sessions.of(v.identity)
	slices.SortFunc(list, func(a, b *session) int { return a.started.Compare(b.started) })
	for _, s := range list {
		content.Sessions = append(content.Sessions, page.Session{
			User: s.user, Way: page.Text("way." + string(s.way)), Started: s.started, Seen: c.sessions.lastSeen(s), Current: s.id == v.id,
		})
	}
	content.About = []page.Fact{{Name: page.Text("settings.version"), Value: c.Version}, {Name: page.Text("settings.apiserver"), Value: v.cluster.Server()}}
	if version, err := v.cluster.Version(v.Context()); err == nil {
		content.About = append(content.About, page.Fact{Name: page.Text("settings.kubernetes"), Value: version})
	}
	return &answer{document: records.Endpoints(registry), content: content}, nil
}

// showTrust shows whom this host trusts, to whoever has its files in front of them anyway.
func (c *Console) showTrust(v *visit, content *page.Settings) {
	if c.Trusted == nil || v.way != byLink {
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
