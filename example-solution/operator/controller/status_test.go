package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solutionctl/example-solution/api"
)

func TestJudge(t *testing.T) {
	gaveUp := []appsv1.DeploymentCondition{{
		Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Message: "pods do not become ready",
	}}
	tests := map[string]struct {
		status appsv1.DeploymentStatus
		wanted int32
		want   outcome
	}{
		"new": {
			appsv1.DeploymentStatus{},
			2,
			outcome{reason: api.Progressing, message: "version 1.0.0 is about to start"},
		},
		"ready, but of the spec before": {
			appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2},
			2,
			outcome{reason: api.Progressing, message: "version 1.0.0 is about to start"},
		},
		"failed, but of the spec before": {
			appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 2, Conditions: gaveUp},
			2,
			outcome{reason: api.Progressing, message: "version 1.0.0 is about to start"},
		},
		"first new server is there beside the old ones": {
			appsv1.DeploymentStatus{ObservedGeneration: 3, Replicas: 3, UpdatedReplicas: 1, AvailableReplicas: 3},
			2,
			outcome{reason: api.Progressing, message: "1 of 2 servers run version 1.0.0"},
		},
		"an old server is still stopping": {
			appsv1.DeploymentStatus{ObservedGeneration: 3, Replicas: 3, UpdatedReplicas: 2, AvailableReplicas: 3},
			2,
			outcome{reason: api.Progressing, message: "2 of 2 servers run version 1.0.0"},
		},
		"one server is down": {
			appsv1.DeploymentStatus{ObservedGeneration: 3, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 1},
			2,
			outcome{reason: api.Progressing, message: "1 of 2 servers run version 1.0.0"},
		},
		"given up": {
			appsv1.DeploymentStatus{ObservedGeneration: 3, Replicas: 3, UpdatedReplicas: 1, AvailableReplicas: 2, Conditions: gaveUp},
			2,
			outcome{reason: api.RolloutFailed, message: "pods do not become ready"},
		},
		"done": {
			appsv1.DeploymentStatus{ObservedGeneration: 3, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2},
			2,
			outcome{api.Running, "2 of 2 servers run version 1.0.0", "1.0.0"},
		},
		"done after it was given up": {
			appsv1.DeploymentStatus{ObservedGeneration: 3, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2, Conditions: gaveUp},
			2,
			outcome{api.Running, "2 of 2 servers run version 1.0.0", "1.0.0"},
		},
		"stopped": {
			appsv1.DeploymentStatus{ObservedGeneration: 3},
			0,
			outcome{api.Running, "0 of 0 servers run version 1.0.0", "1.0.0"},
		},
		"stopping": {
			appsv1.DeploymentStatus{ObservedGeneration: 3, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1},
			0,
			outcome{reason: api.Progressing, message: "the last servers are stopping"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := judge(tt.status, 3, tt.wanted, "1.0.0")
			if diff := cmp.Diff(got, tt.want, cmp.AllowUnexported(outcome{})); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
		})
	}
}

func TestStatus(t *testing.T) {
	owned := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{UID: "1-2-3", Controller: new(true)}}},
		Status:     appsv1.DeploymentStatus{Replicas: 3, ReadyReplicas: 2},
	}
	foreign := &appsv1.Deployment{Status: owned.Status}
	upgrading := website(func(w *api.Website) { w.Status.Version = "0.9.0" })
	common := api.WebsiteStatus{
		ObservedGeneration: 7, Replicas: 3, ReadyReplicas: 2,
		Selector: "app.kubernetes.io/instance=tea,app.kubernetes.io/name=website",
		URL:      "http://tea-website.shop.svc",
	}
	tests := map[string]struct {
		live    *appsv1.Deployment
		outcome outcome
		want    func(*api.WebsiteStatus)
	}{
		"during an upgrade the version stays": {
			owned,
			outcome{reason: api.Progressing},
			func(s *api.WebsiteStatus) { s.Version = "0.9.0" },
		},
		"after it, it is the new one": {
			owned,
			outcome{reason: api.Running, version: "1.0.0"},
			func(s *api.WebsiteStatus) { s.Version = "1.0.0" },
		},
		"a foreign Deployment does not count": {
			foreign,
			outcome{reason: api.NameAlreadyTaken},
			func(s *api.WebsiteStatus) { s.Version, s.Replicas, s.ReadyReplicas = "0.9.0", 0, 0 },
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			want := *common.DeepCopy()
			tt.want(&want)
			got := status(upgrading, tt.live, tt.outcome)
			if diff := cmp.Diff(got, want, cmpopts.IgnoreFields(api.WebsiteStatus{}, "Conditions")); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
		})
	}
}

// TestConditions goes through the life of a Website: each step starts from the conditions of the one before.
func TestConditions(t *testing.T) {
	var conditions []metav1.Condition
	for _, step := range []struct {
		reason         string
		ready, stalled metav1.ConditionStatus // "": absent
	}{
		{api.Progressing, metav1.ConditionFalse, ""},
		{api.Running, metav1.ConditionTrue, ""},
		{api.VersionNotFound, metav1.ConditionFalse, metav1.ConditionTrue},
		{api.Progressing, metav1.ConditionFalse, ""},
		{api.RolloutFailed, metav1.ConditionFalse, metav1.ConditionTrue},
		{api.NameAlreadyTaken, metav1.ConditionFalse, metav1.ConditionTrue},
		{api.Running, metav1.ConditionTrue, ""},
	} {
		setConditions(&conditions, 7, outcome{reason: step.reason, message: "because"})
		got := map[string]metav1.ConditionStatus{}
		for _, c := range conditions {
			got[c.Type] = c.Status
			if c.Reason != step.reason || c.Message != "because" || c.ObservedGeneration != 7 {
				t.Errorf("%s: got %+v", step.reason, c)
			}
		}
		want := map[string]metav1.ConditionStatus{api.Ready: step.ready}
		if step.stalled != "" {
			want[api.Stalled] = step.stalled
		}
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("%s (-got +want):\n%s", step.reason, diff)
		}
	}
	if !meta.IsStatusConditionTrue(conditions, api.Ready) {
		t.Error("not ready at the end")
	}
}
