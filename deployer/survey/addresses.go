package survey

import (
	"context"
	"slices"
	"strings"

	networking "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// Addresses returns the URLs of the Ingresses of a Solution in an environment: by their hosts, or where a rule has none by the
// addresses of the load balancer. Users without the permission to list Ingresses are shown none.
func (v *Survey) Addresses(ctx context.Context, environment, solution string) ([]string, error) {
	namespaces, err := v.Records.Namespaces(ctx, environment, "")
	if err != nil {
		return nil, err
	}
	released := metav1.ListOptions{LabelSelector: schema.LabelRelease}
	return v.ingressURLs(ctx, metalk8s.NamesOf(namespaces), released, func(ingress *unstructured.Unstructured) (bool, error) {
		return strings.HasPrefix(ingress.GetLabels()[schema.LabelRelease], solution+"."), nil
	})
}

// ingressURLs returns the URLs of the Ingresses that belong to a Solution, sorted. In namespaces in which the user does not have permission to
// list Ingresses it finds none.
func (v *Survey) ingressURLs(ctx context.Context, namespaces []string, o metav1.ListOptions, belongs func(*unstructured.Unstructured) (bool, error)) ([]string, error) {
	urls := []string{}
	for _, namespace := range namespaces {
		for object, err := range v.Cluster.List(ctx, networking.SchemeGroupVersion.WithKind("Ingress"), namespace, o) {
			if report.CodeOf(err) == report.Forbidden {
				break
			}
			if err != nil {
				return nil, err
			}
			ok, failure := belongs(object)
			if failure != nil {
				return nil, failure
			}
			if !ok {
				continue
			}
			var ingress networking.Ingress
			if err = Convert(object, &ingress); err != nil {
				return nil, err
			}
			urls = append(urls, addressesOf(&ingress)...)
		}
	}
	slices.Sort(urls)
	return slices.Compact(urls), nil
}

func addressesOf(ingress *networking.Ingress) (urls []string) {
	encrypted := map[string]bool{}
	for _, tls := range ingress.Spec.TLS {
		for _, host := range tls.Hosts {
			encrypted[host] = true
		}
	}
	for _, rule := range ingress.Spec.Rules {
		scheme, hosts := "http", []string{rule.Host}
		if encrypted[rule.Host] {
			scheme = "https"
		}
		if rule.Host == "" {
			hosts = hosts[:0]
			for _, at := range ingress.Status.LoadBalancer.Ingress {
				hosts = append(hosts, at.IP+at.Hostname) // one of them is set
			}
		}
		if rule.HTTP == nil {
			continue
		}
		for _, path := range rule.HTTP.Paths {
			for _, host := range hosts {
				urls = append(urls, scheme+"://"+host+plainPath(path.Path))
			}
		}
	}
	return urls
}

// plainPath is the beginning of a path that may be a regular expression.
func plainPath(path string) string {
	if at := strings.IndexAny(path, "(*["); at >= 0 {
		path = path[:at]
	}
	return "/" + strings.TrimPrefix(path, "/")
}
