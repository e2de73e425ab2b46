package engine_test

import (
	"testing"

	"github.com/solutionctl/solutionctl/schema"
)

// TestUnions changes an object from one member of a union to another, although the API server has set defaults of the first, which have
// no owner.
func TestUnions(t *testing.T) {
	t.Parallel()
	pod := func(head, container, volumes string) string {
		return head + `
  template:
    metadata: {labels: {app: u}}
    spec:
      containers: [{name: c, image: "example.invalid/c:1"` + container + `}]
` + volumes
	}
	deployment := func(strategy, container, volumes string) string {
		return pod(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: u, namespace: $ns}
spec:
  replicas: 0
  `+strategy+`
  selector: {matchLabels: {app: u}}`, container, volumes)
	}
	controller := func(kind, strategy string) string {
		return pod(`
apiVersion: apps/v1
kind: `+kind+`
metadata: {name: u, namespace: $ns}
spec:
  `+strategy+`
  selector: {matchLabels: {app: u}}`, "", "      nodeSelector: {none: such}\n")
	}
	service := func(spec string) string {
		return `
apiVersion: v1
kind: Service
metadata: {name: u, namespace: $ns}
spec: {` + spec + `}
`
	}
	volume := func(source string) string { return "      volumes: [{name: v, " + source + "}]\n" }
	env := func(from string) string { return ", env: [{name: E, " + from + "}]" }
	probe := func(handler string) string { return ", livenessProbe: {" + handler + "}" }
	hook := func(handler string) string { return ", lifecycle: {preStop: {" + handler + "}}" }
	webhook := func(config string) string {
		return `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: $ns-u}
webhooks:
- name: u.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
  rules: [{operations: [CREATE], apiGroups: [none.example.com], resources: [none], apiVersions: [v1]}]
  clientConfig: {` + config + `}
`
	}
	definition := func(conversion string) string {
		return `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: unions.$ns.example.com}
spec:
  group: $ns.example.com
  scope: Namespaced
  names: {kind: Union, plural: unions, singular: union, listKind: UnionList}
  ` + conversion + `
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`
	}
	for _, test := range []struct{ name, before, after string }{
		{"strategy", deployment("", "", ""), deployment("strategy: {type: Recreate}", "", "")},
		{"given strategy", deployment("strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1}}", "", ""), deployment("strategy: {type: Recreate}", "", "")},
		{"strategy back", deployment("strategy: {type: Recreate}", "", ""), deployment("", "", "")},
		{"stateful", controller("StatefulSet", "serviceName: u\n  replicas: 0"), controller("StatefulSet", "serviceName: u\n  replicas: 0\n  updateStrategy: {type: OnDelete}")},
		{"daemon", controller("DaemonSet", ""), controller("DaemonSet", "updateStrategy: {type: OnDelete}")},
		{"probe", deployment("", probe("httpGet: {port: 80}"), ""), deployment("", probe("exec: {command: [x]}"), "")},
		{"probe grpc", deployment("", probe("grpc: {port: 80}"), ""), deployment("", probe("tcpSocket: {port: 80}"), "")},
		{"hook", deployment("", hook("httpGet: {port: 80}"), ""), deployment("", hook("exec: {command: [x]}"), "")},
		{"volume", deployment("", "", volume("configMap: {name: a}")), deployment("", "", volume("secret: {secretName: a}"))},
		{"volume projected", deployment("", "", volume("projected: {sources: [{configMap: {name: a}}]}")), deployment("", "", volume("emptyDir: {}"))},
		{"volume empty", deployment("", "", volume("emptyDir: {}")), deployment("", "", volume("hostPath: {path: /x}"))},
		{"volume ephemeral", deployment("", "", volume("ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}")), deployment("", "", volume("emptyDir: {}"))},
		{"env", deployment("", env("valueFrom: {fieldRef: {fieldPath: metadata.name}}"), ""), deployment("", env("valueFrom: {configMapKeyRef: {name: a, key: b}}"), "")},
		{"env value", deployment("", env("valueFrom: {fieldRef: {fieldPath: metadata.name}}"), ""), deployment("", env(`value: "x"`), "")},
		{"env resource", deployment("", env("valueFrom: {resourceFieldRef: {resource: limits.cpu}}"), ""), deployment("", env(`value: "x"`), "")},
		{"service external", service("ports: [{port: 80}], selector: {a: b}"), service("type: ExternalName, externalName: example.com")},
		{"service node port", service("type: NodePort, ports: [{port: 80}], selector: {a: b}"), service("ports: [{port: 80}], selector: {a: b}")},
		{"service back", service("type: ExternalName, externalName: example.com"), service("ports: [{port: 80}], selector: {a: b}")},
		{"service balancer", service("type: LoadBalancer, externalTrafficPolicy: Local, ports: [{port: 80}], selector: {a: b}"), service("ports: [{port: 80}], selector: {a: b}")},
		{"affinity", service("sessionAffinity: ClientIP, ports: [{port: 80}], selector: {a: b}"), service("ports: [{port: 80}], selector: {a: b}")},
		{"affinity none", service("sessionAffinity: ClientIP, ports: [{port: 80}], selector: {a: b}"), service("sessionAffinity: None, ports: [{port: 80}], selector: {a: b}")},
		{"webhook", webhook("service: {name: a, namespace: b}"), webhook("url: https://example.com/")},
		{"conversion", definition("conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {name: a, namespace: b}}}}"), definition("")},
		{"conversion none", definition("conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {name: a, namespace: b}}}}"), definition("conversion: {strategy: None}")},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newFixture(t)
			b.apply(b.plan(b.release("1", test.before)))
			next := b.release("2", test.after)
			plan := b.plan(next)
			if len(plan.Changes) != 1 || plan.Changes[0].Action != schema.ActionUpdate {
				t.Fatalf("it is not changed in place: %s", b.actions(plan))
			}
			b.apply(plan)
			b.restart()
			if again := b.plan(next); !again.Empty() {
				t.Errorf("there is something to do after everything was done: %s", b.actions(again))
			}
		})
	}
}
