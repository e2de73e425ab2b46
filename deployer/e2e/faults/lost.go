//go:build linux

package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// lost names the objects of users that are not there any more as they were, except custom resources that the verb deletes
// and that are in a file.
func (l *Lane) lost(ctx context.Context, v *Verb) ([]string, error) {
	exported, err := l.exported()
	if err != nil {
		return nil, err
	}
	var problems []string
	for _, object := range v.planted() {
		live, err := l.client.Resource(l.resource(object)).Namespace(l.environment).Get(ctx, object.GetName(), metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
		found := err == nil && same(object, live)
		if v.deletes && slices.ContainsFunc(exported, func(other *unstructured.Unstructured) bool { return same(object, other) }) {
			found = true
		}
		// A deleted environment takes objects of others with it.
		if v.deletes && object.GetKind() == "ConfigMap" {
			found = true
		}
		if !found {
			problems = append(problems, object.GetKind()+" "+object.GetName()+" is lost")
		}
	}
	return problems, nil
}

func same(want, got *unstructured.Unstructured) bool {
	for _, part := range []string{"kind", "spec", "data"} {
		if !reflect.DeepEqual(want.Object[part], got.Object[part]) {
			return false
		}
	}
	return want.GetName() == got.GetName()
}

// exported are the objects in the files that the program wrote before it deleted them.
func (l *Lane) exported() ([]*unstructured.Unstructured, error) {
	files, err := filepath.Glob(filepath.Join(l.dir, "*.json"))
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var list struct{ Items []json.RawMessage }
		if json.Unmarshal(data, &list) != nil {
			continue // it was being written
		}
		for _, item := range list.Items {
			object := &unstructured.Unstructured{}
			if err := object.UnmarshalJSON(item); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			objects = append(objects, object)
		}
	}
	return objects, nil
}
