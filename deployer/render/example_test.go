package render_test

import (
	"fmt"
	"strings"
	"testing/fstest"

	"github.com/solutionctl/solutionctl/build/archive"
	"github.com/solutionctl/solutionctl/deployer/render"
)

// The objects of an imported archive in an environment.
func ExampleEnvironment() {
	opened, err := archive.FromFS(fstest.MapFS{
		"manifest.yaml": {Data: []byte("apiVersion: solutions.metalk8s.scality.com/v1alpha1\nkind: Solution\nmetadata: {name: db}\nspec: {version: 1.0.0}\n")},
		"monitoring/monitor.yaml": {Data: []byte("apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata: {name: db}\n" +
			"spec: {selector: {matchLabels: {app: db}}, endpoints: [{port: metrics}]}\n")},
		"ui/ui.yaml": {Data: []byte("apiVersion: v1\nkind: Service\nmetadata: {name: page}\nspec: {ports: [{port: 80}]}\n")},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	payload, err := render.FromArchive(opened)
	if err != nil {
		fmt.Println(err)
		return
	}
	objects, err := render.Environment(payload, render.Settings{
		Registry: "registry.solutionctl.invalid", Environment: "production", Namespace: "production",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, o := range objects {
		fmt.Println(strings.ToLower(o.GetKind()), o.GetNamespace()+"/"+o.GetName())
	}
	// Output:
	// service production/page
	// configmap production/db-ui
	// ingress production/db-ui
	// servicemonitor production/db
}
