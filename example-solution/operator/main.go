// Example-solution-operator runs Websites in the namespace it is deployed in.
//
// It is started the way MetalK8s and solutionctl start every operator: with --config naming the OperatorConfig, and the
// environment variables WATCH_NAMESPACE and OPERATOR_NAME. It uses the rights of archive/operator/deploy/role.yaml, and
// no others: its caches, its lease and its objects stay in WATCH_NAMESPACE.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/solutionctl/example-solution/api"
	"github.com/solutionctl/example-solution/operator/config"
	"github.com/solutionctl/example-solution/operator/controller"
)

// version is set when the image is built.
var version = "0.0.0-dev"

func main() {
	ctx := ctrl.SetupSignalHandler()
	err := run(ctx, os.Args[1:], os.Getenv, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "example-solution-operator: error:", err)
		os.Exit(1)
	}
}

// settings are the flags and the environment of the operator.
type settings struct {
	configFile    string
	namespace     string
	name          string
	metricsListen string
	healthListen  string
}

func run(ctx context.Context, args []string, getenv func(string) string, log io.Writer) error {
	s, err := parse(args, getenv, log)
	if err != nil {
		return err
	}
	if _, err = config.Load(s.configFile); err != nil { // say so now, not at the first Website
		return err
	}
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewJSONHandler(log, nil)))
	kubeconfig, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	manager, err := newManager(kubeconfig, s)
	if err != nil {
		return err
	}
	ctrl.Log.Info("starting", "version", version, "namespace", s.namespace)
	return manager.Start(ctx)
}

func parse(args []string, getenv func(string) string, usage io.Writer) (settings, error) {
	s := settings{namespace: getenv("WATCH_NAMESPACE"), name: getenv("OPERATOR_NAME")}
	flags := flag.NewFlagSet("example-solution-operator", flag.ContinueOnError)
	flags.SetOutput(usage)
	flags.StringVar(&s.configFile, "config", "/etc/config/operator.yaml", "file with the OperatorConfig")
	flags.StringVar(&s.metricsListen, "metrics", fmt.Sprintf(":%d", controller.OperatorMetricsPort), "address that serves /metrics")
	flags.StringVar(&s.healthListen, "health", ":8081", "address that serves /healthz and /readyz")
	if err := flags.Parse(args); err != nil {
		return settings{}, err
	}
	if flags.NArg() > 0 {
		return settings{}, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if s.namespace == "" || s.name == "" {
		return settings{}, errors.New("the environment variables WATCH_NAMESPACE and OPERATOR_NAME must be set")
	}
	return s, nil
}

func newManager(kubeconfig *rest.Config, s settings) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), api.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	m, err := ctrl.NewManager(kubeconfig, ctrl.Options{
		Scheme:                 scheme,
		Cache:                  cache.Options{DefaultNamespaces: map[string]cache.Config{s.namespace: {}}},
		Metrics:                server.Options{BindAddress: s.metricsListen},
		HealthProbeBindAddress: s.healthListen,
		// During an upgrade two operators are there for a moment; only one may act.
		LeaderElection:                true,
		LeaderElectionID:              s.name,
		LeaderElectionNamespace:       s.namespace,
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return nil, err
	}
	websites := &controller.Reconciler{
		Client:  m.GetClient(),
		Version: version,
		Config:  func() (*config.Config, error) { return config.Load(s.configFile) },
	}
	return m, errors.Join(
		websites.SetupWithManager(m),
		m.Add(controller.MetricsService{Client: m.GetClient(), Namespace: s.namespace, Name: s.name}),
		metrics.Registry.Register(controller.Collector{Reader: m.GetClient()}),
		m.AddHealthzCheck("ping", healthz.Ping),
		m.AddReadyzCheck("cache", func(r *http.Request) error {
			if !m.GetCache().WaitForCacheSync(r.Context()) {
				return errors.New("the caches are not filled yet")
			}
			return nil
		}),
	)
}
