package deployer_test

import (
	"reflect"
	"testing"

	"github.com/solutionctl/solutionctl/deployer"
	"github.com/solutionctl/solutionctl/deployer/environments"
	"github.com/solutionctl/solutionctl/deployer/plan"
	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

func TestConfirmation(t *testing.T) {
	type asks interface{ Confirmation() report.Confirmation }
	dry := plan.Options{DryRun: true}
	pod := schema.ObjectRef{APIVersion: "v1", Kind: "Pod", Namespace: "test", Name: "stray"}
	hidden := schema.ObjectRef{Kind: "Secret", Namespace: "test"}
	held := environments.Held{ObjectRef: pod, Finalizers: []string{"acme.example/tape", "acme.example/disk"}}
	data := "Every custom resource of it will be deleted"
	for name, test := range map[string]struct {
		options asks
		want    report.Confirmation
	}{
		"remove":                     {&deployer.Request{Verb: schema.VerbRemove, Solution: "demo"}, report.Confirmation{}},
		"remove, data kept":          {&deployer.Request{Verb: schema.VerbRemove, Solution: "demo", Data: plan.KeepData}, report.Confirmation{}},
		"remove, data deleted":       {&deployer.Request{Verb: schema.VerbRemove, Solution: "demo", Data: plan.DeleteData}, report.Confirmation{Question: data, Name: "demo"}},
		"plan to remove with data":   {&deployer.Request{Verb: schema.VerbRemove, Options: dry, Solution: "demo", Data: plan.DeleteData}, report.Confirmation{}},
		"deactivate":                 {&deployer.Request{Verb: schema.VerbDeactivate, Solution: "demo"}, report.Confirmation{}},
		"deactivate, data deleted":   {&deployer.Request{Verb: schema.VerbDeactivate, Solution: "demo", Data: plan.DeleteData}, report.Confirmation{Question: data, Name: "demo"}},
		"delete":                     {&deployer.Request{Verb: schema.VerbDelete, Environment: "test"}, report.Confirmation{Question: "delete every namespace of environment test"}},
		"purge":                      {environments.PurgeOptions{}, report.Confirmation{Question: "purge the cluster"}},
		"plan to purge":              {environments.PurgeOptions{Options: dry}, report.Confirmation{}},
		"environment":                {environments.DeleteOptions{Environment: "test"}, report.Confirmation{Question: "delete every namespace of environment test"}},
		"namespace":                  {environments.DeleteOptions{Environment: "test", Namespace: "eu"}, report.Confirmation{Question: "delete namespace eu of environment test"}},
		"plan to delete environment": {environments.DeleteOptions{Options: dry, Environment: "test", Data: plan.DeleteData}, report.Confirmation{}},
		"environment with data": {
			environments.DeleteOptions{Environment: "test", Data: plan.DeleteData},
			report.Confirmation{Question: "Everything in environment test will be deleted", Name: "test"},
		},
		"namespace with what is in it": {
			environments.DeleteOptions{Environment: "test", Namespace: "eu", Others: []schema.ObjectRef{pod, hidden}, Release: []environments.Held{held}},
			report.Confirmation{
				Question: "Everything in namespace eu of environment test will be deleted", Name: "test",
				Lists: []report.ConfirmationList{
					{
						Title: "This is not part of a Solution, and will be deleted without an export",
						Items: []string{pod.String(), "objects of kind Secret in namespace test, which you do not have permission to list"},
					},
					{
						Title: "These finalizers will be removed, and what they stand for is not cleaned up",
						Items: []string{pod.String() + ": acme.example/tape, acme.example/disk"},
					},
				},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.options.Confirmation(); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}
