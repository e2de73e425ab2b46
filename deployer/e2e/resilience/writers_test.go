package resilience_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
	"github.com/solutionctl/solutionctl/deployer/metalk8s"
	"github.com/solutionctl/solutionctl/schema/report"
)

// kubectl runs kubectl in the environment, where OPERATOR stands for the Deployment of the operator.
func (b *bed) kubectl(line string, more ...string) {
	b.Helper()
	c := b.Server
	args := strings.Fields(strings.ReplaceAll(line, "OPERATOR", "deployment/"+b.Name+"-operator"))
	args = append([]string{"--kubeconfig", c.Kubeconfig, "--namespace", b.Env}, append(args, more...)...)
	if out, err := exec.CommandContext(b.Context(), filepath.Join(c.Bin, "kubectl"), args...).CombinedOutput(); err != nil {
		b.Fatalf("kubectl %s: %v\n%s", line, err, out)
	}
}

// userInterface writes into metalk8s-environment as the user interface of MetalK8s did: one key, with a JSON patch.
func (b *bed) userInterface(solution, version string) {
	b.Helper()
	patch := fmt.Sprintf(`[{"op":"add","path":"/data/%s","value":%q}]`, solution, version)
	_, err := b.Server.Client().CoreV1().ConfigMaps(b.Env).
		Patch(b.Context(), metalk8s.EnvironmentConfigMap, types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		b.Fatal(err)
	}
}

// chosen returns the versions in metalk8s-environment.
func (b *bed) chosen() map[string]string {
	b.Helper()
	data, _, err := unstructured.NestedStringMap(b.get(configMaps, b.Env, metalk8s.EnvironmentConfigMap).Object, "data")
	if err != nil {
		b.Fatal(err)
	}
	return data
}

// argo applies fields of the operator's Deployment as Argo CD does, which has no mercy.
func (b *bed) argo(fields string) {
	b.Helper()
	text := fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"%s-operator","namespace":%q,%s}`, b.Name, b.Env, fields)
	force := true
	_, err := b.Server.Client().AppsV1().Deployments(b.Env).
		Patch(b.Context(), b.Name+"-operator", types.ApplyPatchType, []byte(text+"}"), metav1.PatchOptions{FieldManager: "argocd-controller", Force: &force})
	if err != nil {
		b.Fatal(err)
	}
}

// image is that of the operator, as everybody sees it.
func (b *bed) image() string {
	b.Helper()
	containers, _, _ := unstructured.NestedSlice(b.operator().Object, "spec", "template", "spec", "containers")
	image, _ := containers[0].(map[string]any)["image"].(string)
	return image
}

// field returns a field of the operator's Deployment.
func (b *bed) field(path ...string) any {
	b.Helper()
	value, _, _ := unstructured.NestedFieldNoCopy(b.operator().Object, path...)
	return value
}

// prepared is an environment with version 1.0.0, in which 1.1.0 may follow.
func prepared(t *testing.T) *bed {
	t.Helper()
	b := newBed(t)
	for _, v := range []verb{"env create ENV", "activate NAME 1.0.0", "add ENV NAME 1.0.0", "activate NAME 1.1.0"} {
		b.must(v)
	}
	return b
}

// TestOthersFieldsStay changes what the Solution does not set as kubectl, a user interface and Argo CD do, between all verbs.
func TestOthersFieldsStay(t *testing.T) {
	t.Parallel()
	b := prepared(t)
	b.kubectl("scale OPERATOR --replicas 3")
	b.kubectl("label OPERATOR team=storage")
	b.kubectl("annotate OPERATOR contact=storage@example.com")
	b.kubectl("label namespace " + b.Env + " owner=storage")
	b.kubectl("set resources OPERATOR --limits memory=1Gi")
	b.argo(`"labels":{"argocd.argoproj.io/instance":"storage"}},"spec":{"revisionHistoryLimit":3,"template":{"spec":{"nodeSelector":{"type":"kwok"}}}`)
	b.userInterface("other", "3.2.1")
	for _, v := range []verb{"upgrade ENV NAME 1.1.0", "upgrade ENV NAME 1.1.0", "rollback ENV NAME", "add ENV NAME 1.0.0"} {
		b.must(v)
		containers, _ := b.field("spec", "template", "spec", "containers").([]any)
		for name, value := range map[string][2]any{
			"replicas":           {b.field("spec", "replicas"), int64(3)},
			"kubectl label":      {b.operator().GetLabels()["team"], "storage"},
			"kubectl annotate":   {b.operator().GetAnnotations()["contact"], "storage@example.com"},
			"namespace":          {b.get(namespaces, "", b.Env).GetLabels()["owner"], "storage"},
			"set resources":      {fmt.Sprint(containers[0].(map[string]any)["resources"]), "map[limits:map[memory:1Gi]]"},
			"Argo's label":       {b.operator().GetLabels()["argocd.argoproj.io/instance"], "storage"},
			"Argo's history":     {b.field("spec", "revisionHistoryLimit"), int64(3)},
			"Argo's selector":    {b.field("spec", "template", "spec", "nodeSelector", "type"), "kwok"},
			"the user interface": {b.chosen()["other"], "3.2.1"},
		} {
			if value[0] != value[1] {
				t.Errorf("after %s: %s: got %v, want %v", v, name, value[0], value[1])
			}
		}
	}
	b.must("remove ENV NAME")
	if got := b.chosen(); len(got) != 1 || got["other"] != "3.2.1" {
		t.Errorf("metalk8s-environment: %v", got)
	}
}

// TestFieldsInDispute checks that fields that others set as well are changed only with the user's consent.
func TestFieldsInDispute(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, manager, field string
		interfere            func(b *bed)
	}{
		{"kubectl set image", "kubectl-set", `.spec.template.spec.containers[name="NAME-operator"].image`, func(b *bed) {
			b.kubectl("set image OPERATOR *=registry.invalid/patched:1")
		}},
		{"kubectl patch", "kubectl-patch", ".spec.template.spec.serviceAccountName", func(b *bed) {
			b.kubectl("patch OPERATOR --patch", `{"spec":{"template":{"spec":{"serviceAccountName":"default"}}}}`)
		}},
		{"Argo CD", "argocd-controller", ".metadata.labels.app.kubernetes.io/version", func(b *bed) {
			b.argo(`"labels":{"app.kubernetes.io/version":"latest"}`)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if test.name != "kubectl patch" {
				testcluster.Long(t, "TestFieldsInDispute/kubectl_patch")
			}
			b := prepared(t)
			test.interfere(b)
			before := b.dump()
			b.refused(b.run("upgrade ENV NAME 1.1.0"), report.Conflict, "Deployment "+b.Env+"/"+b.Name+"-operator", test.manager,
				strings.ReplaceAll(test.field, "NAME", b.Name), "--force-conflicts")
			if after := b.dump(); before != after {
				t.Errorf("before:\n%s\nafter:\n%s", before, after)
			}
			b.must("upgrade ENV NAME 1.1.0", "--force-conflicts")
			if !strings.Contains(b.image(), ":1.1.0@") {
				t.Errorf("the image is %s", b.image())
			}
		})
	}
}

// TestUserInterface: what a user interface chooses for a Solution is a wish. What is deployed is known elsewhere.
func TestUserInterface(t *testing.T) {
	t.Parallel()
	testcluster.Long(t, "TestVersionDrift in deployer/records, without a cluster")
	b := prepared(t)
	b.userInterface(b.Name, "1.1.0")
	b.must("upgrade ENV NAME 1.1.0")
	if !strings.Contains(b.image(), ":1.1.0@") {
		t.Errorf("the image is %s", b.image())
	}
	b.userInterface(b.Name, "9.9.9")
	b.must("add ENV NAME 1.1.0")
	if got := b.chosen()[b.Name]; got != "1.1.0" {
		t.Errorf("metalk8s-environment has %q", got)
	}
}

// TestWritersAllTheTime lets others write their own fields while verbs run.
func TestWritersAllTheTime(t *testing.T) {
	t.Parallel()
	testcluster.Long(t, "TestOthersFieldsStay")
	b := prepared(t)
	client := b.Server.Client()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var writing sync.WaitGroup
	written := map[string]*string{}
	write := func(what string, f func(ctx context.Context, client kubernetes.Interface, value string) (before string, err error)) {
		last := ""
		written[what] = &last
		writing.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				value := fmt.Sprintf("v%d", n)
				before, err := f(context.WithoutCancel(ctx), client, value)
				if apierrors.IsNotFound(err) {
					return // it was removed
				}
				if err != nil {
					t.Errorf("%s: %v", what, err)
					return
				}
				if n > 0 && before != last {
					t.Errorf("%s: somebody made %q of %q", what, before, last)
				}
				last = value
			}
		})
	}
	merge := func(key string) func(context.Context, kubernetes.Interface, string) (string, error) {
		return func(ctx context.Context, client kubernetes.Interface, value string) (string, error) {
			there, err := client.AppsV1().Deployments(b.Env).Get(ctx, b.Name+"-operator", metav1.GetOptions{})
			if err != nil {
				return "", err
			}
			patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]string{key: value}}})
			if err != nil {
				return "", err
			}
			_, err = client.AppsV1().Deployments(b.Env).Patch(ctx, b.Name+"-operator", types.MergePatchType, patch, metav1.PatchOptions{FieldManager: key})
			return there.Labels[key], err
		}
	}
	write("kubectl", merge("kubectl-label"))
	write("a controller", merge("controller"))
	write("user interface", func(ctx context.Context, client kubernetes.Interface, value string) (string, error) {
		maps := client.CoreV1().ConfigMaps(b.Env)
		there, err := maps.Get(ctx, metalk8s.EnvironmentConfigMap, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		patch := fmt.Sprintf(`[{"op":"add","path":"/data/other","value":%q}]`, value)
		_, err = maps.Patch(ctx, metalk8s.EnvironmentConfigMap, types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
		return there.Data["other"], err
	})
	for _, v := range []verb{"upgrade ENV NAME 1.1.0", "rollback ENV NAME", "upgrade ENV NAME 1.1.0", "remove ENV NAME"} {
		b.must(v)
	}
	stop()
	writing.Wait()
	if got := b.chosen(); got["other"] != *written["user interface"] || len(got) != 1 {
		t.Errorf("metalk8s-environment: %v", got)
	}
}
