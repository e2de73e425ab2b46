package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Banner is a notice that all websites of its namespace show.
//
// +kubebuilder:object:root=true
// +kubebuilder:printcolumn:name="Text",type=string,JSONPath=`.spec.text`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Banner struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What visitors read.
	// +required
	Spec BannerSpec `json:"spec"`
}

// BannerSpec is the wanted state.
type BannerSpec struct {
	// Text of the notice, one line.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:Pattern=`^[^\n\r]*$`
	Text string `json:"text"`
}

// BannerList is a list of Banners.
//
// +kubebuilder:object:root=true
type BannerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Banner `json:"items"`
}
