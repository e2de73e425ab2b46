package controller

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/solutionctl/example-solution/api"
)

// outcome is the result of one attempt to run a Website.
type outcome struct {
	reason  string // one of the reasons of package api
	message string // a sentence for the user
	version string // the version that every server runs, if that is known
}

// judge compares the running servers with the spec. generation is that of the Deployment as it was applied: a Deployment that was observed
// at an earlier one shows nothing about the present spec, however ready it looks.
func judge(s appsv1.DeploymentStatus, generation int64, wanted int32, version string) outcome {
	done := s.ObservedGeneration >= generation &&
		s.Replicas == wanted && s.UpdatedReplicas == wanted && s.AvailableReplicas == wanted
	if done {
		return outcome{api.Running, fmt.Sprintf("%d of %d servers run version %s", wanted, wanted, version), version}
	}
	if message, failed := rolloutFailure(s); failed && s.ObservedGeneration >= generation {
		return outcome{reason: api.RolloutFailed, message: message}
	}
	if s.ObservedGeneration < generation {
		return outcome{reason: api.Progressing, message: "version " + version + " is about to start"}
	}
	if wanted == 0 {
		return outcome{reason: api.Progressing, message: "the last servers are stopping"}
	}
	return outcome{
		reason:  api.Progressing,
		message: fmt.Sprintf("%d of %d servers run version %s", min(s.UpdatedReplicas, s.AvailableReplicas), wanted, version),
	}
}

// rolloutFailure returns why the Deployment's own controller has given up.
func rolloutFailure(s appsv1.DeploymentStatus) (message string, failed bool) {
	for _, c := range s.Conditions {
		if c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse {
			return c.Message, true
		}
	}
	return "", false
}

// status returns the new status of a Website. live is the Deployment that has its name; it counts if it is the Website's.
func status(site *api.Website, live *appsv1.Deployment, o outcome) api.WebsiteStatus {
	s := *site.Status.DeepCopy()
	s.ObservedGeneration = site.Generation
	s.Selector = labels.SelectorFromSet(selector(site)).String()
	s.URL = url(site)
	s.Replicas, s.ReadyReplicas = 0, 0
	if metav1.IsControlledBy(live, site) {
		s.Replicas, s.ReadyReplicas = live.Status.Replicas, live.Status.ReadyReplicas
	}
	if o.version != "" {
		s.Version = o.version
	}
	setConditions(&s.Conditions, site.Generation, o)
	return s
}

// setConditions writes Ready, and Stalled only while it is true, as kstatus wants it.
func setConditions(conditions *[]metav1.Condition, generation int64, o outcome) {
	ready := metav1.Condition{
		Type: api.Ready, Status: metav1.ConditionFalse,
		ObservedGeneration: generation, Reason: o.reason, Message: o.message,
	}
	switch o.reason {
	case api.Running:
		ready.Status = metav1.ConditionTrue
		meta.RemoveStatusCondition(conditions, api.Stalled)
	case api.Progressing:
		meta.RemoveStatusCondition(conditions, api.Stalled)
	default:
		stalled := ready
		stalled.Type, stalled.Status = api.Stalled, metav1.ConditionTrue
		meta.SetStatusCondition(conditions, stalled)
	}
	meta.SetStatusCondition(conditions, ready)
}
