package main

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/solutionctl/example-solution/api"
)

// Websites are the Websites of one namespace, as the Kubernetes API has them.
type Websites struct {
	api       rest.Interface
	namespace string
	cluster   *rest.Config
}

// NewWebsites returns the Websites of a namespace of a cluster.
func NewWebsites(cluster *rest.Config, namespace string) (*Websites, error) {
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		return nil, err
	}
	original := cluster
	cluster = rest.CopyConfig(cluster)
	cluster.APIPath = "/apis"
	cluster.GroupVersion = &api.GroupVersion
	cluster.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	cluster.UserAgent = "example-solution-ui/" + version
	api, err := rest.RESTClientFor(cluster)
	if err != nil {
		return nil, err
	}
	return &Websites{api, namespace, original}, nil
}

// As returns the Websites with the rights of the user to whom this token belongs.
func (w *Websites) As(token string) (*Websites, error) {
	cluster := rest.AnonymousClientConfig(w.cluster)
	cluster.BearerToken = token
	return NewWebsites(cluster, w.namespace)
}

// List returns all Websites.
func (w *Websites) List(ctx context.Context) ([]api.Website, error) {
	var list api.WebsiteList
	err := w.api.Get().Namespace(w.namespace).Resource("websites").Do(ctx).Into(&list)
	return list.Items, err
}

// Banners returns all banners.
func (w *Websites) Banners(ctx context.Context) ([]api.Banner, error) {
	var list api.BannerList
	err := w.api.Get().Namespace(w.namespace).Resource("banners").Do(ctx).Into(&list)
	return list.Items, err
}

// Create creates a Website. The API server fills in defaults and checks the fields.
func (w *Websites) Create(ctx context.Context, name string, spec api.WebsiteSpec) error {
	site := &api.Website{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	return w.api.Post().Namespace(w.namespace).Resource("websites").Body(site).Do(ctx).Error()
}
