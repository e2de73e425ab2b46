package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/solutionctl/example-solution/api"
)

// apiServer answers as the Kubernetes API does for the Websites of one namespace.
type apiServer struct {
	list    api.WebsiteList
	banners api.BannerList
	refuse  *metav1.Status // answer to a creation, when it is to fail
	created []api.Website
}

func (a *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	resource, ok := strings.CutPrefix(r.URL.Path, "/apis/"+api.GroupVersion.String()+"/namespaces/shop/")
	if !ok || resource != "websites" && (resource != "banners" || !api.HasBanners) || r.Header.Get("Authorization") != "Bearer secret" {
		http.Error(w, r.URL.Path, http.StatusForbidden)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	answer := any(a.list)
	if resource == "banners" {
		answer = a.banners
	}
	if r.Method == http.MethodPost {
		var site api.Website
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
func start(t *testing.T) (*apiServer, http.Handler) {
	t.Helper()
	a := &apiServer{list: api.WebsiteList{
		TypeMeta: metav1.TypeMeta{APIVersion: api.GroupVersion.String(), Kind: "WebsiteList"},
		Items: []api.Website{
			{
				ObjectMeta: metav1.ObjectMeta{Name: "tea"},
				Spec:       api.WebsiteSpec{Title: "Tea & <Cake>"},
				Status: api.WebsiteStatus{
					Version: "1.0.0", ReadyReplicas: 1, URL: "http://tea-website.shop.svc",
					Conditions: []metav1.Condition{{Type: api.Ready, Status: metav1.ConditionTrue, Reason: "Running", Message: "all well"}},
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
	return a, Handler(websites, false)
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

// TestBanners: a release that has banners shows them, and the text of each Website.
func TestBanners(t *testing.T) {
	a, h := start(t)
	a.banners.TypeMeta = metav1.TypeMeta{APIVersion: api.GroupVersion.String(), Kind: "BannerList"}
	a.banners.Items = make([]api.Banner, 1)
	a.banners.Items[0].Spec.Text = "closed <today>"
	*api.Text(&a.list.Items[0].Spec) = "open daily"
	page := do(t, h, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)).Body.String()
	for _, text := range []string{"closed &lt;today&gt;", "open daily"} {
		if strings.Contains(page, text) != api.HasBanners {
			t.Errorf("%q: shown should be %v:\n%s", text, api.HasBanners, page)
		}
	}
	if !strings.Contains(page, "<label>"+api.TextLabel+" <input name=\"message\"") {
		t.Errorf("no field for the %s:\n%s", api.TextLabel, page)
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
	spec := api.WebsiteSpec{Title: "Coffee", Theme: api.Dark}
	*api.Text(&spec) = "hot"
	want := []api.Website{{
		TypeMeta:   metav1.TypeMeta{APIVersion: api.GroupVersion.String(), Kind: "Website"},
		ObjectMeta: metav1.ObjectMeta{Name: "coffee"},
		Spec:       spec,
	}}
	if diff := cmp.Diff(a.created, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

// TestCreateRefused checks that the error of the Kubernetes API is shown, with its status, above a page that still works.
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

// TestLogin checks that with a login, the program has no rights of its own that a visitor could use.
func TestLogin(t *testing.T) {
	var sent []string
	a, _ := start(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = append(sent, r.Header.Get("Authorization"))
		if r.Header.Get("Authorization") == "Bearer of-jane" {
			r.Header.Set("Authorization", "Bearer secret") // jane may do this
		}
		a.ServeHTTP(w, r)
	}))
	defer server.Close()
	websites, err := NewWebsites(&rest.Config{Host: server.URL, BearerToken: "secret"}, "shop")
	if err != nil {
		t.Fatal(err)
	}
	h := Handler(websites, true)
	for authorization, want := range map[string]int{"": 401, "Bearer ": 401, "Basic c2VjcmV0": 401, "Bearer of-joe": 403, "Bearer of-jane": 200} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Header.Set("Authorization", authorization)
		if w := do(t, h, r); w.Code != want || (w.Code == 200) != strings.Contains(w.Body.String(), "<td>tea<td>") {
			t.Errorf("%q: got %d, want %d", authorization, w.Code, want)
		}
	}
	if w := do(t, h, form(t, coffee)); w.Code != 401 || len(a.created) != 0 {
		t.Errorf("got %d and %d websites", w.Code, len(a.created))
	}
	if slices.Contains(sent, "Bearer secret") || !slices.Contains(sent, "Bearer of-joe") {
		t.Errorf("requests were sent with %q", sent)
	}
	if err := run(t.Context(), "shop", "tokn"); err == nil || !strings.Contains(err.Error(), "LOGIN") {
		t.Errorf("got %v", err)
	}
}

func TestClusterUnreachable(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	websites, err := NewWebsites(&rest.Config{Host: server.URL}, "shop")
	if err != nil {
		t.Fatal(err)
	}
	w := do(t, Handler(websites, false), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
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
	if err := run(t.Context(), "", ""); err == nil || !strings.Contains(err.Error(), "POD_NAMESPACE") {
		t.Errorf("got %v", err)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if err := run(t.Context(), "shop", ""); err == nil || !strings.Contains(err.Error(), "in-cluster") {
		t.Errorf("got %v", err)
	}
}
