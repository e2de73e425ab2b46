//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/solutionctl/solutionctl/deployer/cluster"
)

// installer deploys the ten components into an existing namespace, and returns when all of them are ready. Before, nothing of them is on
// the node, not even images.
type installer struct {
	name string
	run  func(ctx context.Context, p *platform, namespace string) (time.Duration, error)
	ours bool // the namespace is an environment
}

// measureNode prints how long ten components take until they are ready on a node that runs containers.
func measureNode(ctx context.Context, s settings) (err error) {
	p, err := preparePlatform(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.end()) }()
	l := &loaderRuns{platform: p}
	contestants := installersOf(l, s)
	times := make([][]float64, len(contestants))
	var lasted time.Duration
	for round := range s.rounds {
		if round > 0 && s.isLate(lasted) {
			break
		}
		begun := time.Now()
		for i, c := range contestants {
			took, failure := p.inNamespace(ctx, c, fmt.Sprintf("round-%d-%d", round, i))
			if failure != nil {
				return fmt.Errorf("%s: %w", c.name, failure)
			}
			fmt.Fprintf(os.Stderr, "  round %d, %s: %.1f s\n", round+1, c.name, took.Seconds())
			times[i] = append(times[i], took.Seconds())
		}
		lasted = time.Since(begun)
	}
	fmt.Printf("\n%d components of four levels, whose programs work %s, %s in the longest chain; medians of %d rounds\n\n",
		len(parts), inSequence(), critical(), len(times[0]))
	fmt.Println("| | created to ready | to the first | over the longest chain |\n|---|---|---|---|")
	for i, c := range contestants {
		fmt.Printf("| %s | %.1f s | %.2f | %+.1f s |\n", c.name, median(times[i]), median(ratios(times[i], times[0])), median(times[i])-critical().Seconds())
	}
	fmt.Println()
	if err = l.afterwards(ctx); err != nil {
		return err
	}
	l.print()
	fmt.Printf("\nload at the end %s\n", load())
	return nil
}

func installersOf(l *loaderRuns, s settings) []installer {
	ours := []installer{
		{"solutionctl deploy add", deployAdd, true},
		{"the loader, its Job created to everything ready", l.load, true},
		{"the loader, killed once in its pod when half is there", l.killed, true},
	}
	ours = append(ours, installer{"the same objects when what they need is ready, and nothing else (floor)", writeParts, false})
	if s.alone {
		return ours
	}
	list := append([]installer{{"helm install --wait, one after the other", helmInstall, false}}, ours...)
	if s.helmfile != "" {
		list = append(list, installer{"helmfile sync " + s.helmfile, helmfileSync, false})
	}
	return append(list,
		installer{"kubectl apply -k --server-side, a directory after the other, programs that wait for each other", applyDirectories("yes"), false},
		installer{"the same, programs that end when they miss another one for three seconds", applyDirectories("no"), false})
}

// inNamespace lets a contestant work in a namespace of its own, and removes everything afterwards.
func (p *platform) inNamespace(ctx context.Context, c installer, namespace string) (time.Duration, error) {
	var err error
	if c.ours {
		err = p.solutionctl(ctx, "deploy", "env", "create", namespace)
	} else {
		n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		_, err = p.Client().CoreV1().Namespaces().Create(ctx, n, metav1.CreateOptions{})
	}
	if err == nil {
		err = p.settled(ctx, namespace)
	}
	if err != nil {
		return 0, err
	}
	took, err := c.run(ctx, p, namespace)
	if err == nil {
		err = p.allReady(ctx, namespace)
	}
	if err != nil {
		return 0, err
	}
	return took, p.clean(ctx, c, namespace)
}

// settled waits for what controllers make in every namespace.
func (p *platform) settled(ctx context.Context, namespace string) error {
	return until(ctx, func() error {
		_, err := p.Client().CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		if err == nil {
			_, err = p.Client().CoreV1().ConfigMaps(namespace).Get(ctx, "kube-root-ca.crt", metav1.GetOptions{})
		}
		return err
	})
}

// allReady checks every contestant: a contestant that reports everything ready must be right.
func (p *platform) allReady(ctx context.Context, namespace string) error {
	list, err := p.Client().AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if len(list.Items) != len(parts) {
		return fmt.Errorf("there are %d Deployments", len(list.Items))
	}
	for i := range list.Items {
		if list.Items[i].Status.ReadyReplicas != 1 {
			return fmt.Errorf("not ready: Deployment %s", list.Items[i].Name)
		}
	}
	return nil
}

// clean removes the namespace, whatever was recorded of it, and all images from the node.
func (p *platform) clean(ctx context.Context, c installer, namespace string) error {
	if c.ours {
		if err := p.solutionctl(ctx, "deploy", "remove", namespace, "platform"); err != nil {
			return err
		}
		if err := p.solutionctl(ctx, "deploy", "env", "delete", namespace, "--yes"); err != nil {
			return err
		}
	}
	if err := p.Client().CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if err := until(ctx, func() error {
		_, err := p.Client().CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("the namespace is still there"))
	}); err != nil {
		return err
	}
	return p.ForgetImages()
}

func deployAdd(ctx context.Context, p *platform, namespace string) (time.Duration, error) {
	return timed(func() error { return p.solutionctl(ctx, "deploy", "add", namespace, "platform") })
}

// writeParts writes the objects of each component when those that it needs are ready, without a plan, a record or a program that starts.
func writeParts(ctx context.Context, p *platform, namespace string) (time.Duration, error) {
	c, err := cluster.Connect(cluster.Options{Kubeconfig: p.Kubeconfig, Now: time.Now})
	if err != nil {
		return 0, err
	}
	ordered := make([]orderedPart, len(parts))
	for i, one := range parts {
		all := documents(one.objects(served(one), "no"))
		last := len(all) - 1
		ordered[i] = orderedPart{one.name, one.needs, all[:last], all[last:]}
	}
	return timed(func() error { return writeInOrder(ctx, c, namespace, ordered) })
}

func helmInstall(ctx context.Context, p *platform, namespace string) (time.Duration, error) {
	return timed(func() error {
		for _, one := range parts {
			chart := p.path("project", "charts", one.name+".tgz")
			if err := p.run(ctx, p.tool("helm"), "install", "--wait", "--namespace", namespace, "--set", "image="+served(one), one.name, chart); err != nil {
				return err
			}
		}
		return nil
	})
}

func helmfileSync(ctx context.Context, p *platform, namespace string) (time.Duration, error) {
	return timed(func() error {
		err := p.run(ctx, p.tool("helmfile"), "--helm-binary", p.tool("helm"), "--namespace", namespace, "--file", p.path("helmfile.yaml"), "sync")
		return err
	})
}

// applyDirectories deploys as MicroShift does from its directories, with programs that are patient or not. It waits for nothing; the
// benchmark waits at the end.
func applyDirectories(patient string) func(ctx context.Context, p *platform, namespace string) (time.Duration, error) {
	return func(ctx context.Context, p *platform, namespace string) (time.Duration, error) {
		dirs, err := filepath.Glob(p.path("kustomize", patient, "*"))
		if err != nil {
			return 0, err
		}
		slices.Sort(dirs)
		return timed(func() error {
			for _, dir := range dirs {
				if err := p.run(ctx, p.tool("kubectl"), "apply", "--server-side", "--force-conflicts", "--namespace", namespace, "-k", dir); err != nil {
					return err
				}
			}
			err := p.run(ctx, p.tool("kubectl"), "wait", "--for", "condition=Available", "--namespace", namespace, "--timeout", "5m", "deployment", "--all")
			return err
		})
	}
}

func (p *platform) tool(name string) string { return filepath.Join(p.tools, name) }

func timed(do func() error) (time.Duration, error) {
	started := time.Now()
	err := do()
	return time.Since(started), err
}
