package console_test

import (
	"context"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/deployer/console"
	"github.com/solutionctl/solutionctl/deployer/console/session"
	"github.com/solutionctl/solutionctl/deployer/deployertest"
	"github.com/solutionctl/solutionctl/deployer/e2e/testcluster"
)

// serve runs a console for a cluster until the test ends.
func serve(t *testing.T, kubeconfig string) *console.Console {
	t.Helper()
	ctx, end := context.WithCancel(context.WithoutCancel(t.Context()))
	ready, served := make(chan *console.Console, 1), make(chan error, 1)
	go func() {
		_, err := console.Serve(ctx, console.ServeOptions{
			Options: console.Options{
				Connect: func(session.Token) (*cluster.Cluster, error) {
					return cluster.Connect(cluster.Options{Kubeconfig: kubeconfig, Now: time.Now})
				},
				Links: true, Exports: t.TempDir(), Version: "1.0.0-test", Host: "here", Now: time.Now,
			},
			Listen: "127.0.0.1:0", Errors: io.Discard, Ready: func(c *console.Console) { ready <- c },
		})
		served <- err
	}()
	t.Cleanup(func() {
		end()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	select {
	case c := <-ready:
		return c
	case err := <-served:
		t.Fatal(err)
		return nil
	}
}

// TestLife is the life of a Solution by mouse, and again by keyboard alone, from the link to the end of the session, on a cluster in
// memory: what the verbs do to a real one is for their own tests.
func TestLife(t *testing.T) {
	for _, hand := range []string{"mouse", "keyboard"} {
		t.Run(hand, func(t *testing.T) {
			if hand == "mouse" {
				testcluster.Long(t, "TestLife/keyboard and TestReal/life, by mouse")
			}
			testLife(t, hand == "keyboard")
		})
	}
}

func testLife(t *testing.T, keyboard bool) {
	t.Helper()
	bed := deployertest.New(t)
	for _, version := range []string{"1.9.0", "1.10.0"} {
		bed.Imported("shop", version, deployertest.Content{})
	}
	b := open(t)
	b.keyboard = keyboard
	c := serve(t, bed.Server.Kubeconfig(t))
	b.follows(c)
	b.find("heading", "First steps")
	b.press("link", "Solutions")
	b.press("link", "shop")
	b.press("link", "Activate 1.9.0")
	b.applies("Activate shop 1.9.0", "Activate")

	b.press("link", "Environments")
	b.press("link", "New environment")
	b.fill("Name", "production")
	b.press("button", "Create")
	b.find("heading", "production")

	b.press("link", "Add a Solution")
	b.applies("Add shop 1.9.0 to environment production", "Add")
	b.find("heading", "shop 1.9.0 runs in production")

	b.do(chromedp.Navigate(c.Origin + "/solutions/shop"))
	b.press("link", "Activate 1.10.0")
	b.applies("Activate shop 1.10.0", "Activate")
	b.press("link", "Upgrade in production")
	b.applies("Upgrade to shop 1.10.0 in environment production", "Upgrade")
	if names := bed.Server.Names("Deployment"); !slices.Equal(names, []string{"production/shop-operator"}) {
		t.Errorf("deployed is %q", names)
	}

	b.press("link", "Open production")
	b.press("link", "Remove")
	b.applies("Remove shop from environment production", "Remove")

	if names := bed.Server.Names("Deployment"); len(names) > 0 {
		t.Errorf("deployed is %q", names)
	}

	bed.Server.Put(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: notes, namespace: production}}")
	b.do(chromedp.Navigate(c.Origin + "/environments/production"))
	b.press("link", "Delete")
	// Objects outside the Solution are deleted only if that is confirmed in words and with the name.
	b.find("heading", "Delete environment production")
	b.fill("Type production to confirm", "production")
	b.cannot("Delete the environment")
	b.press("checkbox", "Also delete objects that are not part of a Solution")
	b.press("button", "Show the plan")
	b.arrives("delete-others=true")
	b.fill("Type production to confirm", "production")
	b.applies("Delete environment production", "Delete the environment")

	if bed.Server.Object("Namespace", "", "production") != nil {
		t.Error("the environment is still there")
	}

	b.press("button", "Log out")
	b.find("heading", "Log in")
	b.do(chromedp.Navigate(c.Origin + "/"))
	b.find("heading", "Log in")
}
