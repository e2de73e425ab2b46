// Package api is the API as one release of the Solution uses it. Operator and user interface work with one version of
// each resource, whatever else the API server serves: the one that objects are stored in.
//
// Which one that is follows from the resource definitions of the release, by build tags that `go run ./image` makes of
// them: websites_v1beta1 for a release whose websites are stored in v1beta1, banners_v1beta1 for one that has banners.
// Without tags it is release 1.0.0. A project that keeps its releases in branches has no need of this.
package api

//go:generate go run ./generate -root ..

import "github.com/solutionctl/example-solution/api/v1beta1"

// Every release has the Banner type, and uses it if [HasBanners].
type (
	// Banner is a notice that all websites of its namespace show.
	Banner = v1beta1.Banner
	// BannerList is a list of Banners.
	BannerList = v1beta1.BannerList
)

// The themes.
const (
	Light Theme = "Light"
	Dark  Theme = "Dark"
)

// Condition types of a Website. Their meaning is that of kstatus: tools wait for Ready and give up at Stalled.
const (
	Ready   = v1beta1.Ready
	Stalled = v1beta1.Stalled
)

// Reasons of the conditions.
const (
	Running          = v1beta1.Running
	Progressing      = v1beta1.Progressing
	RolloutFailed    = v1beta1.RolloutFailed
	VersionNotFound  = v1beta1.VersionNotFound
	NameAlreadyTaken = v1beta1.NameAlreadyTaken
)
