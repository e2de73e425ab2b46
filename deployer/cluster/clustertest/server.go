package clustertest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// User is the user name of all requests.
const User = "jane@example.com"

// Server is an API server in memory. Its methods may be called by several goroutines at once.
type Server struct {
	URL string

	// Answer may answer a request itself: with an error, or with nothing more to do (true). Set it before the first request
	// of interest; it is called without the server's lock.
	Answer func(w http.ResponseWriter, r *http.Request) bool
	// May reports the permissions of the user; nil allows everything.
	May func(authorization.ResourceAttributes) bool
	// OthersMay reports the permissions of other users, by name; nil allows everything.
	OthersMay func(user string, a authorization.ResourceAttributes) bool

	mu       sync.Mutex
	objects  map[schema.GroupResource]map[string]*unstructured.Unstructured // by namespace/name
	revision int64
	events   []event
	changed  chan struct{} // is closed when there is another event
	stalled  []string      // kinds whose objects do not become ready
	requests []string
}

// Start runs a server until the test ends, with the objects of some YAML documents.
func Start(tb testing.TB, documents ...string) *Server {
	tb.Helper()
	s := &Server{objects: map[schema.GroupResource]map[string]*unstructured.Unstructured{}, changed: make(chan struct{})}
	http := httptest.NewServer(s)
	tb.Cleanup(func() {
		http.CloseClientConnections() // watches last
		http.Close()
	})
	s.URL = http.URL
	s.Put(tb, "{apiVersion: v1, kind: Namespace, metadata: {name: default}}")
	for _, document := range documents {
		s.Put(tb, document)
	}
	return s
}

// Kubeconfig is a file that leads to the server.
func (s *Server) Kubeconfig(tb testing.TB) string {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: test, clusters: [{name: test, cluster: {server: %q}}],
users: [{name: test, user: {token: secret}}], contexts: [{name: test, context: {cluster: test, user: test}}]}`, s.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	return file
}

// Put creates or replaces the objects of YAML documents, as another user than the tool.
func (s *Server) Put(tb testing.TB, documents string) {
	tb.Helper()
	decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(documents), len(documents)+1)
	for {
		var object unstructured.Unstructured // its own decoder keeps whole numbers whole
		if err := decoder.Decode(&object); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			tb.Fatalf("%v in\n%s", err, documents)
		}
		s.mu.Lock()
		k, found := s.kindOf(object.GroupVersionKind())
		var err error
		if found {
			w := write{Server: s, kind: k, namespace: object.GetNamespace(), name: object.GetName(), manager: controller}
			_, err = w.put(&object)
		}
		s.mu.Unlock()
		if !found || err != nil {
			tb.Fatalf("%s %s: known %t, %v", object.GetKind(), object.GetName(), found, err)
		}
	}
}

// Update writes an object that was read before, as a controller does; false if it was changed or replaced meanwhile.
func (s *Server) Update(tb testing.TB, object *unstructured.Unstructured) bool {
	tb.Helper()
	text, err := object.MarshalJSON()
	if err != nil {
		tb.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k, found := s.kindOf(object.GroupVersionKind())
	if !found {
		tb.Fatalf("there is no kind %s", object.GroupVersionKind())
	}
	w := write{Server: s, kind: k, namespace: object.GetNamespace(), name: object.GetName(), manager: controller}
	_, err = w.update(text)
	return err == nil
}

// Object returns a stored object; nil if it does not exist. Kind is "ConfigMap", or "Pizza.example.com" if two groups have the kind.
func (s *Server) Object(kind, namespace, name string) *unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.kinds() {
		if k.Kind == kind || k.Kind+"."+k.Group == kind {
			if object := s.objects[k.groupResource()][namespace+"/"+name]; object != nil {
				return object.DeepCopy()
			}
		}
	}
	return nil
}

// Names are all objects of a kind, as namespace/name, sorted.
func (s *Server) Names(kind string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for _, objects := range s.objects {
		for name, object := range objects {
			if object.GetKind() == kind {
				names = append(names, strings.TrimPrefix(name, "/"))
			}
		}
	}
	slices.Sort(names)
	return names
}

// Stall keeps objects of these kinds from becoming ready from now on. Those of other kinds that it kept before become ready.
func (s *Server) Stall(kinds ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.stalled
	s.stalled = kinds
	for resource, objects := range s.objects {
		for key, object := range objects {
			if slices.Contains(before, object.GetKind()) && !slices.Contains(kinds, object.GetKind()) {
				object = object.DeepCopy()
				settle(object)
				s.store(resource, key, object)
			}
		}
	}
}

// Requests returns the requests since the last call, as "PATCH /api/v1/namespaces/demo/secrets/a"; dry runs end in " (dry run)".
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	requests := s.requests
	s.requests = nil
	return requests
}

// ServeHTTP is the API.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.Answer != nil && s.Answer(w, r) {
		return
	}
	answer, err := s.serve(w, r)
	switch {
	case err != nil:
		fail(w, err)
	case answer != nil:
		if strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
			answer = metadataOf(answer)
		}
		respond(w, http.StatusOK, answer)
	}
}

// Fail answers a request with an error of the API, such as those that k8s.io/apimachinery/pkg/api/errors makes.
func Fail(w http.ResponseWriter, err *apierrors.StatusError) { fail(w, err) }

func fail(w http.ResponseWriter, err error) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		status = apierrors.NewBadRequest(err.Error())
	}
	answer := status.Status()
	answer.Kind, answer.APIVersion = "Status", "v1"
	respond(w, int(answer.Code), answer)
}

func respond(w http.ResponseWriter, code int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer) // the client may be gone
}

// serve answers everything that is not about objects, and leaves objects to the others. A nil answer was written already.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) (any, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	request := r.Method + " " + r.URL.Path
	if isDryRun(r, body) {
		request += " (dry run)"
	}
	s.requests = append(s.requests, request)
	switch r.URL.Path {
	case "/version":
		return map[string]string{"gitVersion": "v1.36.3", "major": "1", "minor": "36"}, nil
	case "/readyz", "/livez":
		return "ok", nil
	case "/api":
		return s.discover(true), nil
	case "/apis":
		return s.discover(false), nil
	case "/apis/authentication.k8s.io/v1/selfsubjectreviews":
		return authentication.SelfSubjectReview{Status: authentication.SelfSubjectReviewStatus{UserInfo: authentication.UserInfo{Username: User}}}, nil
	case "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews":
		var review authorization.SelfSubjectAccessReview
		err := json.Unmarshal(body, &review)
		review.Status.Allowed = err == nil && (s.May == nil || s.May(*review.Spec.ResourceAttributes))
		return review, err
	case "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews":
		return s.rules(body)
	case "/apis/authorization.k8s.io/v1/subjectaccessreviews":
		var review authorization.SubjectAccessReview
		err := json.Unmarshal(body, &review)
		review.Status.Allowed = err == nil && (s.OthersMay == nil || s.OthersMay(review.Spec.User, *review.Spec.ResourceAttributes))
		return review, err
	}
	return s.serveObjects(w, r, body)
}

// rules lists for a namespace the verbs and kinds that May allows there.
func (s *Server) rules(body []byte) (any, error) {
	var review authorization.SelfSubjectRulesReview
	if err := json.Unmarshal(body, &review); err != nil {
		return nil, err
	}
	for _, k := range s.kinds() {
		for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete"} {
			if s.May == nil || s.May(authorization.ResourceAttributes{Verb: verb, Group: k.Group, Version: "*", Resource: k.resource, Namespace: review.Spec.Namespace}) {
				review.Status.ResourceRules = append(review.Status.ResourceRules, authorization.ResourceRule{Verbs: []string{verb}, APIGroups: []string{k.Group}, Resources: []string{k.resource}})
			}
		}
	}
	return review, nil
}

func isDryRun(r *http.Request, body []byte) bool {
	var options metav1.DeleteOptions
	return r.URL.Query().Get("dryRun") != "" || r.Method == http.MethodDelete && json.Unmarshal(body, &options) == nil && len(options.DryRun) > 0
}

// target takes the path of a request apart: /apis/GROUP/VERSION/namespaces/NAMESPACE/RESOURCE/NAME/SUBRESOURCE.
func (s *Server) target(path string) (k kind, namespace, name, subresource string, err error) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if len(parts) > 0 && parts[0] == "api" {
		parts = slices.Insert(parts, 1, "")
	}
	unknown := apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{}, "", "404 page not found", 0, true)
	if len(parts) < 4 {
		return kind{}, "", "", "", unknown
	}
	version, rest := schema.GroupVersion{Group: parts[1], Version: parts[2]}, parts[3:]
	if rest[0] == "namespaces" && len(rest) > 2 && rest[2] != "status" && rest[2] != "finalize" {
		namespace, rest = rest[1], rest[2:]
	}
	rest = append(rest, "", "")
	for _, k := range s.kinds() {
		if k.GroupVersion() == version && k.resource == rest[0] {
			return k, namespace, rest[1], rest[2], nil
		}
	}
	return kind{}, "", "", "", unknown
}

func (s *Server) kindOf(gvk schema.GroupVersionKind) (kind, bool) {
	kinds := s.kinds()
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.GroupVersionKind == gvk })
	if i < 0 {
		return kind{}, false
	}
	return kinds[i], true
}

func (s *Server) serveObjects(w http.ResponseWriter, r *http.Request, body []byte) (any, error) {
	k, namespace, name, subresource, err := s.target(r.URL.Path)
	if err != nil {
		return nil, err
	}
	query := r.URL.Query()
	switch {
	case r.Method == http.MethodGet && subresource == "log":
		_, err := io.WriteString(w, "")
		return nil, err
	case r.Method == http.MethodGet && name != "":
		object := s.objects[k.groupResource()][namespace+"/"+name]
		if object == nil {
			return nil, apierrors.NewNotFound(k.groupResource(), name)
		}
		return as(object, k), nil
	case r.Method == http.MethodGet && query.Get("watch") != "":
		return nil, s.watch(w, r, k, namespace)
	case r.Method == http.MethodGet:
		return s.list(k, namespace, query)
	}
	wr := write{
		Server: s, kind: k, namespace: namespace, name: name, subresource: subresource,
		manager: query.Get("fieldManager"), force: query.Get("force") == "true", dryRun: isDryRun(r, body),
	}
	switch r.Method {
	case http.MethodPost:
		return wr.create(body)
	case http.MethodPut:
		return wr.update(body)
	case http.MethodPatch:
		return wr.patch(r.Header.Get("Content-Type"), body)
	case http.MethodDelete:
		return wr.delete(body)
	default:
		return nil, apierrors.NewMethodNotSupported(k.groupResource(), r.Method)
	}
}

// metadataOf reduces objects to their metadata, for clients that ask for no more.
func metadataOf(answer any) any {
	only := func(object *unstructured.Unstructured) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": object.Object["metadata"],
		}}
	}
	switch answer := answer.(type) {
	case *unstructured.Unstructured:
		return only(answer)
	case *unstructured.UnstructuredList:
		for i := range answer.Items {
			answer.Items[i] = *only(&answer.Items[i])
		}
		answer.SetAPIVersion("meta.k8s.io/v1")
		answer.SetKind("PartialObjectMetadataList")
	}
	return answer
}

// as is an object in the version of a kind, as a definition with the strategy None converts it.
func as(object *unstructured.Unstructured, k kind) *unstructured.Unstructured {
	object = object.DeepCopy()
	object.SetGroupVersionKind(k.GroupVersionKind)
	return object
}
