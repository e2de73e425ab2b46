package powers

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/solutionctl/solutionctl/kube/pods"
	"github.com/solutionctl/solutionctl/schema"
)

// pods judges the pods that an object makes.
func (j *judgement) pods(o Object) {
	if spec := pods.Spec(o.Object); spec != nil {
		template, path := pods.Template(o.Object)
		j.place(o, strings.Join(append(slices.Clone(path), "spec"), ".")).pod(spec, annotationsOf(template), true)
	}
	if !isBuiltIn(groupOf(o)) {
		j.shapes(o, o.Object, nil, nil)
	}
}

// annotationsOf returns the annotations of a template: webhooks, network plugins and older Kubernetes act upon them.
func annotationsOf(template map[string]any) map[string]string {
	annotations := map[string]string{}
	for key, value := range nestedMap(template, "metadata", "annotations") {
		annotations[key], _ = value.(string)
	}
	return annotations
}

// shapes judges whatever in a custom resource looks like the spec of a pod, also within another one. The template of a pod has its
// annotations beside the spec.
func (j *judgement) shapes(o Object, value any, template map[string]any, at *field) {
	switch value := value.(type) {
	case map[string]any:
		if looksLikePod(value) {
			j.place(o, at.String()).pod(value, annotationsOf(template), false)
		}
		for key, inner := range value {
			j.shapes(o, inner, value, &field{parent: at, key: key})
		}
	case []any:
		for i, inner := range value {
			j.shapes(o, inner, nil, &field{parent: at, key: "[" + strconv.Itoa(i) + "]"})
		}
	}
}

// field is a place in an object, nil for the object itself. Only those that are reported are written out: paths of all fields would
// be far larger than the object.
type field struct {
	parent *field
	key    string
}

// maxField is how long the path of a field is reported to be.
const maxField = 500

func (f *field) String() string {
	var keys []string
	for length := 0; f != nil && length < maxField; f = f.parent {
		keys, length = append(keys, f.key), length+len(f.key)
	}
	slices.Reverse(keys)
	path := strings.ReplaceAll(strings.Join(keys, "."), ".[", "[")
	return path[:min(len(path), maxField)]
}

// looksLikePod reports a list of containers with names, or settings that only pods have.
func looksLikePod(m map[string]any) bool {
	for _, key := range []string{"hostNetwork", "hostPID", "hostIPC"} {
		if m[key] == true {
			return true
		}
	}
	return slices.ContainsFunc(listOf(m["containers"]), func(c map[string]any) bool { return c["name"] != nil })
}

// hasImages reports whether all containers have an image, as those of pods have, or whether the pod asks for the host.
func hasImages(m map[string]any) bool {
	return !slices.ContainsFunc(listOf(m["containers"]), func(c map[string]any) bool { return c["image"] == nil })
}

// evaluator is the judge of Pod Security. Its checks have no state.
var evaluator = sync.OnceValue(func() policy.Evaluator {
	e, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		panic(err) // the checks are constants of the library
	}
	return e
})

var baseline = api.LevelVersion{Level: api.LevelBaseline, Version: api.LatestVersion()}

// pod judges the spec of a pod. The kinds of Kubernetes have nothing else there, so that what cannot be read is a power.
func (p place) pod(content map[string]any, annotations map[string]string, certain bool) {
	if !p.spend(refOf(p.o), workOfPod) {
		return
	}
	var spec corev1.PodSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &spec); err != nil {
		if certain || hasImages(content) {
			p.add(schema.PowerPodOnNode, schema.ReachNode, "run a pod that cannot be judged ("+err.Error()+")", "unreadable")
		}
		return
	}
	judged := pod{place: p, spec: &spec, content: content, annotations: annotations}
	judged.security()
	judged.account()
	judged.schedule()
	judged.volumes()
	judged.claims()
	judged.data()
	p.place(p.o, p.at[:strings.LastIndex(p.at, ".")+1]+"metadata.annotations").annotated(annotations)
	if certain { // in other kinds a controller adds volumes
		judged.missingVolumes()
	}
}

// pod is the spec of a pod and where it is.
type pod struct {
	place
	spec *corev1.PodSpec

	content     map[string]any // the spec as it is written
	annotations map[string]string
}

// security asks the judge of Pod Security for the level baseline.
func (p pod) security() {
	var effects []string
	for _, result := range evaluator().EvaluatePod(baseline, &metav1.ObjectMeta{Annotations: p.annotations}, p.spec) {
		if result.Allowed {
			continue
		}
		if result.ForbiddenReason == "hostPort" {
			p.add(schema.PowerOpensToOutside, schema.ReachOutside, "listen on ports of nodes ("+enumerate(p.hostPorts())+")", p.hostPorts()...)
			continue
		}
		effects = append(effects, p.details(result.ForbiddenReason)...)
	}
	if len(effects) > 0 {
		effects = set(effects)
		p.add(schema.PowerPodOnNode, schema.ReachNode, "run as part of the node ("+strings.Join(described(effects), ", ")+")", effects...)
	}
}

// details say more exactly what the judge of Pod Security has found, in words that compare.
func (p pod) details(reason string) []string {
	var details []string
	switch reason {
	case "host namespaces":
		for name, on := range map[string]bool{"host network": p.spec.HostNetwork, "host processes": p.spec.HostPID, "host IPC": p.spec.HostIPC} {
			if on {
				details = append(details, name)
			}
		}
	case "hostPath volumes":
		for _, v := range p.spec.Volumes {
			if v.HostPath != nil {
				details = append(details, hostPath+path.Clean("/"+v.HostPath.Path))
			}
		}
	case "non-default capabilities":
		p.containers(func(c corev1.Container) {
			if c.SecurityContext == nil || c.SecurityContext.Capabilities == nil {
				return
			}
			for _, capability := range c.SecurityContext.Capabilities.Add {
				if !harmlessCapabilities[capability] {
					details = append(details, "capability "+string(capability))
				}
			}
		})
	case "forbidden sysctls":
		for _, s := range p.spec.SecurityContext.Sysctls {
			details = append(details, "sysctl "+s.Name)
		}
	case "seLinuxOptions":
		details = p.seLinuxOptions()
	case "probe or lifecycle host":
		p.containers(func(c corev1.Container) { details = append(details, prefixed(reason+" ", calledHosts(c))...) })
	}
	if len(details) == 0 {
		return []string{reason}
	}
	return details
}

// seLinuxOptions returns the SELinux users, roles and types of the pod and of its containers.
func (p pod) seLinuxOptions() (list []string) {
	add := func(o *corev1.SELinuxOptions) {
		if o == nil {
			return
		}
		words := []string{"seLinuxOptions"}
		for _, value := range [][2]string{{"user", o.User}, {"role", o.Role}, {"type", o.Type}} {
			if value[1] != "" {
				words = append(words, value[0]+"="+value[1])
			}
		}
		if len(words) > 1 {
			list = append(list, strings.Join(words, " "))
		}
	}
	if c := p.spec.SecurityContext; c != nil {
		add(c.SELinuxOptions)
	}
	p.containers(func(c corev1.Container) {
		if c.SecurityContext != nil {
			add(c.SecurityContext.SELinuxOptions)
		}
	})
	return list
}

// calledHosts returns the hosts that the probes and lifecycle handlers of a container name: the kubelet sends requests to them.
func calledHosts(c corev1.Container) (hosts []string) {
	add := func(get *corev1.HTTPGetAction, socket *corev1.TCPSocketAction) {
		if get != nil && get.Host != "" {
			hosts = append(hosts, get.Host)
		}
		if socket != nil && socket.Host != "" {
			hosts = append(hosts, socket.Host)
		}
	}
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if probe != nil {
			add(probe.HTTPGet, probe.TCPSocket)
		}
	}
	if c.Lifecycle != nil {
		for _, handler := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if handler != nil {
				add(handler.HTTPGet, handler.TCPSocket)
			}
		}
	}
	return hosts
}

// harmlessCapabilities are allowed by the level baseline: runtimes give most of them to containers by default.
var harmlessCapabilities = map[corev1.Capability]bool{
	"AUDIT_WRITE": true, "CHOWN": true, "DAC_OVERRIDE": true, "FOWNER": true, "FSETID": true, "KILL": true, "MKNOD": true, "NET_BIND_SERVICE": true,
	"SETFCAP": true, "SETGID": true, "SETPCAP": true, "SETUID": true, "SYS_CHROOT": true,
}

// containers calls f for every container of the pod.
func (p pod) containers(f func(corev1.Container)) {
	for _, c := range slices.Concat(p.spec.InitContainers, p.spec.Containers) {
		f(c)
	}
	for _, c := range p.spec.EphemeralContainers {
		f(corev1.Container(c.EphemeralContainerCommon))
	}
}

func (p pod) hostPorts() []string {
	var ports []string
	p.containers(func(c corev1.Container) {
		for _, port := range c.Ports {
			if port.HostPort != 0 {
				ports = append(ports, strconv.Itoa(int(port.HostPort)))
			}
		}
	})
	return set(ports)
}

// sensitivePaths are host paths that give a pod control of the node, even if they are read-only.
var sensitivePaths = []struct{ path, what string }{
	{"/run/containerd/containerd.sock", "the runtime's socket"},
	{"/run/crio/crio.sock", "the runtime's socket"},
	{"/run/docker.sock", "the runtime's socket"},
	{"/var/lib/kubelet", "Secrets of all pods of the node"},
	{"/var/lib/etcd", "the cluster's database"},
	{"/var/lib/containerd", "files of all pods of the node"},
	{"/var/lib/docker", "files of all pods of the node"},
	{"/etc/kubernetes", "the cluster's keys"},
	{"/etc", "the node's settings"},
	{"/root", "the administrator's files"},
	{"/var/log", "logs, from which links lead anywhere"},
	{"/proc", "processes of the node"},
	{"/sys", "the node's kernel"},
	{"/dev", "the node's devices"},
}

const hostPath = "hostPath "

// described returns effects as a user reads them, with a description of each host path. The worst ones are first.
func described(effects []string) []string {
	list := slices.Clone(effects)
	for i, effect := range list {
		if name, ok := strings.CutPrefix(effect, hostPath); ok {
			list[i] = hostPath + describePath(name)
		}
	}
	slices.SortStableFunc(list, func(a, b string) int { return cmp.Compare(dangerOf(a), dangerOf(b)) })
	return list
}

// dangerOf ranks a described effect; 0 is the worst.
func dangerOf(effect string) int {
	switch {
	case effect == "privileged":
		return 0
	case strings.HasPrefix(effect, "host "):
		return 1
	case strings.HasPrefix(effect, hostPath) && strings.HasSuffix(effect, ")"):
		return 2
	case strings.HasPrefix(effect, "capability "):
		return 3
	}
	return 4
}

// describePath describes a host path by the known path at or below it.
func describePath(name string) string {
	name = path.Clean("/" + name)
	if name == "/" {
		return "/ (everything of the node)"
	}
	real := strings.Replace(name, "/var/run", "/run", 1)
	for _, t := range sensitivePaths {
		if real == t.path || strings.HasPrefix(real, t.path+"/") || strings.HasPrefix(t.path, real+"/") {
			return name + " (" + t.what + ")"
		}
	}
	return name
}

// account judges the account that the pod runs as.
func (p pod) account() {
	name, namespace := cmp.Or(p.spec.ServiceAccountName, p.spec.DeprecatedServiceAccount), p.o.GetNamespace()
	if name == "" || name == "default" && !schema.IsSystemNamespace(namespace) || p.hasAccount(namespace, name) {
		return
	}
	reach := schema.ReachNamespaces
	if schema.IsSystemNamespace(namespace) {
		reach = schema.ReachCluster
	}
	p.below(".serviceAccountName").add(schema.PowerActAsOthers, reach,
		"run as an account that the archive does not bring ("+namespace+"/"+name+")", namespace+"/"+name)
}

// specialNodes are the nodes that have a taint, by its key: those of the cluster itself, and two of MetalK8s.
var specialNodes = map[string]string{
	"node-role.kubernetes.io/control-plane": "control planes", "node-role.kubernetes.io/master": "control planes",
	"node-role.kubernetes.io/bootstrap": "bootstrap node", infrastructure: "infrastructure nodes",
}

// infrastructure is the taint of nodes that MetalK8s has for its own services, as sites do for those of others.
const infrastructure = "node-role.kubernetes.io/infra"

// schedule judges where and before whom the pod runs.
func (p pod) schedule() {
	var effects, shown []string
	if class := p.spec.PriorityClassName; strings.HasPrefix(class, "system-") {
		effects = append(effects, "priority "+class)
	}
	if p.spec.NodeName != "" {
		effects = append(effects, "node "+p.spec.NodeName+" without the scheduler")
	}
	for _, t := range p.spec.Tolerations {
		switch {
		case t.Key == "" && t.Operator == corev1.TolerationOpExists && t.Effect != corev1.TaintEffectPreferNoSchedule:
			effects = append(effects, "every taint")
		case specialNodes[t.Key] == "":
		case p.o.GetKind() == "DaemonSet" && t.Key != infrastructure:
			effects = append(effects, specialNodes[t.Key])
		default:
			shown = append(shown, specialNodes[t.Key])
		}
	}
	if len(effects) > 0 {
		effects = set(effects)
		p.add(schema.PowerSchedulesAboveOthers, schema.ReachEveryone, "run where, or before, others do not ("+enumerate(effects)+")", effects...)
	}
	if len(shown) > 0 {
		shown = set(shown)
		p.show(schema.PowerSchedulesAboveOthers, schema.ReachEveryone, "be allowed on nodes that others do not use ("+enumerate(shown)+")", shown...)
	}
}

// volumes judges volumes beyond what Pod Security does.
func (p pod) volumes() {
	var outside, sources, audiences []string
	for _, v := range p.spec.Volumes {
		before := len(outside)
		switch {
		case v.NFS != nil:
			outside = append(outside, "NFS "+v.NFS.Server+":"+v.NFS.Path)
		case v.ISCSI != nil:
			outside = append(outside, "iSCSI "+v.ISCSI.TargetPortal)
		case v.CSI != nil:
			outside = append(outside, "driver "+v.CSI.Driver)
		case v.RBD != nil, v.CephFS != nil, v.Glusterfs != nil, v.FlexVolume != nil, v.Cinder != nil, v.FC != nil, v.AzureFile != nil, v.Quobyte != nil,
			v.PortworxVolume != nil, v.ScaleIO != nil, v.StorageOS != nil, v.VsphereVolume != nil, v.GitRepo != nil, v.Flocker != nil,
			v.AWSElasticBlockStore != nil, v.GCEPersistentDisk != nil, v.AzureDisk != nil, v.PhotonPersistentDisk != nil:
			outside = append(outside, "volume "+v.Name)
		case v.Projected != nil:
			audiences = append(audiences, audiencesOf(v.Projected)...)
		}
		for _, what := range outside[before:] {
			sources = append(sources, what+digestOf(v.VolumeSource))
		}
	}
	if len(outside) > 0 {
		p.below(".volumes").add(schema.PowerUsesForeignData, schema.ReachOutside, "mount data that is not its own ("+enumerate(set(outside))+")", sources...)
	}
	if len(audiences) > 0 {
		audiences = set(audiences)
		p.below(".volumes").show(schema.PowerOpensToOutside, schema.ReachOutside, "prove its identity to others ("+enumerate(audiences)+")", audiences...)
	}
}

// digestOf identifies data by all settings of its source: an approval covers no other source with the same name.
func digestOf(source any) string {
	data, err := json.Marshal(source)
	if err != nil { // not JSON: a number without a value
		data = fmt.Append(nil, source)
	}
	return fmt.Sprintf(", SHA-256 %x", sha256.Sum256(data))
}

// audiencesOf returns those to whom a pod proves its identity with tokens and certificates.
func audiencesOf(volume *corev1.ProjectedVolumeSource) (audiences []string) {
	for _, source := range volume.Sources {
		if token := source.ServiceAccountToken; token != nil && token.Audience != "" {
			audiences = append(audiences, token.Audience)
		}
		if certificate := source.PodCertificate; certificate != nil {
			audiences = append(audiences, "certificates of "+certificate.SignerName)
		}
	}
	return audiences
}

// claims judges the claims that are made for the pod.
func (p pod) claims() {
	for i, v := range listOf(p.content["volumes"]) {
		p.claim(p.o, nestedMap(v, "ephemeral", "volumeClaimTemplate", "spec"), indexed(p.at+".volumes", i)+".ephemeral.volumeClaimTemplate.spec")
	}
}
