package schema

import (
	"cmp"
	"maps"
	"slices"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Solution is manifest.yaml, the description at the root of an archive.
//
// MetalK8s reads name, version, images, operator, ui, customApiGroups and the top-level annotations. Everything else in
// Spec is an extension that MetalK8s ignores.
type Solution struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Metadata   Metadata `json:"metadata"`
	// Annotations is where MetalK8s' code looks for the display name; its specification puts it in Metadata. Use
	// [Solution.annotation], which looks in both.
	Annotations map[string]string `json:"annotations,omitempty"`
	Spec        SolutionSpec      `json:"spec"`
}

// Metadata names a Solution.
type Metadata struct {
	Name        string            `json:"name"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// SolutionSpec lists the parts of a Solution and its requirements.
type SolutionSpec struct {
	Version string `json:"version"`
	// Images are the images of the archive; nil stands for all that it has.
	Images          []ImageRef `json:"images,omitzero"`
	Operator        *Operator  `json:"operator,omitempty"`
	UI              *UI        `json:"ui,omitempty"`
	CustomAPIGroups []string   `json:"customApiGroups,omitzero"`

	// KubernetesVersion is the range of cluster versions that the Solution supports, such as ">=1.30 <1.37".
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// MinUpgradeFrom is the lowest version from which an upgrade to this one is supported.
	MinUpgradeFrom string `json:"minUpgradeFrom,omitempty"`
	// SupportedUntil is the last day on which the vendor supports this version, such as 2028-12-31.
	SupportedUntil string       `json:"supportedUntil,omitempty"`
	DependsOn      []Dependency `json:"dependsOn,omitempty"`
	Components     []Component  `json:"components,omitempty"`
	// ImageOrigins maps an image to its name outside of the archive, such as "ghcr.io/acme/ui:1.0.0".
	ImageOrigins map[ImageRef]string `json:"imageOrigins,omitempty"`
}

// Operator is the operator of a Solution.
type Operator struct {
	Image *ImageName `json:"image,omitempty"`
	// RequiresCRDs are the CRDs, and the versions of them, without which the operator cannot work.
	RequiresCRDs []CRDRequirement `json:"requiresCRDs,omitempty"`
	// ClusterWide asks for the operator's ClusterRoles to be bound cluster-wide instead of in its own namespace.
	ClusterWide bool `json:"clusterWide,omitempty"`
	// Metrics specifies how Prometheus reads the metrics of the operator; without it, they are not read.
	Metrics *OperatorMetrics `json:"metrics,omitempty"`
}

// OperatorMetrics is where an operator serves metrics. MetalK8s has the same settings, with the same defaults.
type OperatorMetrics struct {
	Enabled bool   `json:"enabled,omitempty"`
	Scheme  string `json:"scheme,omitempty"`
	Port    int    `json:"port,omitempty"`
	Path    string `json:"path,omitempty"`
}

// SchemeHTTPS is the scheme of metrics that are served with a certificate, to authorized clients.
const SchemeHTTPS = "https"

// defaulted is a copy with the defaults filled in.
func (m *OperatorMetrics) defaulted() *OperatorMetrics {
	full := *m
	full.Scheme, full.Path = cmp.Or(m.Scheme, SchemeHTTPS), cmp.Or(m.Path, "/metrics")
	port := 8080
	if full.Scheme == SchemeHTTPS {
		port = 8443
	}
	full.Port = cmp.Or(m.Port, port)
	return &full
}

// UI is the user interface of a Solution. An archive has a UI if it has manifests for it, with or without these fields.
type UI struct {
	Image *ImageName `json:"image,omitempty"`
}

// CRDRequirement asks for versions of a CustomResourceDefinition to be served.
type CRDRequirement struct {
	Name     string   `json:"name"`
	Versions []string `json:"versions"`
}

// Scope is the place in which a dependency has to be met.
type Scope string

// The scopes of a dependency.
const (
	ScopeCluster     Scope = "cluster"     // the other Solution is active
	ScopeEnvironment Scope = "environment" // the other Solution is in the same environment; the default
)

// AnnotationScope is the scope of a PrometheusRule in an archive: with [ScopeCluster] the cluster has one, unchanged;
// otherwise each environment has its own, limited to this environment.
const AnnotationScope = "solutionctl.io/scope"

// LabelDashboard marks ConfigMaps with dashboards for the sidecars of Grafana's charts.
const LabelDashboard = "grafana_dashboard"

// SelectItself is the selector of what watches over solutionctl itself.
const SelectItself = "app.kubernetes.io/part-of=solutionctl"

// Dependency asks for another Solution.
type Dependency struct {
	Solution string `json:"solution" schema:"name"`
	// Version is the range of versions that will do; empty means any.
	Version string `json:"version,omitempty" schema:"maxLength=256"`
	Scope   Scope  `json:"scope,omitempty"`
}

// ID is the name of the archive everywhere: <name>-<version>.
func (s *Solution) ID() string { return s.Metadata.Name + "-" + s.Spec.Version }

// annotation returns an annotation from metadata or, when it is not there, from the top level.
func (s *Solution) annotation(key string) string {
	if value, ok := s.Metadata.Annotations[key]; ok {
		return value
	}
	return s.Annotations[key]
}

// DisplayName is the name to show to people; the Solution's name when it has no other.
func (s *Solution) DisplayName() string {
	return cmp.Or(s.annotation(AnnotationDisplayName), s.Metadata.Name)
}

// OperatorImage is the image of the operator, by default <name>-operator:<version>.
func (s *Solution) OperatorImage() ImageRef {
	var image *ImageName
	if s.Spec.Operator != nil {
		image = s.Spec.Operator.Image
	}
	return image.ref(s.Metadata.Name+"-operator", s.Spec.Version)
}

// OperatorMetrics returns where the operator serves metrics, with the defaults filled in; nil when they are not to be read.
func (s *Solution) OperatorMetrics() *OperatorMetrics {
	if o := s.Spec.Operator; o != nil && o.Metrics != nil && o.Metrics.Enabled {
		return o.Metrics.defaulted()
	}
	return nil
}

// UIImage is the image of the user interface, by default <name>-ui:<version>.
func (s *Solution) UIImage() ImageRef {
	var image *ImageName
	if s.Spec.UI != nil {
		image = s.Spec.UI.Image
	}
	return image.ref(s.Metadata.Name+"-ui", s.Spec.Version)
}

// Merged returns a copy with the defaults of MetalK8s filled in: images, the images the archive has, stands in for an
// absent list. This is the form that the ConfigMap metalk8s-solutions carries.
func (s *Solution) Merged(images []ImageRef) *Solution {
	merged := *s
	var operator Operator
	if s.Spec.Operator != nil {
		operator = *s.Spec.Operator
	}
	image := ImageName(s.OperatorImage())
	operator.Image = &image
	if operator.Metrics != nil {
		operator.Metrics = operator.Metrics.defaulted()
	}
	ui := ImageName(s.UIImage())
	merged.Spec.Operator, merged.Spec.UI = &operator, &UI{Image: &ui}
	if s.Spec.Images == nil {
		merged.Spec.Images = sortedRefs(images)
	}
	if s.Spec.CustomAPIGroups == nil {
		merged.Spec.CustomAPIGroups = []string{}
	}
	return &merged
}

// sortedRefs returns the references sorted, each once; never nil.
func sortedRefs(refs []ImageRef) []ImageRef {
	sorted := append([]ImageRef{}, refs...)
	slices.SortFunc(sorted, ImageRef.Compare)
	return slices.Compact(sorted)
}

// maxVolumeID is the size of the volume identifier of ISO 9660, in bytes.
const maxVolumeID = 32

// VolumeID returns the volume identifier of the archive: the display name and the version, the name and the version when
// that is longer than 32 bytes. It fails when both are too long.
func (s *Solution) VolumeID() (string, error) {
	long := s.DisplayName() + " " + s.Spec.Version
	for _, id := range []string{long, s.Metadata.Name + " " + s.Spec.Version} {
		if len(id) <= maxVolumeID {
			return id, nil
		}
	}
	return "", report.Errorf(report.Invalid, "volume id %q is longer than %d bytes, and so is it with the name %q",
		long, maxVolumeID, s.Metadata.Name).WithHint("set spec.volumeID in solution.yaml or give --volume-id")
}

// SetAnnotation sets an annotation in both places, so that MetalK8s and its specification agree.
func (s *Solution) SetAnnotation(key, value string) {
	for _, annotations := range []*map[string]string{&s.Metadata.Annotations, &s.Annotations} {
		if *annotations == nil {
			*annotations = map[string]string{}
		} else {
			*annotations = maps.Clone(*annotations)
		}
		(*annotations)[key] = value
	}
}
