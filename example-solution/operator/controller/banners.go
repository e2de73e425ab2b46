package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	coreac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/solutionctl/example-solution/api"
)

// Where the servers find the banners: a file of one line each.
const (
	bannersDir  = "/etc/website"
	bannersFile = "banners"
)

// annotationBanners makes the servers start again, one after the other, when the banners change.
const annotationBanners = "example.solutionctl.io/banners"

// banners returns the texts of all banners of the namespace, one per line, in the order of their names.
func (r *Reconciler) banners(ctx context.Context, namespace string) (string, error) {
	if !api.HasBanners {
		return "", nil
	}
	var list api.BannerList
	if err := r.Client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return "", err
	}
	slices.SortFunc(list.Items, func(a, b api.Banner) int { return strings.Compare(a.Name, b.Name) })
	var text strings.Builder
	for _, banner := range list.Items {
		text.WriteString(banner.Spec.Text + "\n")
	}
	return text.String(), nil
}

// ofBanner returns the Websites that a banner changes: all of its namespace.
func (r *Reconciler) ofBanner() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, banner client.Object) []reconcile.Request {
		var sites api.WebsiteList
		if err := r.Client.List(ctx, &sites, client.InNamespace(banner.GetNamespace())); err != nil {
			return nil // from a cache: it cannot be
		}
		var requests []reconcile.Request
		for i := range sites.Items {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&sites.Items[i])})
		}
		return requests
	})
}

// content returns the ConfigMap that the servers of a Website read.
func content(site *api.Website, banners string) *coreac.ConfigMapApplyConfiguration {
	return coreac.ConfigMap(objectName(site), site.Namespace).
		WithLabels(objectLabels(site)).
		WithOwnerReferences(owner(site)).
		WithData(map[string]string{bannersFile: banners})
}

// showBanners mounts the ConfigMap into the servers.
func showBanners(pod *coreac.PodTemplateSpecApplyConfiguration, configMap, banners string) {
	digest := sha256.Sum256([]byte(banners))
	pod.WithAnnotations(map[string]string{annotationBanners: hex.EncodeToString(digest[:8])})
	pod.Spec.WithVolumes(coreac.Volume().WithName("content").
		WithConfigMap(coreac.ConfigMapVolumeSource().WithName(configMap).WithDefaultMode(corev1.ConfigMapVolumeSourceDefaultMode)))
	pod.Spec.Containers[0].
		WithEnv(variable("BANNERS", bannersDir+"/"+bannersFile)).
		WithVolumeMounts(coreac.VolumeMount().WithName("content").WithMountPath(bannersDir).WithReadOnly(true))
}
