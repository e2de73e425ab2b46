package page

import (
	"slices"
	"strings"

	"github.com/solutionctl/solutionctl/schema"
)

// healthChecking is that of deployments of a preview.
const healthChecking schema.DeploymentHealth = "checking"

// maxPreview bounds the environments of a preview: more than a window shows.
const maxPreview = 50

// PreviewOverview is the overview while health is not known yet, in which deployments have the requested version. Of nil, without environments, and
// where they are listed by health, it has only the title.
func PreviewOverview(preview *schema.Status, l Listing) *Overview {
	if preview == nil || len(preview.Environments) == 0 || l.State != "" || l.Group || strings.TrimPrefix(l.Sort, "-") == columnHealth {
		return &Overview{}
	}
	checking := func(d schema.DeploymentStatus) schema.DeploymentStatus {
		d.Version, d.Health = d.Wanted, healthChecking
		return d
	}
	status := &schema.Status{Solutions: slices.Clone(preview.Solutions), Environments: slices.Clone(preview.Environments)} // others show it, too
	for i, s := range status.Solutions {
		if s.Deployment != nil {
			deployment := checking(*s.Deployment)
			status.Solutions[i].Deployment = &deployment
		}
	}
	for i, e := range status.Environments {
		status.Environments[i].Namespaces = slices.Clone(e.Namespaces)
		for j, n := range e.Namespaces {
			here := &status.Environments[i].Namespaces[j].Deployments
			*here = nil
			for _, d := range n.Deployments {
				*here = append(*here, checking(d))
			}
		}
	}
	return &Overview{Status: status, Listing: l, Checking: true}
}

func (o *Overview) isPreview() bool { return o.Checking }
