package schema

import (
	"cmp"
	"maps"
	"strings"
	"time"
)

// SolutionBuild is solution.yaml: what an archive is built from.
type SolutionBuild struct {
	APIVersion string        `json:"apiVersion"`
	Kind       string        `json:"kind"`
	Metadata   BuildMetadata `json:"metadata"`
	Spec       BuildSpec     `json:"spec"`
	Lint       *LintSettings `json:"lint,omitempty"`
}

// BuildMetadata names the Solution that is built.
type BuildMetadata struct {
	Name string `json:"name"`
}

// RegistryConfigForm selects the form of registry-config.inc.j2.
type RegistryConfigForm string

// The forms of registry-config.inc.j2.
const (
	RegistryConfigExtended RegistryConfigForm = "extended" // OCI and Docker media types, indexes; the default
	RegistryConfigLegacy   RegistryConfigForm = "legacy"   // what MetalK8s' own tooling wrote: Docker schema 2 only
)

// BuildSpec lists the content of an archive. Paths are slash-separated and relative to the directory of solution.yaml.
type BuildSpec struct {
	Version     string `json:"version"`
	DisplayName string `json:"displayName,omitempty"`
	// Annotations are further annotations of the Solution, by full key or by what follows the "/" in MetalK8s' own.
	Annotations map[string]string `json:"annotations,omitempty"`
	BuildTime   *time.Time        `json:"buildTime,omitempty"`
	VolumeID    string            `json:"volumeID,omitempty"`
	// Platforms are the platforms that every image must have; by default each image keeps all that it has.
	Platforms      []Platform         `json:"platforms,omitempty"`
	RegistryConfig RegistryConfigForm `json:"registryConfig,omitempty"`
	Images         []BuildImage       `json:"images"`
	Operator       *BuildOperator     `json:"operator,omitempty"`
	UI             *BuildUI           `json:"ui,omitempty"`
	Paths          *BuildPaths        `json:"paths,omitempty"`
	// Files are further files to put into the archive.
	Files []BuildFile `json:"files,omitempty"`

	CustomAPIGroups   []string     `json:"customApiGroups,omitempty"`
	KubernetesVersion string       `json:"kubernetesVersion,omitempty"`
	MinUpgradeFrom    string       `json:"minUpgradeFrom,omitempty"`
	SupportedUntil    string       `json:"supportedUntil,omitempty"`
	DependsOn         []Dependency `json:"dependsOn,omitempty"`
	Components        []Component  `json:"components,omitempty"`
}

// BuildImage is an image and where it comes from.
type BuildImage struct {
	Name string `json:"name"`
	// Tag is the version of the Solution by default; [BuildSpec.ImageRef] fills it in.
	Tag string `json:"tag,omitempty"`
	// Source is a reference such as "oci:build/images:operator" or "docker://ghcr.io/acme/ui:1.0.0".
	Source string `json:"source"`
	// Origin is the name of the image outside of the archive; by default that of a docker:// or docker-daemon: source.
	Origin string `json:"origin,omitempty"`
}

// BuildOperator is the operator: its image and the directory of its manifests, by default "operator" where it exists.
type BuildOperator struct {
	Image        *ImageName       `json:"image,omitempty"`
	Path         string           `json:"path,omitempty"`
	RequiresCRDs []CRDRequirement `json:"requiresCRDs,omitempty"`
	ClusterWide  bool             `json:"clusterWide,omitempty"`
	Metrics      *OperatorMetrics `json:"metrics,omitempty"`
}

// BuildUI is the user interface: its image and the directory of its manifests, by default "ui" where it exists.
type BuildUI struct {
	Image *ImageName `json:"image,omitempty"`
	Path  string     `json:"path,omitempty"`
}

// BuildPaths are the directories of the optional parts, each by default the directory of its name where it exists.
type BuildPaths struct {
	Operators  string `json:"operators,omitempty"`
	Charts     string `json:"charts,omitempty"`
	Components string `json:"components,omitempty"`
	Monitoring string `json:"monitoring,omitempty"`
	SBOM       string `json:"sbom,omitempty"`
}

// BuildFile is one further file: Path in the archive, Source on disk.
type BuildFile struct {
	Path   string `json:"path"`
	Source string `json:"source"`
}

// LintSettings choose the rules by which the project wants its archives to be judged.
type LintSettings struct {
	// FailOn is the lowest severity that makes lint fail, "error" by default.
	FailOn  string   `json:"failOn,omitempty"`
	Disable []string `json:"disable,omitempty"`
	Enable  []string `json:"enable,omitempty"`
	// KubernetesVersion is the cluster version to judge for, by default the lowest that spec.kubernetesVersion allows.
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
}

// ImageRef is the reference of an image of this build, its tag filled in.
func (s *BuildSpec) ImageRef(image BuildImage) ImageRef {
	return ImageRef{Name: image.Name, Tag: cmp.Or(image.Tag, s.Version)}
}

// ImageRefs are the references of its images, in their order.
func (s *BuildSpec) ImageRefs() []ImageRef {
	refs := make([]ImageRef, len(s.Images))
	for i, image := range s.Images {
		refs[i] = s.ImageRef(image)
	}
	return refs
}

// OriginName is the name of the image outside of the archive, "" when neither Origin nor Source contains it.
func (i BuildImage) OriginName() string {
	if i.Origin != "" {
		return i.Origin
	}
	for _, scheme := range []string{"docker://", "docker-daemon:"} {
		if name, ok := strings.CutPrefix(i.Source, scheme); ok {
			return strings.TrimPrefix(name, "//") // docker-daemon: goes with and without
		}
	}
	return ""
}

// Solution returns the manifest of the archive that holds these images. The build timestamp is buildTime, in UTC; the
// zero time leaves it out.
func (b *SolutionBuild) Solution(images []ImageRef, buildTime time.Time) *Solution {
	s := &Solution{
		APIVersion: APIVersion,
		Kind:       KindSolution,
		Metadata:   Metadata{Name: b.Metadata.Name},
		Spec: SolutionSpec{
			Version:           b.Spec.Version,
			Images:            sortedRefs(images),
			CustomAPIGroups:   b.Spec.CustomAPIGroups,
			KubernetesVersion: b.Spec.KubernetesVersion,
			MinUpgradeFrom:    b.Spec.MinUpgradeFrom,
			SupportedUntil:    b.Spec.SupportedUntil,
			DependsOn:         b.Spec.DependsOn,
			Components:        b.Spec.Components,
			ImageOrigins:      b.origins(images),
		},
	}
	for key, value := range b.Spec.Annotations {
		s.SetAnnotation(fullAnnotation(key), value)
	}
	if b.Spec.DisplayName != "" {
		s.SetAnnotation(AnnotationDisplayName, b.Spec.DisplayName)
	}
	if !buildTime.IsZero() {
		s.SetAnnotation(annotationBuildTimestamp, buildTime.UTC().Format("2006-01-02T15:04:05Z"))
	}
	if o := b.Spec.Operator; o != nil {
		image := ImageName(o.Image.ref(b.Metadata.Name+"-operator", b.Spec.Version))
		s.Spec.Operator = &Operator{Image: &image, RequiresCRDs: o.RequiresCRDs, ClusterWide: o.ClusterWide, Metrics: o.Metrics}
	}
	if u := b.Spec.UI; u != nil {
		image := ImageName(u.Image.ref(b.Metadata.Name+"-ui", b.Spec.Version))
		s.Spec.UI = &UI{Image: &image}
	}
	return s
}

// origins maps those of the images that have a name outside of the archive to that name.
func (b *SolutionBuild) origins(images []ImageRef) map[ImageRef]string {
	known := map[ImageRef]string{}
	for _, image := range b.Spec.Images {
		if origin := image.OriginName(); origin != "" {
			known[b.Spec.ImageRef(image)] = origin
		}
	}
	wanted := map[ImageRef]bool{}
	for _, ref := range images {
		wanted[ref] = true
	}
	maps.DeleteFunc(known, func(ref ImageRef, _ string) bool { return !wanted[ref] })
	if len(known) == 0 {
		return nil
	}
	return known
}

// fullAnnotation lets solution.yaml write git-revision for solutions.metalk8s.scality.com/git-revision.
func fullAnnotation(key string) string {
	if strings.Contains(key, "/") {
		return key
	}
	return AnnotationPrefix + key
}
