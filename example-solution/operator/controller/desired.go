package controller

import (
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsac "k8s.io/client-go/applyconfigurations/apps/v1"
	coreac "k8s.io/client-go/applyconfigurations/core/v1"
	metaac "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/solutionctl/example-solution/api"
	"github.com/solutionctl/example-solution/serve"
)

// The ports of a server: the page is for visitors, probes and metrics are for the cluster.
const (
	pagePort   = 8080
	healthPort = 8081
)

// user runs every container of this Solution; the images know no other.
const user = 65532

// objectName names the objects of a Website. The suffix keeps a Website called "example-solution-operator" away from
// the operator's own Deployment.
func objectName(site *api.Website) string { return site.Name + "-website" }

// selector finds the servers of a Website. It is immutable in a Deployment: never add a version to it.
func selector(site *api.Website) map[string]string {
	return map[string]string{
		"app.kubernetes.io/name":     "website",
		"app.kubernetes.io/instance": site.Name,
	}
}

func objectLabels(site *api.Website) map[string]string {
	return labels.Merge(selector(site), map[string]string{
		"app.kubernetes.io/component":  "server",
		"app.kubernetes.io/part-of":    "example-solution",
		"app.kubernetes.io/managed-by": FieldOwner,
	})
}

// owner makes the garbage collector remove an object with its Website. It does not block the deletion of the Website,
// which would take one more right (update of websites/finalizers) where admission enforces it.
func owner(site *api.Website) *metaac.OwnerReferenceApplyConfiguration {
	return metaac.OwnerReference().
		WithAPIVersion(api.GroupVersion.String()).WithKind("Website").
		WithName(site.Name).WithUID(site.UID).WithController(true)
}

// replicas is the number of servers that the user wants.
func replicas(site *api.Website) int32 { return ptr.Deref(site.Spec.Replicas, 1) }

// deployment returns the Deployment that runs a Website: everything that the operator has an opinion on and nothing else.
func deployment(site *api.Website, version, image, banners string) *appsac.DeploymentApplyConfiguration {
	versioned := labels.Merge(objectLabels(site), map[string]string{"app.kubernetes.io/version": version})
	d := appsac.Deployment(objectName(site), site.Namespace).
		WithLabels(versioned).
		WithOwnerReferences(owner(site)).
		WithSpec(appsac.DeploymentSpec().
			WithReplicas(replicas(site)).
			WithSelector(metaac.LabelSelector().WithMatchLabels(selector(site))).
			// A server goes when its successor answers, and not before: visitors notice nothing.
			WithStrategy(appsac.DeploymentStrategy().WithType(appsv1.RollingUpdateDeploymentStrategyType).
				WithRollingUpdate(appsac.RollingUpdateDeployment().
					WithMaxUnavailable(intstr.FromInt32(0)).WithMaxSurge(intstr.FromInt32(1)))).
			WithTemplate(coreac.PodTemplateSpec().
				WithLabels(versioned).
				WithSpec(coreac.PodSpec().
					WithAutomountServiceAccountToken(false). // the server does not talk to the Kubernetes API
					WithEnableServiceLinks(false).
					// Nodes learn of a server that stops later than the server does: it serves requests meanwhile (package serve).
					WithTerminationGracePeriodSeconds(int64(serve.GracePeriod / time.Second)).
					WithSecurityContext(coreac.PodSecurityContext().
						WithRunAsNonRoot(true).WithRunAsUser(user).WithRunAsGroup(user).
						WithSeccompProfile(coreac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))).
					WithContainers(container(site, image)))))
	if api.HasBanners {
		showBanners(d.Spec.Template, objectName(site), banners)
	}
	return d
}

func container(site *api.Website, image string) *coreac.ContainerApplyConfiguration {
	return coreac.Container().
		WithName("server").
		WithImage(image).
		WithImagePullPolicy(corev1.PullIfNotPresent). // pods restart while the registry is down
		WithEnv(
			variable("TITLE", site.Spec.Title),
			variable("MESSAGE", *api.Text(&site.Spec)),
			variable("THEME", string(site.Spec.Theme))).
		WithPorts(
			coreac.ContainerPort().WithName("http").WithContainerPort(pagePort).WithProtocol(corev1.ProtocolTCP),
			coreac.ContainerPort().WithName("metrics").WithContainerPort(healthPort).WithProtocol(corev1.ProtocolTCP)).
		WithLivenessProbe(probe("/healthz")).
		WithReadinessProbe(probe("/readyz")).
		WithResources(coreac.ResourceRequirements().
			WithRequests(corev1.ResourceList{
				corev1.ResourceCPU:    resource.MustParse("10m"),
				corev1.ResourceMemory: resource.MustParse("16Mi"),
			}).
			WithLimits(corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")})).
		WithSecurityContext(coreac.SecurityContext().
			WithAllowPrivilegeEscalation(false).WithReadOnlyRootFilesystem(true).
			WithCapabilities(coreac.Capabilities().WithDrop("ALL")))
}

// variable returns an environment variable with exactly this value: Kubernetes expands $(NAME), and $$ means a $.
func variable(name, value string) *coreac.EnvVarApplyConfiguration {
	return coreac.EnvVar().WithName(name).WithValue(strings.ReplaceAll(value, "$", "$$"))
}

func probe(path string) *coreac.ProbeApplyConfiguration {
	return coreac.Probe().WithPeriodSeconds(5).
		WithHTTPGet(coreac.HTTPGetAction().WithPath(path).WithPort(intstr.FromString("metrics")))
}

// service returns the Service through which a Website is visited, and its metrics are read.
func service(site *api.Website) *coreac.ServiceApplyConfiguration {
	return coreac.Service(objectName(site), site.Namespace).
		WithLabels(objectLabels(site)).
		WithOwnerReferences(owner(site)).
		WithSpec(coreac.ServiceSpec().
			WithSelector(selector(site)).
			WithPorts(
				port("http", 80),
				port("metrics", healthPort)))
}

// port returns a port of a Service that leads to the container port of the same name.
func port(name string, number int32) *coreac.ServicePortApplyConfiguration {
	return coreac.ServicePort().WithName(name).WithPort(number).
		WithTargetPort(intstr.FromString(name)).WithProtocol(corev1.ProtocolTCP)
}

func url(site *api.Website) string {
	return "http://" + objectName(site) + "." + site.Namespace + ".svc"
}
