//go:build linux

package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/host/store"
	solutionschema "github.com/solutionctl/solutionctl/schema"
)

// orphans names what had the label of a release in the last dump and is on no record, and records that were not completed.
func (l *Lane) orphans(ctx context.Context) ([]string, error) {
	records, err := l.client.Resource(secretResource).Namespace(systemNamespace).List(ctx, metav1.ListOptions{LabelSelector: "solutionctl.io/stores=state"})
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	var problems []string
	for _, secret := range records.Items {
		text, _, err := unstructured.NestedString(secret.Object, "data", "state.json.gz")
		if err != nil {
			return nil, err
		}
		content, err := plain("Secret", "state.json.gz", text)
		if err != nil {
			return nil, err
		}
		data, err := json.Marshal(content)
		if err != nil {
			return nil, err
		}
		var state solutionschema.DeploymentState
		if err := json.Unmarshal(data, &state); err != nil {
			return nil, err
		}
		if state.Pending != nil {
			problems = append(problems, "the record "+secret.GetName()+" has a pending operation")
		}
		release := record.Key{Namespace: state.Namespace, Name: state.Solution, Component: state.Component}.ID()
		if state.Current != nil {
			for _, object := range state.Current.Objects {
				known[release+" "+object.Kind+" "+object.Namespace+"/"+object.Name] = true
			}
		}
	}
	for _, object := range l.ours {
		if !known[object] {
			problems = append(problems, object+" is on no record")
		}
	}
	return problems, nil
}

// unlisted names the active versions that MetalK8s' configuration does not list. MetalK8s would delete their CRDs.
func (l *Lane) unlisted(ctx context.Context) ([]string, error) {
	object, err := l.client.Resource(configMapResource).Namespace(sharedNamespace).Get(ctx, "metalk8s-solutions", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	solutions, _, err := unstructured.NestedStringMap(object.Object, "data")
	if err != nil {
		return nil, err
	}
	configuration, err := (&store.Configuration{Path: filepath.Join(l.dir, "metalk8s/solutions.yaml")}).Load()
	if err != nil {
		return nil, err
	}
	var problems []string
	for name, text := range solutions {
		versions, err := solutionschema.ParseImportedSolutions(text)
		if err != nil {
			return nil, err
		}
		for _, v := range versions {
			if v.Active && configuration.Active[name] == "" {
				problems = append(problems, v.ID+" is active, and MetalK8s' configuration does not list it")
			}
		}
	}
	return problems, nil
}

// twice names the Jobs of the environment that were run more than once: their controller records an event for each pod.
func (l *Lane) twice(ctx context.Context) ([]string, error) {
	events, err := l.client.Resource(eventResource).Namespace(l.environment).List(ctx, metav1.ListOptions{FieldSelector: "reason=SuccessfulCreate,involvedObject.kind=Job"})
	if err != nil {
		return nil, err
	}
	pods := map[string]int{}
	var problems []string
	for _, event := range events.Items {
		name, _, err := unstructured.NestedString(event.Object, "involvedObject", "name")
		if err != nil {
			return nil, err
		}
		if pods[name]++; pods[name] > 1 {
			problems = append(problems, fmt.Sprintf("Job %s was run %d times", name, pods[name]))
		}
	}
	return problems, nil
}

// withoutHistory is a dump whose records have only the present state.
func (d dump) withoutHistory() dump {
	result := maps.Clone(d)
	for name, text := range d {
		if !strings.HasPrefix(name, "secrets/"+systemNamespace+"/state.") {
			continue
		}
		record, _ := document([]byte(text)).(map[string]any)
		for _, field := range [][]string{{"history"}, {"current", "number"}} {
			unstructured.RemoveNestedField(record, append([]string{"data", "state.json.gz"}, field...)...)
		}
		data, _ := json.MarshalIndent(record, "", " ") // it was JSON before
		result[name] = string(data)
	}
	return result
}
