package pagetest

import (
	"strings"
	"time"

	"github.com/solutionctl/solutionctl/deployer/console/page"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func sampleDoctor(say func(string) string) *page.Doctor {
	return &page.Doctor{
		Diagnosis: &schema.Diagnosis{Problems: 1, Warnings: 1, Checks: []schema.Check{
			{Area: "cluster", Name: "version", Result: schema.CheckOK, Message: say("Kubernetes 1.36.3")},
			{Area: "registry", Name: "endpoint", Result: schema.CheckProblem, Message: say("https://10.0.0.1:5000 does not answer: connection refused"), Hint: say("start 'solutionctl deploy serve' on bootstrap-1")},
			{Area: "cluster", Name: "clock", Result: schema.CheckWarning, Message: say("the API server's clock is 42 s ahead of this host's")},
			{Area: "records", Name: "pending", Result: schema.CheckSkipped, Message: say("you do not have permission to read records")},
		}},
		Remedies: map[string]page.Action{"registry/endpoint": {Label: "Change the endpoints", URL: "/settings"}},
		Support:  &page.Action{Label: "Support bundle", URL: "/support"},
	}
}

func sampleSettings(say func(string) string) *page.Settings {
	endpoint := say("https://10.0.0.1:5000")
	return &page.Settings{
		RemoveEndpoint: map[string]page.Action{endpoint: {Label: page.Text("action.remove"), URL: "/settings/remove?endpoint=1"}},
		AddEndpoint: &page.Form{
			Action:     page.Action{Label: page.Text("action.addEndpoint"), URL: "/settings/endpoints", Post: true, Weight: page.WeightPrimary},
			Inputs:     []page.Input{{Name: "url", Label: page.Text("settings.url"), Help: page.Text("settings.url.help"), Value: say("https://10.0.0.2:5000"), Required: true}},
			Checkboxes: []page.Checkbox{{Name: "replace", Value: "true", Label: page.Text("settings.replace"), Explanation: page.Text("settings.replace.explanation")}},
		},
		AddKey: &page.Form{
			Action: page.Action{Label: page.Text("action.addKey"), URL: "/settings/keys", Post: true, Weight: page.WeightPrimary},
			Inputs: []page.Input{{Name: "file", Label: page.Text("settings.file"), Help: page.Text("settings.file.help"), Required: true}},
		},
		Registry: &schema.EndpointList{Mode: schema.RegistryOwn, Host: schema.RegistryHostOwn, Endpoints: []schema.Endpoint{{
			URL: endpoint, Authorities: []schema.EndpointAuthority{{Fingerprint: "SHA256:" + strings.Repeat("0123ABCD", 8), NotAfter: Noon.Add(9000 * time.Hour)}},
		}}},
		Keys:       []page.TrustedKey{{Name: say("acme-release"), ID: strings.Repeat("01ab", 8), Algorithm: "ECDSA P-256", Remove: &page.Action{Label: page.Text("action.remove"), URL: "/settings/remove?key=acme-release"}}, {Name: say("acme-2024"), ID: strings.Repeat("cd23", 8), Algorithm: "Ed25519", Revoked: true, Remove: &page.Action{Label: page.Text("action.remove"), URL: "/settings/remove?key=acme-2024"}}},
		PolicyFile: say("/etc/solutionctl/trust/policy.yaml"),
		Sessions: []page.Session{
			{User: say("oidc:jane@example.com"), Way: "organisation", Started: ago(time.Hour), Seen: Noon, Current: true},
			{User: say("oidc:jane@example.com"), Way: "token", Started: ago(30 * time.Hour), Seen: ago(5 * time.Hour), End: &page.Action{Label: "Log out", URL: "/sessions/2/end", Post: true}},
		},
		About:   []page.Fact{{Name: "solutionctl", Value: say("1.0.0")}, {Name: "Kubernetes", Value: say("1.36.3")}},
		Actions: []page.Action{{Label: "Log out everywhere", URL: "/logout/everywhere", Post: true, Weight: page.WeightDanger}},
	}
}

// sampleLoader is a run of the loader that is under way, or has failed.
func sampleLoader(say func(string) string, phase schema.LoadPhase) *page.Loader {
	part := func(component string, state schema.LoadState) schema.LoadPart {
		return schema.LoadPart{
			Environment: say("infra"), Namespace: say("infra"), Solution: say("cloud"), Component: component, Version: say("2.0.0"), State: state,
			StartedAt: ago(9 * time.Minute),
		}
	}
	p := &schema.LoadProgress{
		Run: say("4f1c2a9be0"), Phase: phase, Digest: "sha256:" + strings.Repeat("4f", 32), StartedAt: ago(10 * time.Minute), UpdatedAt: ago(time.Minute), Ready: 2,
		Parts: []schema.LoadPart{
			part("", schema.PartReady), part(say("database"), schema.PartReady), part(say("identity"), schema.PartWaiting),
			part(say("compute"), schema.PartBlocked), part(say("metrics"), schema.PartPending),
		},
		Notices: []string{say("Secret solutionctl-system/cloud-values has no values for component metrics")},
		Loaded:  []schema.LoadedContent{{Environment: say("infra"), Solution: say("cloud")}, {Environment: say("test"), Solution: say("shop")}},
	}
	p.Parts[0].ReadyAt, p.Parts[1].ReadyAt = ago(9*time.Minute), ago(7*time.Minute)
	p.Parts[2].WaitingFor = []string{say("Deployment infra/identity: 1 of 3 replicas is ready"), say("Pod infra/identity-0, container main: ImagePullBackOff")}
	p.Parts[4].StartedAt, p.Parts[4].Optional = time.Time{}, true
	if phase == schema.LoadFailed {
		p.Parts[2].State, p.Parts[2].Error = schema.PartFailed, &schema.LoadError{Code: report.Timeout, Message: say("it was not ready after 30m0s")}
		p.Error = &schema.LoadError{Code: report.Timeout, Message: say("component identity was not ready in time"), Hint: say("'solutionctl deploy loader logs' shows the output of the run")}
		p.Repair = &schema.LoadRepair{At: ago(5 * time.Minute), Changed: []string{say("Deployment infra/database was changed by kubectl-scale"), say("ConfigMap infra/database is gone")}, Times: 4}
	}
	return &page.Loader{Progress: p}
}
