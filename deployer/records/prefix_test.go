package records_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
)

// TestAskPushedRegistry asks a registry that images were pushed to: it has them below a path, and gives a token to anyone, or to none.
func TestAskPushedRegistry(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	imports := []schema.Import{{Name: "demo", Version: "1.0.0", Images: map[string]string{"ui:1.0.0": digest}}, {Name: "demo", Version: "2.0.0", Images: map[string]string{"ui:2.0.0": digest}}}
	for _, public := range []bool{true, false} {
		var address string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path == "/token" && public:
				fmt.Fprint(w, `{"token":"anyone"}`)
			case r.URL.Path == "/token":
				w.WriteHeader(http.StatusUnauthorized)
			case r.URL.Path == "/v2/", r.Header.Get("Authorization") != "Bearer anyone":
				w.Header().Set("WWW-Authenticate", `Bearer realm="`+address+`/token",service="registry"`)
				w.WriteHeader(http.StatusUnauthorized)
			case r.URL.Path != "/v2/site/solutions/demo-1.0.0/ui/manifests/"+digest:
				w.WriteHeader(http.StatusNotFound)
			}
		}))
		defer server.Close()
		address = server.URL
		registry := &schema.ClusterRegistry{Mode: schema.RegistryExternal, Host: schema.RegistryHostOwn, Endpoints: []string{server.URL + "/site/solutions"}}
		answer := records.AskRegistry(t.Context(), registry, imports, time.Minute)[0]
		if public && (answer.Err != nil || strings.Join(answer.Missing, " ") != "demo-2.0.0") || !public && !answer.NeedsLogin() {
			t.Errorf("public %v: %+v", public, answer)
		}
	}
}

// TestModeFollowsEndpoints adds and removes a registry that images were pushed to.
func TestModeFollowsEndpoints(t *testing.T) {
	own := schema.ClusterRegistry{Mode: schema.RegistryOwn, Host: schema.RegistryHostOwn, Endpoints: []string{"http://10.0.0.1:5000"}}
	pushed := schema.ClusterRegistry{Mode: schema.RegistryExternal, Host: schema.RegistryHostOwn, Endpoints: []string{"http://10.0.0.2/site"}}
	both, err := records.WithEndpoints(&own, pushed, false)
	if err != nil || both.Mode != schema.RegistryExternal || len(both.Endpoints) != 2 {
		t.Fatalf("%+v, %v", both, err)
	}
	one, err := records.WithoutEndpoints(both, pushed.Endpoints)
	if err != nil || one.Mode != schema.RegistryOwn || len(one.Endpoints) != 1 {
		t.Errorf("%+v, %v", one, err)
	}
	metalk8s := schema.ClusterRegistry{Mode: schema.RegistryMetalK8s, Host: schema.RegistryHostMetalK8s}
	if _, err = records.WithEndpoints(&metalk8s, pushed, false); err == nil {
		t.Error("a cluster of MetalK8s takes another registry")
	}
}
