package console

import (
	"bytes"
	"context"
	"mime"
	"net/http"
	"time"

	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/console/web"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	"github.com/solutionctl/solutionctl/deployer/support/bundle"
	"github.com/solutionctl/solutionctl/deployer/support/doctor"
	"github.com/solutionctl/solutionctl/schema"
)

// examination runs the checks of the doctor for a user.
func (c *Console) examination(v *web.Visit) (*schema.Diagnosis, doctor.Options, error) {
	o := doctor.Options{} // nothing of the host, for those who come over the network
	if c.Examine != nil {
		var err error
		if o, err = c.Examine(); err != nil {
			return nil, o, err
		}
	}
	o.Deployer, o.Now = v.Deployer(nil), c.Now
	return doctor.Examine(v.Context(), o), o, v.Context().Err()
}

// doctor shows the problems of the host and the cluster.
func (c *Console) doctor(v *web.Visit) (*web.Answer, error) {
	v.Frame.Section = page.SectionDoctor
	found, _, err := c.examination(v)
	if err != nil {
		return nil, err
	}
	return &web.Answer{Document: found, Content: &page.Doctor{
		Diagnosis: found, Support: &page.Action{Label: page.Text("action.support"), URL: "/support"},
	}}, nil
}

// support asks for the content of a support bundle.
func (c *Console) support(v *web.Visit) (*web.Answer, error) {
	v.Frame.Section = page.SectionDoctor
	v.Frame.Trail = []page.Link{{Label: page.Text("doctor.title"), URL: "/doctor"}}
	form := page.Form{
		Action: page.Action{Label: page.Text("action.download"), URL: "/support", Post: true, Weight: page.WeightPrimary},
		Checkboxes: []page.Checkbox{{
			Name: "logs", Value: "true", Label: page.Text("support.logs"), Explanation: page.Text("support.logs.explanation"),
		}},
		Cancel: page.Link{URL: "/doctor"},
	}
	return &web.Answer{Document: struct{}{}, Content: &page.Support{Form: form}}, nil
}

const (
	supportTime = 5 * time.Minute // for the doctor and the bundle together
	sendingTime = 2 * time.Minute // for sending the bundle
)

// sendSupport sends a support bundle. It is never written to a disk of this host. The form is read before the work, which outlasts its deadline.
func (c *Console) sendSupport(w http.ResponseWriter, v *web.Visit) {
	logs := v.PostFormValue("logs") == "true"
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(supportTime + sendingTime)) //nolint:forbidigo // a deadline of the network is not a time that people read
	ctx, cancel := context.WithTimeout(v.Context(), supportTime)
	defer cancel()
	v.Request = v.WithContext(ctx)
	found, o, err := c.examination(v)
	var data bytes.Buffer
	if err == nil {
		var archives []store.Entry
		if o.Store != nil {
			archives, _ = o.Store.Entries() // the diagnosis has problems of the store
		}
		var b *bundle.Bundle
		now := c.Now()
		b, err = bundle.Collect(v.Context(), bundle.Options{
			Diagnosis: found, Archives: archives, Deployer: o.Deployer, Tool: c.Version, Now: now, Logs: logs,
		})
		if err == nil {
			err = bundle.Write(&data, b.Files, now)
		}
	}
	if err != nil {
		c.server.Answer(w, v, v.Failed(err))
		return
	}
	name := "solutionctl-support-" + c.Now().UTC().Format("20060102T150405Z") + ".tar.gz"
	w.Header().Set("Content-Type", "application/gzip")
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	_, _ = data.WriteTo(w) // the browser has gone
}
