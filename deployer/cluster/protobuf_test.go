package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	kubejson "k8s.io/apimachinery/pkg/util/json"
)

// fill sets every field, also those of the fields, to a value that is not zero.
func fill(v reflect.Value, depth int) {
	if depth > 12 {
		return
	}
	switch at := v.Addr().Interface().(type) {
	case *metav1.Time:
		*at = metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
		return
	case *metav1.MicroTime:
		*at = metav1.NewMicroTime(time.Date(2026, 1, 2, 3, 4, 5, 678_000, time.UTC))
		return
	case *metav1.FieldsV1:
		at.SetRawBytes([]byte("{}"))
		return
	case *intstr.IntOrString:
		*at = intstr.FromInt32(7)
		return
	case *resource.Quantity:
		*at = resource.MustParse("7Mi")
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("text of " + v.Type().Name())
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint8:
		v.SetUint(0xff)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), depth+1)
		fill(v.Index(1), depth+1)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, depth+1)
		fill(value, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), depth+1)
			}
		}
	}
}

// project keeps the fields of an object in JSON that a message reads.
func project(value any, of message) any {
	switch value := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for _, f := range of {
			switch found := value[f.name]; {
			case found == nil:
			case f.of != nil:
				kept[f.name] = project(found, f.of)
			default:
				kept[f.name] = found
			}
		}
		return kept
	case []any:
		var kept []any
		for _, one := range value {
			kept = append(kept, project(one, of))
		}
		return kept
	default:
		return value
	}
}

type inProtobufToo interface {
	Marshal() ([]byte, error)
}

// listInProtobuf writes a list as the API server does.
func listInProtobuf(t *testing.T, list inProtobufToo) []byte {
	t.Helper()
	raw, err := list.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "List"}, Raw: raw, ContentType: runtime.ContentTypeProtobuf}
	answer, err := envelope.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte(protobufMagic), answer...)
}

// lists have an object of each kind with a table, of which fill has set everything, and an empty one.
func lists() map[schema.GroupVersionKind]inProtobufToo {
	of := func(list inProtobufToo) inProtobufToo {
		v := reflect.ValueOf(list).Elem()
		fill(v.FieldByName("ListMeta"), 0)
		items := v.FieldByName("Items")
		items.Set(reflect.MakeSlice(items.Type(), 2, 2))
		fill(items.Index(0), 0)
		return list
	}
	return map[schema.GroupVersionKind]inProtobufToo{
		ConfigMapKind: of(&corev1.ConfigMapList{}), SecretKind: of(&corev1.SecretList{}), PodKind: of(&corev1.PodList{}),
		DeploymentKind: of(&appsv1.DeploymentList{}),
		EventKind:      of(&corev1.EventList{}),
		{Group: "apps", Version: "v1", Kind: "ReplicaSet"}:  of(&appsv1.ReplicaSetList{}),
		{Group: "apps", Version: "v1", Kind: "StatefulSet"}: of(&appsv1.StatefulSetList{}),
		{Group: "apps", Version: "v1", Kind: "DaemonSet"}:   of(&appsv1.DaemonSetList{}),
	}
}

// TestReadProtobuf compares what is read of each kind with the same fields of the same objects in JSON.
func TestReadProtobuf(t *testing.T) {
	compare := func(kind schema.GroupVersionKind, list inProtobufToo, of message) {
		if of == nil {
			t.Errorf("%s is read as a whole", kind.Kind)
		}
		var page unstructured.UnstructuredList
		if err := readPage(&page, bytes.NewReader(listInProtobuf(t, list)), of); err != nil {
			t.Errorf("%s: %v", kind.Kind, err)
			return
		}
		data, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		var want struct {
			Items []any `json:"items"`
		}
		if err = kubejson.Unmarshal(data, &want); err != nil {
			t.Fatal(err)
		}
		if len(page.Items) != 2 || page.GetResourceVersion() != "text of string" || page.GetContinue() != "text of string" {
			t.Fatalf("%s: %d objects of version %q, %q", kind.Kind, len(page.Items), page.GetResourceVersion(), page.GetContinue())
		}
		for i, object := range page.Items {
			if diff := cmp.Diff(project(want.Items[i], of), any(object.Object)); diff != "" {
				t.Errorf("%s %d: %s", kind.Kind, i, diff)
			}
			object.DeepCopy() // panics on a type that JSON does not have
		}
	}
	for kind, list := range lists() {
		compare(kind, list, partial(kind))
	}
	compare(PodKind, lists()[PodKind], podWithConditions())
}

// TestReadProtobufDamaged cuts an answer after each byte, and changes each: it is never read as a shorter list without an error, and never
// makes the program panic.
func TestReadProtobufDamaged(t *testing.T) {
	answer := listInProtobuf(t, &corev1.ConfigMapList{
		ListMeta: metav1.ListMeta{ResourceVersion: "7"},
		Items: []corev1.ConfigMap{
			{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"k": "v"}, CreationTimestamp: metav1.NewTime(time.Unix(1e9, 0))}, Data: map[string]string{"x": "y"}},
			{ObjectMeta: metav1.ObjectMeta{Name: "b", OwnerReferences: []metav1.OwnerReference{{Name: "c"}}}},
		},
	})
	var whole unstructured.UnstructuredList
	if err := readPage(&whole, bytes.NewReader(answer), partial(ConfigMapKind)); err != nil || len(whole.Items) != 2 {
		t.Fatal(err, whole)
	}
	envelope, _ := (&runtime.Unknown{ContentType: runtime.ContentTypeProtobuf}).Marshal()
	for length := range len(answer) - len(envelope) {
		var page unstructured.UnstructuredList
		if err := readPage(&page, bytes.NewReader(answer[:length]), partial(ConfigMapKind)); err == nil && len(page.Items) != 2 {
			t.Errorf("%d of %d bytes are a list of %d objects", length, len(answer), len(page.Items))
		}
	}
	for i := range answer {
		for _, value := range []byte{0, 1, 0x7f, 0x80, 0xff} {
			damaged := bytes.Clone(answer)
			damaged[i] = value
			var page unstructured.UnstructuredList
			_ = readPage(&page, bytes.NewReader(damaged), partial(ConfigMapKind)) // it ends
		}
	}
}

// TestListPartial asks a server that has protobuf, and one that breaks off: the answer is asked for again, and each object is listed once.
func TestListPartial(t *testing.T) {
	list := &corev1.PodList{Items: make([]corev1.Pod, 3)}
	for i := range list.Items {
		list.Items[i] = corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", i)}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	}
	answer := listInProtobuf(t, list)
	attempts := 0
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/pods" {
			_, _ = w.Write([]byte(map[string]string{"/api": core, "/apis": groups}[r.URL.Path]))
			return
		}
		if accept := r.Header.Get("Accept"); accept != "application/vnd.kubernetes.protobuf,application/json" {
			t.Errorf("asked for %q", accept)
		}
		if encoding := r.Header.Get("Accept-Encoding"); encoding != "identity" {
			t.Errorf("accepts %q: the server would compress the answer", encoding)
		}
		w.Header().Set("Content-Type", protobuf)
		w.Header().Set("Content-Length", fmt.Sprint(len(answer)))
		if attempts++; attempts == 1 {
			_, _ = w.Write(answer[:len(answer)/2])
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write(answer)
	})
	var names []string
	for pod, err := range c.ListPartial(t.Context(), PodKind, "", metav1.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
		names = append(names, pod.GroupVersionKind().String()+" "+pod.GetName()+" "+phase)
	}
	if got := strings.Join(names, ", "); got != "/v1, Kind=Pod p0 Running, /v1, Kind=Pod p1 Running, /v1, Kind=Pod p2 Running" || attempts != 2 {
		t.Errorf("%s in %d attempts", got, attempts)
	}
}

// TestGetMetadataInProtobuf: metadata of one object is the same as in JSON, except the fields of its managers.
func TestGetMetadataInProtobuf(t *testing.T) {
	object := metav1.PartialObjectMetadata{}
	fill(reflect.ValueOf(&object.ObjectMeta).Elem(), 0)
	answer := listInProtobuf(t, &object) // in the same envelope
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/namespaces/shop/pods/a" {
			_, _ = w.Write([]byte(map[string]string{"/api": core, "/apis": groups}[r.URL.Path]))
			return
		}
		_, _ = w.Write(answer)
	})
	got, err := c.GetMetadata(t.Context(), PodKind, "shop", "a")
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err = kubejson.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(project(want, onlyHeader), project(got.Object, onlyHeader)); diff != "" || got.GroupVersionKind() != PodKind {
		t.Errorf("%s: %s", got.GroupVersionKind(), diff)
	}
}

// BenchmarkReadPods reads the parts of a thousand pods.
func BenchmarkReadPods(b *testing.B) {
	list := &corev1.PodList{Items: make([]corev1.Pod, 1000)}
	for i := range list.Items {
		fill(reflect.ValueOf(&list.Items[i].ObjectMeta).Elem(), 0)
		list.Items[i].Spec.Containers = []corev1.Container{{Name: "a", Image: "image", Command: []string{"a", "b"}}}
		list.Items[i].Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	}
	raw, err := list.Marshal()
	if err != nil {
		b.Fatal(err)
	}
	answer, err := (&runtime.Unknown{Raw: raw}).Marshal()
	if err != nil {
		b.Fatal(err)
	}
	answer = append([]byte(protobufMagic), answer...)
	b.SetBytes(int64(len(answer)))
	b.ReportAllocs()
	for b.Loop() {
		var page unstructured.UnstructuredList
		if err := readPage(&page, bytes.NewReader(answer), partial(PodKind)); err != nil || len(page.Items) != 1000 {
			b.Fatal(err)
		}
	}
}
