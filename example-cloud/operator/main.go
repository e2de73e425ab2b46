// Cloud-operator is every operator of the cloud: the one that does everything, that of a service, or that of a part of a service.
// The name of its Deployment, OPERATOR_NAME, selects one; kinds.go has what each does.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// version is set when the image is built.
var version = "0.0.0-dev"

func main() {
	if err := run(ctrl.SetupSignalHandler(), os.Args[1:], os.Getenv); err != nil {
		fmt.Fprintln(os.Stderr, "cloud-operator: error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, getenv func(string) string) error {
	flags := flag.NewFlagSet("cloud-operator", flag.ContinueOnError)
	config := flags.String("config", "/etc/config/operator.yaml", "file with the OperatorConfig")
	if err := flags.Parse(args); err != nil {
		return err
	}
	namespace, name := getenv("WATCH_NAMESPACE"), getenv("OPERATOR_NAME")
	if namespace == "" || name == "" {
		return errors.New("the environment variables WATCH_NAMESPACE and OPERATOR_NAME must be set")
	}
	image, err := serviceImage(*config, version)
	if err != nil {
		return err
	}
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, nil)))
	kubeconfig, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err = clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	m, err := ctrl.NewManager(kubeconfig, ctrl.Options{
		Scheme:  scheme,
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		Metrics: server.Options{BindAddress: "0"},
		// During an upgrade two operators of a name are there for a moment; only one may act.
		LeaderElection: true, LeaderElectionID: name, LeaderElectionNamespace: namespace, LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return err
	}
	for _, k := range duties(name) {
		if err := (&reconciler{client: m.GetClient(), kind: k, image: image, owner: name}).setUp(m); err != nil {
			return err
		}
	}
	return m.Start(ctx)
}
