package console

import (
	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/deployer/console/web"
	"github.com/solutionctl/solutionctl/deployer/loader"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// loader shows the progress of the loader and the loaded Solutions. Only its host, with the configuration, can start
// it.
func (c *Console) loader(v *web.Visit) (*web.Answer, error) {
	s, err := c.watched(v, page.SectionOverview, titled(&page.Loader{}))
	var progress *schema.LoadProgress
	switch {
	case report.CodeOf(err) == report.Forbidden: // who sees nothing of the cluster but this sees this, programs too
		progress, err = loader.Read(v.Context(), v.Cluster)
	case err == nil:
		progress, err = s.Loader, s.Unloaded
	}
	if err == nil && progress == nil && web.WantsJSON(v.Request) {
		err = loader.NeverRan()
	}
	if err != nil {
		return nil, err
	}
	v.Frame.Trail = []page.Link{{Label: page.Text("section.overview"), URL: "/"}}
	return &web.Answer{Document: progress, Content: &page.Loader{Progress: progress}}, nil
}
