package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of this package.
var GroupVersion = schema.GroupVersion{Group: "example.solutionctl.io", Version: "v1alpha1"}

// AddToScheme teaches a scheme the types of this package.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Website{}, &WebsiteList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// Website is a small website: one page, served by as many servers as you like.
//
// The name is at most 50 characters and a DNS label, because the Service of the site is named after it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:resource:shortName=site
// +kubebuilder:printcolumn:name="Title",type=string,JSONPath=`.spec.title`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`
// +kubebuilder:printcolumn:name="Wanted",type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="URL",type=string,priority=1,JSONPath=`.status.url`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 50 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="the name must be a DNS label of at most 50 characters that starts with a letter"
type Website struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What the site shows and how it runs.
	// +required
	Spec WebsiteSpec `json:"spec"`

	// What the operator found; written by the operator only.
	// +optional
	Status WebsiteStatus `json:"status,omitempty"`
}

// WebsiteSpec is the wanted state.
type WebsiteSpec struct {
	// Title of the page.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=80
	Title string `json:"title"`

	// Message below the title.
	// +optional
	// +kubebuilder:default="It works."
	// +kubebuilder:validation:MaxLength=1000
	Message string `json:"message,omitempty"`

	// Colours of the page.
	// +optional
	// +kubebuilder:default=Light
	Theme Theme `json:"theme,omitempty"`

	// Number of servers. 0 stops the site and keeps its definition.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Replicas *int32 `json:"replicas,omitempty"`

	// Version of the Solution whose server runs the site, such as 1.0.0. It must be imported. Without it the site runs
	// the version of the operator and follows the operator's upgrades.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[0-9]+\.[0-9]+\.[0-9]+(-[0-9a-z.-]+)?$`
	Version string `json:"version,omitempty"`
}

// Theme names the colours of a page.
//
// +kubebuilder:validation:Enum=Light;Dark
type Theme string

// The themes.
const (
	Light Theme = "Light"
	Dark  Theme = "Dark"
)

// WebsiteStatus is the observed state.
type WebsiteStatus struct {
	// Generation of the Website that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Number of servers that exist.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// Number of servers that answer.
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"` // 0 is news, too: the column must not be empty

	// Label selector of the site's servers, for autoscalers.
	// +optional
	Selector string `json:"selector,omitempty"`

	// Version that every server runs; during an upgrade the version before.
	// +optional
	Version string `json:"version,omitempty"`

	// Address of the site inside the cluster.
	// +optional
	URL string `json:"url,omitempty"`

	// Ready shows whether the site is as its spec asks; Stalled is there when waiting longer will not help.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Condition types of a Website. Their meaning is that of kstatus: tools wait for Ready and give up at Stalled.
const (
	Ready   = "Ready"
	Stalled = "Stalled"
)

// Reasons of the conditions.
const (
	Running          = "Running"          // every server runs the wanted version and content
	Progressing      = "Progressing"      // servers are being started or replaced
	RolloutFailed    = "RolloutFailed"    // new servers do not become ready
	VersionNotFound  = "VersionNotFound"  // no imported version of the Solution has the wanted server
	NameAlreadyTaken = "NameAlreadyTaken" // an object of the needed name belongs to another owner
)

// WebsiteList is a list of Websites.
//
// +kubebuilder:object:root=true
type WebsiteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Website `json:"items"`
}
