package doctor_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/support/notify"
)

// TestProblemsOfWebhooks: each dead webhook is sent once, although others begin, and none is reported as resolved while it lasts.
func TestProblemsOfWebhooks(t *testing.T) {
	p := &patient{Bed: deployertest.New(t), root: t.TempDir(), now: time.Now}
	guard := func(name string, hooks ...string) {
		text := ""
		for _, hook := range hooks {
			text += fmt.Sprintf("{name: %s.example.com, failurePolicy: Fail, clientConfig: {service: {namespace: site, name: %s}}, rules: []}, ", hook, hook)
		}
		p.Server.Put(p, fmt.Sprintf("{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: %s}, webhooks: [%s]}", name, text))
	}
	journal := &notify.Journal{}
	sends := func(firing ...string) {
		t.Helper()
		var got []string
		changes := journal.Compare(notify.Observed{Diagnosis: p.diagnose()}, time.Now(), time.Minute)
		for _, c := range changes {
			got = append(got, string(c.State)+" "+c.Subject)
		}
		for i := range firing {
			firing[i] = "firing cluster webhooks" + firing[i]
		}
		if diff := cmp.Diff(got, firing); diff != "" {
			t.Errorf("(-got +want)\n%s", diff)
		}
		journal.Confirm(changes)
	}
	var first []string
	for n := range 200 {
		name := fmt.Sprintf("guard%03d", n)
		guard(name, "a")
		first = append(first, " ValidatingWebhookConfiguration "+name+" a.example.com")
	}
	sends(first...)
	guard("before", "a")
	sends("", " ValidatingWebhookConfiguration before a.example.com")
	guard("before", "a", "b")
	sends(" ValidatingWebhookConfiguration before b.example.com")
}

// TestMessagesOfProgramsAreLeftOut: what a webhook or a policy has written about an object is in no finding.
func TestMessagesOfProgramsAreLeftOut(t *testing.T) {
	p := &patient{Bed: deployertest.New(t), root: t.TempDir(), now: time.Now}
	for name, message := range map[string]string{
		"webhook": `Failed to delete all resource types, 1 remaining: admission webhook "guard.example.com" denied the request: object has hunter2`,
		"policy":  `ValidatingAdmissionPolicy 'p' with binding 'b' denied request: hunter2`,
		"convert": "conversion webhook for example.com/v1, Kind=Thing failed: hunter2",
	} {
		p.Server.Put(p, fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s, finalizers: [example.com/x], deletionTimestamp: '2026-01-02T03:04:05Z'}, "+
			"status: {phase: Terminating, conditions: [{type: NamespaceDeletionContentFailure, status: 'True', message: %q}]}}", name, message))
	}
	text := strings.Join(p.examine(), "\n")
	if strings.Contains(text, "hunter2") || strings.Count(text, "(its message is left out); Namespace") != 3 || !strings.Contains(text, `webhook "guard.example.com" denied`) {
		t.Errorf("got\n%s", text)
	}
}
