package engine

import (
	"bytes"
	"cmp"
	_ "embed" // for the list of API versions
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/solutionctl/solutionctl/schema/lazyregexp"
)

// defaultKubeVersion is the minor version of Kubernetes of this program's client libraries, as in Helm.
const defaultKubeVersion = "v1.36.0"

// apiVersions are all groups and versions that Kubernetes' client libraries know, removed ones among them: Helm's default.
//
//go:embed apiversions.txt
var apiVersions string

// Capabilities describe a cluster to templates, as .Capabilities.
type Capabilities struct {
	KubeVersion KubeVersion
	APIVersions VersionSet
	HelmVersion HelmVersion
}

// NewCapabilities describes a cluster by its version, as "1.33" or "v1.33.4-gke.1", and its API versions, as "apps/v1"
// and "apps/v1/Deployment". Without either it has Helm's defaults.
func NewCapabilities(kubeVersion string, versions []string) (*Capabilities, error) {
	kubeVersion = cmp.Or(kubeVersion, defaultKubeVersion)
	parsed, err := version.ParseGeneric(kubeVersion)
	if err != nil {
		return nil, fmt.Errorf("kubernetes version %q: %w", kubeVersion, err)
	}
	c := &Capabilities{APIVersions: slices.Clone(versions), HelmVersion: HelmVersion{Version: "v4.2", KubeClientVersion: "v1.36"}}
	if versions == nil {
		c.APIVersions = strings.Fields(apiVersions)
	}
	c.KubeVersion = KubeVersion{
		Version: "v" + strings.TrimPrefix(kubeVersion, "v"), plain: "v" + parsed.String(),
		Major: strconv.Itoa(int(parsed.Major())), Minor: strconv.Itoa(int(parsed.Minor())),
	}
	return c, nil
}

// KubeVersion is a version of Kubernetes.
type KubeVersion struct {
	Version      string // "v1.33.4-gke.1"
	plain        string // "v1.33.4"
	Major, Minor string
}

// String returns the version without the suffix of a distribution, which would be a pre-release to constraints.
func (v *KubeVersion) String() string { return v.plain }

// GitVersion is the former name of Version.
func (v *KubeVersion) GitVersion() string { return v.Version }

// VersionSet is a set of API versions.
type VersionSet []string

// Has reports whether an API version, or a kind of it, is in the set.
func (s VersionSet) Has(apiVersion string) bool { return slices.Contains(s, apiVersion) }

// quotedVersion is an API version, or a kind of it, as templates ask for it.
var quotedVersion = lazyregexp.New("[\"`]([a-z0-9][a-z0-9.-]*/v[0-9][a-z0-9]*(?:/[A-Z][A-Za-z0-9]*)?)[\"`]")

// AskedVersions are the API versions, with or without a kind, that the templates of the chart and its subcharts name where they ask for
// those of the cluster, sorted.
func (c *Chart) AskedVersions() []string {
	var versions []string
	for _, t := range c.templates {
		if !bytes.Contains(t.Data, []byte("APIVersions")) {
			continue
		}
		for _, m := range quotedVersion.FindAllStringSubmatch(string(t.Data), -1) {
			versions = append(versions, m[1])
		}
	}
	for _, sub := range c.Subcharts {
		versions = append(versions, sub.AskedVersions()...)
	}
	slices.Sort(versions)
	return slices.Compact(versions)
}

// HelmVersion is the version of Helm in .Capabilities. The fields about its compilation are empty, since charts must
// not depend on them.
type HelmVersion struct {
	Version           string `json:"version,omitempty"`
	GitCommit         string `json:"git_commit,omitempty"`
	GitTreeState      string `json:"git_tree_state,omitempty"`
	GoVersion         string `json:"go_version,omitempty"`
	KubeClientVersion string `json:"kube_client_version"`
}
