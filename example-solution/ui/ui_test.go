package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/solutionctl/example-solution/api/v1alpha1"
)

// api answers as the Kubernetes API does for the Websites of one namespace.
type api struct {
	list    v1alpha1.WebsiteList
	refuse  *metav1.Status // answer to a creation, when it is to fail
	created []v1alpha1.Website
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/apis/example.solutionctl.io/v1alpha1/namespaces/shop/websites" || r.Header.Get("Authorization") != "Bearer secret" {
		http.Error(w, r.URL.Path, http.StatusForbidden)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	answer := any(a.list)
	if r.Method == http.MethodPost {
		var site v1alpha1.Website
		if err := json.NewDecoder(r.Body).Decode(&site); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer = site
		if a.refuse != nil {
			w.WriteHeader(int(a.refuse.Code))
			answer = a.refuse
		} else {
			a.created = append(a.created, site)
		}
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// start returns the user interface of a namespace with two Websites.
func start(t *testing.T) (*api, http.Handler) {
	t.Helper()
	a := &api{list: v1alpha1.WebsiteList{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "WebsiteList"},
		Items: []v1alpha1.Website{
			{
				ObjectMeta: metav1.ObjectMeta{Name: "tea"},
				Spec:       v1alpha1.WebsiteSpec{Title: "Tea & <Cake>"},
				Status: v1alpha1.WebsiteStatus{
					Version: "1.0.0", ReadyReplicas: 1, URL: "http://tea-website.shop.svc",
					Conditions: []metav1.Condition{{Type: v1alpha1.Ready, Status: metav1.ConditionTrue, Reason: "Running", Message: "all well"}},
				},
			},
			{ObjectMeta: metav1.ObjectMeta{Name: "new"}},
		},
	}}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	websites, err := NewWebsites(&rest.Config{Host: server.URL, BearerToken: "secret"}, "shop")
	if err != nil {
		t.Fatal(err)
	}
	return a, Handler(websites)
}

func do(t *testing.T, h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func form(t *testing.T, values url.Values) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(values.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return r
}

var coffee = url.Values{"name": {"coffee"}, "title": {"Coffee"}, "message": {"hot"}, "theme": {"Dark"}}

func TestList(t *testing.T) {
	_, h := start(t)
	w := do(t, h, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	if w.Code != http.StatusOK {
		t.Errorf("got %d", w.Code)
	}
	for _, want := range []string{
		"in shop", "<td>tea<td>Tea &amp; &lt;Cake&gt;<td>1.0.0<td>1 of 1<td title=\"all well\">Running<td>http://tea-website.shop.svc",
		"<td>new<td><td><td>0 of 1<td title=\"\">Pending",
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("page lacks %q:\n%s", want, w.Body)
		}
	}
}

func TestEmptyList(t *testing.T) {
	a, h := start(t)
	a.list.Items = nil
	w := do(t, h, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "There are none yet.") {
		t.Errorf("got %d:\n%s", w.Code, w.Body)
	}
}

func TestCreate(t *testing.T) {
	a, h := start(t)
	w := do(t, h, form(t, coffee))
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "./" {
		t.Errorf("got %d to %q", w.Code, w.Header().Get("Location"))
	}
	want := []v1alpha1.Website{{
		TypeMeta:   metav1.TypeMeta{APIVersion: "example.solutionctl.io/v1alpha1", Kind: "Website"},
		ObjectMeta: metav1.ObjectMeta{Name: "coffee"},
		Spec:       v1alpha1.WebsiteSpec{Title: "Coffee", Message: "hot", Theme: v1alpha1.Dark},
	}}
	if diff := cmp.Diff(a.created, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

// TestCreateRefused shows what the Kubernetes API said, with its status, above a page that still works.
func TestCreateRefused(t *testing.T) {
	a, h := start(t)
	a.refuse = &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: http.StatusConflict, Reason: metav1.StatusReasonAlreadyExists,
		Message: `websites "coffee" already exists`,
	}
	w := do(t, h, form(t, coffee))
	if w.Code != http.StatusConflict {
		t.Errorf("got %d, want %d", w.Code, http.StatusConflict)
	}
	for _, want := range []string{"websites &#34;coffee&#34; already exists", "<td>tea<td>"} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("page lacks %q:\n%s", want, w.Body)
		}
	}
}

func TestCreateFromAnotherSite(t *testing.T) {
	a, h := start(t)
	r := form(t, coffee)
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	if w := do(t, h, r); w.Code != http.StatusForbidden || len(a.created) != 0 {
		t.Errorf("got %d and %d websites", w.Code, len(a.created))
	}
}

func TestClusterUnreachable(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	websites, err := NewWebsites(&rest.Config{Host: server.URL}, "shop")
	if err != nil {
		t.Fatal(err)
	}
	w := do(t, Handler(websites), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	if w.Code != http.StatusBadGateway || !strings.Contains(w.Body.String(), "connection refused") {
		t.Errorf("got %d:\n%s", w.Code, w.Body)
	}
}

func TestSecurityHeaders(t *testing.T) {
	_, h := start(t)
	for _, path := range []string{"/", "/style.css", "/page.html"} {
		w := do(t, h, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if !strings.HasPrefix(w.Header().Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: got %v", path, w.Header())
		}
		if want := map[string]int{"/": 200, "/style.css": 200, "/page.html": 404}[path]; w.Code != want {
			t.Errorf("%s: got %d, want %d", path, w.Code, want)
		}
	}
}

func TestRunNeedsANamespaceAndACluster(t *testing.T) {
	if err := run(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "POD_NAMESPACE") {
		t.Errorf("got %v", err)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if err := run(t.Context(), "shop"); err == nil || !strings.Contains(err.Error(), "in-cluster") {
		t.Errorf("got %v", err)
	}
}
