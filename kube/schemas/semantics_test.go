package schemas_test

import (
	"strings"
	"testing"
)

const (
	service   = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{name: http, port: 80, targetPort: http}, {name: admin, port: 81}]}\n"
	configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {a.conf: text}\n"
	cronJob   = "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: backup}\nspec:\n  schedule: \"*/5 1-3,5 * jan-mar mon\"\n" +
		"  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}], volumes: [{name: c, configMap: {name: c, defaultMode: 420}}]}}}}\n"
)

// TestSemantics changes one thing in an object that the API server takes, so that it does not.
func TestSemantics(t *testing.T) {
	for _, test := range []struct {
		name, text, old, changed string
		want                     []string
	}{
		{"a Deployment", deployment, "", "", nil},
		{"a Service", service, "", "", nil},
		{"a ConfigMap", configMap, "", "", nil},
		{"a CronJob", cronJob, "", "", nil},
		{"selector", deployment, "matchLabels: {app: web}", "matchLabels: {app: wbe}", []string{"spec.selector: does not match the labels of the template"}},
		{"expression", deployment, "matchLabels: {app: web}", "matchExpressions: [{key: app, operator: NotIn, values: [web]}]", []string{"spec.selector: does not match"}},
		{"empty selector", deployment, "{matchLabels: {app: web}}", "{}", []string{"spec.selector: is empty"}},
		{"negative replicas", deployment, "replicas: 2", "replicas: -1", []string{"spec.replicas: -1 is negative"}},
		{"container port", deployment, "{containerPort: 80}", "{containerPort: 70000}", []string{"spec.template.spec.containers[0].ports[0].containerPort: 70000 is not a port"}},
		{"probe", deployment, "port: http}", "port: 70000}", []string{"spec.template.spec.containers[0].livenessProbe.httpGet.port: 70000 is not a port"}},
		{"container name", deployment, "- name: app", "- name: App", []string{`spec.template.spec.containers[0].name: "App" is not a name of a container`}},
		{"restart policy", deployment, "    spec:\n", "    spec:\n      restartPolicy: Never\n", []string{`spec.template.spec.restartPolicy: "Never" is not possible here: expected Always`}},
		{"workload name", deployment, "name: web\n", "name: Web\n", []string{`metadata.name: "Web" is not a name of a Deployment`}},
		{"port", service, "port: 80", "port: 70000", []string{"spec.ports[0].port: 70000 is not a port: expected 1 to 65535"}},
		{"port without a name", service, "{name: admin, port: 81}", "{port: 81}", []string{"spec.ports[1]: name is missing"}},
		{"ports without names", service, "[{name: http, port: 80, targetPort: http}, {name: admin, port: 81}]", "[{port: 80}, {port: 81}]", []string{
			"spec.ports[0]: name is missing", "spec.ports[1]: name is missing",
		}},
		{"port name", service, "name: admin", "name: Admin", []string{`spec.ports[1].name: "Admin" is not a name of a port`}},
		{"target port", service, "targetPort: http", "targetPort: this-is-much-too-long", []string{"spec.ports[0].targetPort: "}},
		{"Service name", service, "name: web", "name: 9web", []string{`metadata.name: "9web" is not a name of a Service`}},
		{"ConfigMap name", configMap, "name: web", "name: Conf", []string{`metadata.name: "Conf" is not a name of a ConfigMap`}},
		{"key", configMap, "a.conf", "a/b", []string{`data[a/b]: "a/b" is not a key`}},
		{"CronJob name", cronJob, "backup", strings.Repeat("a", 53), []string{"metadata.name: "}},
		{"CronJob name that fits", cronJob, "backup", strings.Repeat("a", 52), nil},
		{"six fields", cronJob, "*/5 1-3,5 * jan-mar mon", "0 */5 * * * *", []string{"spec.schedule: \"0 */5 * * * *\" is not a schedule: it has 6 fields"}},
		{"minute", cronJob, "*/5 1-3", "60 1-3", []string{"spec.schedule: \"60 1-3,5 * jan-mar mon\" is not a schedule: \"60\" is not a minute"}},
		{"step", cronJob, "*/5", "*/0", []string{"spec.schedule: "}},
		{"range", cronJob, "1-3", "3-1", []string{"spec.schedule: "}},
		{"every", cronJob, "*/5 1-3,5 * jan-mar mon", "@every 5", []string{"spec.schedule: "}},
		{"daily", cronJob, "*/5 1-3,5 * jan-mar mon", "@daily", nil},
		{"time zone", cronJob, "*/5 1-3,5 * jan-mar mon", "TZ=Europe/Paris 0 0 * * *", []string{"spec.schedule: "}},
		{"restart policy of a Job", cronJob, "restartPolicy: Never, ", "", []string{"spec.jobTemplate.spec.template.spec: restartPolicy is missing"}},
		{"mode", cronJob, "defaultMode: 420", "defaultMode: 512", []string{
			"spec.jobTemplate.spec.template.spec.volumes[0].configMap.defaultMode: 512 is not the mode of a file",
		}},
		{"decimal mode", cronJob, "configMap: {name: c, defaultMode: 420}", "projected: {sources: [{secret: {name: c, items: [{key: a, path: a, mode: 644}]}}]}", []string{
			"spec.jobTemplate.spec.template.spec.volumes[0].projected.sources[0].secret.items[0].mode: 644 is not the mode of a file",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			text := strings.Replace(test.text, test.old, test.changed, 1)
			if test.old != "" && text == test.text {
				t.Fatal("nothing was replaced")
			}
			checkProblems(t, release(t, "1.34").Validate(object(t, text)), test.want)
		})
	}
}
