package controller

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	coreac "k8s.io/client-go/applyconfigurations/core/v1"
	metaac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/solutionctl/example-solution/api"
)

// OperatorMetricsPort is where the operator serves its metrics.
const OperatorMetricsPort = 8080

var replicasDesc = prometheus.NewDesc("website_replicas",
	"Servers of a website: wanted by its spec, or ready.", []string{"website", "state"}, nil)

// Collector turns Websites into metrics. It reads them when it is asked, so that nothing has to be taken back when a
// Website goes.
type Collector struct{ Reader client.Reader }

// Describe implements [prometheus.Collector].
func (c Collector) Describe(descs chan<- *prometheus.Desc) { descs <- replicasDesc }

// Collect implements [prometheus.Collector].
func (c Collector) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var sites api.WebsiteList
	if err := c.Reader.List(ctx, &sites); err != nil {
		metrics <- prometheus.NewInvalidMetric(replicasDesc, err)
		return
	}
	for i := range sites.Items {
		site := &sites.Items[i]
		for state, n := range map[string]int32{"wanted": replicas(site), "ready": site.Status.ReadyReplicas} {
			metrics <- prometheus.MustNewConstMetric(replicasDesc, prometheus.GaugeValue, float64(n), site.Name, state)
		}
	}
}

// MetricsService keeps the Service through which the operator's own metrics are read. The operator makes it, because the
// contract's Deployment comes without one; it goes when the operator's Deployment goes.
type MetricsService struct {
	Client          client.Client
	Namespace, Name string // of the operator's Deployment
}

// Start implements the manager's Runnable.
func (m MetricsService) Start(ctx context.Context) error {
	var d appsv1.Deployment
	if err := m.Client.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: m.Name}, &d); err != nil {
		return fmt.Errorf("find the operator's own deployment: %w", err)
	}
	return m.Client.Apply(ctx, m.service(&d), client.FieldOwner(FieldOwner), client.ForceOwnership)
}

func (m MetricsService) service(d *appsv1.Deployment) *coreac.ServiceApplyConfiguration {
	return coreac.Service(m.Name+"-metrics", m.Namespace).
		WithLabels(map[string]string{
			"app.kubernetes.io/name":       m.Name,
			"app.kubernetes.io/component":  "operator",
			"app.kubernetes.io/part-of":    "example-solution",
			"app.kubernetes.io/managed-by": FieldOwner,
		}).
		WithOwnerReferences(metaac.OwnerReference().
			WithAPIVersion("apps/v1").WithKind("Deployment").WithName(d.Name).WithUID(d.UID)).
		WithSpec(coreac.ServiceSpec().
			WithSelector(d.Spec.Selector.MatchLabels).
			WithPorts(coreac.ServicePort().WithName("metrics").
				WithPort(OperatorMetricsPort).WithTargetPort(intstr.FromInt32(OperatorMetricsPort)).
				WithProtocol(corev1.ProtocolTCP)))
}
