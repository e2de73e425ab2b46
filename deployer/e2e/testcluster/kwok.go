package testcluster

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

//go:embed kwok.yaml
var kwokStages []byte

// startFakeNodes adds the nodes of Options.FakeNodes and what pretends to be their kubelets.
func (c *Cluster) startFakeNodes(ctx context.Context) error {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("32"), corev1.ResourceMemory: resource.MustParse("256Gi"),
		corev1.ResourcePods: resource.MustParse("10000"), // of thousands of environments, on three nodes
	}
	nodes := c.client.CoreV1().Nodes()
	for i := range c.options.FakeNodes {
		_, err := nodes.Create(ctx, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name:        fmt.Sprintf("fake-%d", i),
				Labels:      map[string]string{corev1.LabelHostname: fmt.Sprintf("fake-%d", i), corev1.LabelOSStable: "linux", corev1.LabelArchStable: runtime.GOARCH, "type": "kwok"},
				Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
			},
			Status: corev1.NodeStatus{Allocatable: capacity, Capacity: capacity},
		}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	stages := filepath.Join(c.Dir, "kwok.yaml")
	if err := os.WriteFile(stages, c.stages(), 0o644); err != nil {
		return err
	}
	kubeconfig, err := c.KubeconfigFor(fakeKubelet, administrators)
	if err != nil {
		return err
	}
	err = c.runProgram("kwok", filepath.Join(c.bin.kwok, "kwok"),
		"--config="+stages, "--kubeconfig="+kubeconfig, "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake", "--node-lease-duration-seconds=0")
	if err != nil {
		return err
	}
	return await(ctx, "wait for the fake nodes", func(ctx context.Context) error {
		list, err := nodes.List(ctx, metav1.ListOptions{LabelSelector: "type=kwok"})
		if err != nil {
			return err
		}
		for _, node := range list.Items {
			if !isReady(node) {
				return errors.New(node.Name + " is not ready")
			}
		}
		return nil
	}, c.processes["kwok"])
}

func (c *Cluster) stages() []byte {
	if !c.options.ReadyAtOnce {
		return kwokStages
	}
	const ago = `{{ now | dateModify "-1m" | date "2006-01-02T15:04:05Z07:00" | quote }}`
	stages := kwokStages
	for _, field := range []string{"- {lastTransitionTime: ", "state: {running: {startedAt: "} {
		stages = bytes.ReplaceAll(stages, []byte(field+"{{ $now | Quote }}"), []byte(field+ago))
	}
	return stages
}

func isReady(node corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
