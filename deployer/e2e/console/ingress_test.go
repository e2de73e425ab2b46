package console_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/console"
	"github.com/solutionctl/solutionctl/deployer/console/session"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
)

// TestBehindIngress runs two replicas below a path of a shared host, behind TLS. A browser stays at one replica as long as it exists, and
// continues at the other without another login. All its requests are below the path.
func TestBehindIngress(t *testing.T) {
	bed := deployertest.New(t)
	bed.Activated("shop", "1.0.0", deployertest.Content{})
	kubeconfig := bed.Server.Kubeconfig(t)
	var replicas [2]*console.Console
	var at atomic.Int64
	var elsewhere atomic.Pointer[string]
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/solutions") {
			elsewhere.Store(&r.URL.Path)
		}
		replicas[at.Load()].ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	keys, err := session.ParseKeys([]byte(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))))
	if err != nil {
		t.Fatal(err)
	}
	for i := range replicas {
		ctx, end := context.WithCancel(context.WithoutCancel(t.Context()))
		replicas[i], err = console.New(ctx, console.Options{
			Connect: func(token session.Token) (*cluster.Cluster, error) {
				return cluster.Connect(cluster.Options{Kubeconfig: kubeconfig, Token: token, Now: time.Now})
			},
			Origin: server.URL + "/solutions", Tokens: true, Keys: func() session.Keys { return keys }, Exports: t.TempDir(), Version: "1.0.0-test", Host: "here", Now: time.Now,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { end(); replicas[i].Wait() })
	}
	b := open(t)
	b.do(chromedp.Navigate(server.URL + "/solutions"))
	b.fill("Token", "janes")
	b.press("button", "Log in")
	b.find("heading", "Solutions and environments")
	b.press("link", "Environments")
	b.press("link", deployertest.Environment)
	b.press("link", "Add a Solution")
	b.find("heading", "Add shop 1.0.0 to environment "+deployertest.Environment)
	at.Store(1) // the first one is gone
	b.applies("Add shop 1.0.0 to environment "+deployertest.Environment, "Add")
	if names := bed.Server.Names("Deployment"); !slices.Equal(names, []string{deployertest.Environment + "/shop-operator"}) {
		t.Errorf("deployed is %q", names)
	}
	b.press("button", "Log out")
	b.find("heading", "Log in")
	if path := elsewhere.Load(); path != nil {
		t.Errorf("the browser asks for %s", *path)
	}
}
