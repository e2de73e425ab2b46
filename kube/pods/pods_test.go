package pods

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func object(t *testing.T, text string) (object map[string]any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestTemplate(t *testing.T) {
	const pod = "{metadata: {labels: {app: web}}, spec: {containers: [{image: a}, {image: b}]}}"
	for name, test := range map[string]struct{ object, path, images, labels string }{
		"Deployment":                 {"{apiVersion: apps/v1, kind: Deployment, spec: {template: " + pod + "}}", "spec.template", "a b", "web"},
		"CronJob":                    {"{apiVersion: batch/v1, kind: CronJob, spec: {jobTemplate: {spec: {template: " + pod + "}}}}", "spec.jobTemplate.spec.template", "a b", "web"},
		"Pod":                        {"{apiVersion: v1, kind: Pod, metadata: {labels: {app: web}}, spec: {containers: [{image: a}]}}", "", "a", "web"},
		"another kind":               {"{apiVersion: v1, kind: ConfigMap, spec: {template: " + pod + "}}", "", "", ""},
		"another group":              {"{apiVersion: example.com/v1, kind: Deployment, spec: {template: " + pod + "}}", "", "", ""},
		"a template that is no map":  {"{apiVersion: apps/v1, kind: Deployment, spec: {template: [1]}}", "spec.template", "", ""},
		"containers that are no map": {"{apiVersion: v1, kind: Pod, spec: {containers: [1, {image: a}]}}", "", "a", ""},
		"nothing":                    {"{}", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := object(t, test.object)
			var images []string
			for _, container := range Containers(o) {
				images = append(images, container["image"].(string))
			}
			label, _ := Labels(o)["app"].(string)
			_, path := Template(o)
			got := []string{strings.Join(path, "."), strings.Join(images, " "), label}
			if diff := cmp.Diff(got, []string{test.path, test.images, test.labels}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnnotate(t *testing.T) {
	for _, test := range []struct{ object, want string }{
		{"{apiVersion: apps/v1, kind: Deployment, spec: {template: {spec: {}}}}", "{apiVersion: apps/v1, kind: Deployment, spec: {template: {metadata: {annotations: {a: b}}, spec: {}}}}"},
		{"{apiVersion: v1, kind: Pod, metadata: {annotations: {c: d}}}", "{apiVersion: v1, kind: Pod, metadata: {annotations: {a: b, c: d}}}"},
		{"{apiVersion: v1, kind: Secret}", "{apiVersion: v1, kind: Secret}"},
	} {
		o := object(t, test.object)
		Annotate(o, "a", "b")
		if diff := cmp.Diff(o, object(t, test.want)); diff != "" {
			t.Errorf("%s: %s", test.object, diff)
		}
	}
}
