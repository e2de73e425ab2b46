//go:build websites_v1beta1

package api

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/solutionctl/example-solution/api/v1beta1"
)

// The Website as this release works with it.
type (
	// Website is a small website.
	Website = v1beta1.Website
	// WebsiteList is a list of Websites.
	WebsiteList = v1beta1.WebsiteList
	// WebsiteSpec is the wanted state of a Website.
	WebsiteSpec = v1beta1.WebsiteSpec
	// WebsiteStatus is its observed state.
	WebsiteStatus = v1beta1.WebsiteStatus
	// Theme names the colours of a page.
	Theme = v1beta1.Theme
)

// GroupVersion is the API version of the Website.
var GroupVersion = v1beta1.GroupVersion

// TextLabel is the name of the text on pages.
const TextLabel = "Text"

// Text returns where a spec has the text below the title.
func Text(spec *WebsiteSpec) *string { return &spec.Text }

// AddToScheme teaches a scheme the types of this release.
func AddToScheme(s *runtime.Scheme) error { return v1beta1.AddToScheme(s) }
