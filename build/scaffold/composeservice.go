package scaffold

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
)

// service makes a Deployment, or a Job, and a Service.
func (c *composer) service(s types.ServiceConfig) error {
	name := validName(s.Name)
	if name != s.Name {
		c.remark("service %s is called %s in the cluster: change the name where others use it", s.Name, name)
	}
	container, err := c.container(name, s)
	if err != nil {
		return err
	}
	volumes, mounts, recreate, err := c.volumes(name, s)
	if err != nil {
		return err
	}
	setList(container, "volumeMounts", mounts)
	pod := map[string]any{"containers": []any{container}, "enableServiceLinks": false}
	setList(pod, "volumes", volumes)
	c.podSettings(pod, s)
	if context, ok := container["securityContext"].(map[string]any); ok && context["runAsUser"] != nil {
		pod["securityContext"] = map[string]any{"fsGroup": cmp.Or(context["runAsGroup"], context["runAsUser"])} // volumes belong to root otherwise
	}
	template := map[string]any{"metadata": map[string]any{"labels": labelsOf(name)}, "spec": pod}
	c.remarkRest(s)
	if c.isJob(s) {
		pod["restartPolicy"] = "OnFailure"
		c.remark("service %s is a Job: others wait until it has ended, and start again until then", s.Name)
		return c.add(name, map[string]any{"apiVersion": "batch/v1", "kind": "Job", "metadata": metadataOf(name, name), "spec": map[string]any{"template": template}})
	}
	spec := map[string]any{"replicas": replicas(s), "selector": map[string]any{"matchLabels": labelsOf(name)}, "template": template}
	if recreate {
		spec["strategy"] = map[string]any{"type": "Recreate"} // a volume that only one pod can have
	}
	deployment := map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadataOf(name, name), "spec": spec}
	if err = c.add(name, deployment); err != nil {
		return err
	}
	return c.addServices(name, s)
}

// isJob reports whether another service waits for the end of this one.
func (c *composer) isJob(s types.ServiceConfig) bool {
	for _, other := range c.project.Services {
		if other.DependsOn[s.Name].Condition == types.ServiceConditionCompletedSuccessfully {
			return true
		}
	}
	return false
}

func replicas(s types.ServiceConfig) int {
	if s.Scale != nil {
		return *s.Scale
	}
	if s.Deploy != nil && s.Deploy.Replicas != nil {
		return *s.Deploy.Replicas
	}
	return 1
}

func setList(object map[string]any, key string, list []any) {
	if len(list) > 0 {
		object[key] = list
	}
}

func (c *composer) container(name string, s types.ServiceConfig) (map[string]any, error) {
	image, err := c.image(s)
	if err != nil {
		return nil, err
	}
	container := map[string]any{"name": name, "image": image}
	setList(container, "command", escapedList(s.Entrypoint))
	setList(container, "args", escapedList(s.Command))
	variables, err := c.environment(s)
	if err != nil {
		return nil, err
	}
	setList(container, "env", variables)
	if s.WorkingDir != "" {
		container["workingDir"] = s.WorkingDir
	}
	for key, set := range map[string]bool{"stdin": s.StdinOpen, "tty": s.Tty} {
		if set {
			container[key] = true
		}
	}
	var ports []any
	for _, port := range portsOf(s) {
		ports = append(ports, map[string]any{"containerPort": port.number, "protocol": port.protocol})
	}
	setList(container, "ports", ports)
	c.security(container, s)
	if resources := resourcesOf(s); len(resources) > 0 {
		container["resources"] = resources
	}
	if probe := probeOf(s.HealthCheck); probe != nil {
		container["readinessProbe"] = probe
	}
	return container, nil
}

// security keeps the user and the limits of a container.
func (c *composer) security(container map[string]any, s types.ServiceConfig) {
	context := map[string]any{}
	user, group, grouped := strings.Cut(s.User, ":")
	id, err := strconv.ParseInt(user, 10, 32)
	switch {
	case s.User == "":
	case err != nil:
		c.remark("left out user %s of service %s: Kubernetes takes numbers only", s.User, s.Name)
	default:
		context["runAsUser"] = id
		gid, err := strconv.ParseInt(group, 10, 32)
		switch {
		case grouped && err == nil:
			context["runAsGroup"] = gid
		case grouped:
			c.remark("left out group %s of service %s: Kubernetes takes numbers only", group, s.Name)
		}
	}
	if s.ReadOnly {
		context["readOnlyRootFilesystem"] = true
	}
	capabilities := map[string]any{}
	setList(capabilities, "add", withoutPrefix(s.CapAdd))
	setList(capabilities, "drop", withoutPrefix(s.CapDrop))
	if len(capabilities) > 0 {
		context["capabilities"] = capabilities
	}
	if slices.ContainsFunc(s.SecurityOpt, func(o string) bool {
		return strings.HasPrefix(o, "no-new-privileges") && !strings.HasSuffix(o, "false")
	}) {
		context["allowPrivilegeEscalation"] = false
	}
	if len(context) > 0 {
		container["securityContext"] = context
	}
}

func withoutPrefix(capabilities []string) []any {
	var all []any
	for _, capability := range capabilities {
		all = append(all, strings.TrimPrefix(capability, "CAP_"))
	}
	return all
}

func resourcesOf(s types.ServiceConfig) map[string]any {
	limits := map[string]any{}
	set := func(to map[string]any, cpus float32, memory types.UnitBytes) {
		if cpus > 0 {
			to["cpu"] = fmt.Sprintf("%dm", int(math.Round(float64(cpus)*1000)))
		}
		if memory > 0 {
			to["memory"] = strconv.FormatInt(int64(memory), 10)
		}
	}
	requests := map[string]any{}
	set(limits, s.CPUS, s.MemLimit)
	set(requests, 0, s.MemReservation)
	if s.Deploy != nil {
		if r := s.Deploy.Resources.Limits; r != nil {
			set(limits, float32(r.NanoCPUs), r.MemoryBytes)
		}
		if r := s.Deploy.Resources.Reservations; r != nil {
			set(requests, float32(r.NanoCPUs), r.MemoryBytes)
		}
	}
	resources := map[string]any{}
	for key, values := range map[string]map[string]any{"limits": limits, "requests": requests} {
		if len(values) > 0 {
			resources[key] = values
		}
	}
	return resources
}

// probeOf makes a readiness probe of a health check.
func probeOf(h *types.HealthCheckConfig) map[string]any {
	if h == nil || h.Disable || len(h.Test) < 2 {
		return nil
	}
	var command []any
	switch h.Test[0] {
	case "CMD":
		command = escapedList(h.Test[1:])
	case "CMD-SHELL":
		command = []any{"/bin/sh", "-c", escaped(h.Test[1])}
	default:
		return nil
	}
	// The defaults of compose are longer than those of Kubernetes.
	probe := map[string]any{"exec": map[string]any{"command": command}, "periodSeconds": 30, "timeoutSeconds": 30}
	for key, d := range map[string]*types.Duration{"periodSeconds": h.Interval, "timeoutSeconds": h.Timeout, "initialDelaySeconds": h.StartPeriod} {
		if d != nil {
			probe[key] = max(1, int(time.Duration(*d).Round(time.Second).Seconds()))
		}
	}
	if h.Retries != nil && *h.Retries > 0 && *h.Retries < 1000 {
		probe["failureThreshold"] = int(*h.Retries)
	}
	return probe
}

// podSettings are the settings of a service that apply to its pod.
func (c *composer) podSettings(pod map[string]any, s types.ServiceConfig) {
	if s.StopGracePeriod != nil {
		pod["terminationGracePeriodSeconds"] = int(time.Duration(*s.StopGracePeriod).Seconds())
	}
	if s.Hostname != "" && validName(s.Hostname) == s.Hostname {
		pod["hostname"] = s.Hostname
	}
	var aliases []any
	for _, host := range sortedKeys(s.ExtraHosts) {
		for _, ip := range s.ExtraHosts[host] {
			if ip == "host-gateway" {
				c.remark("left out extra host %s of service %s: there is no host to reach", host, s.Name)
				continue
			}
			aliases = append(aliases, map[string]any{"ip": ip, "hostnames": []any{host}})
		}
	}
	setList(pod, "hostAliases", aliases)
}

// composePort is a port of a container.
type composePort struct {
	number   int
	protocol string
}

// portsOf lists the ports that a service publishes or exposes, each once.
func portsOf(s types.ServiceConfig) []composePort {
	var ports []composePort
	add := func(number int, protocol string) {
		port := composePort{number, cmp.Or(strings.ToUpper(protocol), "TCP")}
		if number > 0 && !slices.Contains(ports, port) {
			ports = append(ports, port)
		}
	}
	for _, port := range s.Ports {
		add(int(port.Target), port.Protocol)
	}
	for _, text := range s.Expose {
		number, protocol, _ := strings.Cut(text, "/")
		if n, err := strconv.Atoi(number); err == nil {
			add(n, protocol)
		}
	}
	return ports
}

// addServices makes a Service for each name under which others reach a service.
func (c *composer) addServices(name string, s types.ServiceConfig) error {
	names := []string{name, s.ContainerName}
	for _, network := range sortedKeys(s.Networks) {
		if s.Networks[network] != nil {
			names = append(names, s.Networks[network].Aliases...)
		}
	}
	spec := map[string]any{"selector": labelsOf(name)}
	var ports []any
	for _, port := range portsOf(s) {
		ports = append(ports, map[string]any{"name": strings.ToLower(port.protocol) + "-" + strconv.Itoa(port.number), "port": port.number, "protocol": port.protocol})
	}
	setList(spec, "ports", ports)
	if len(ports) == 0 {
		spec["clusterIP"] = "None" // its pods are reached at every port
	}
	for _, called := range names {
		_, isService := c.project.Services[called]
		if called == "" || c.names[called] || validName(called) != called || isService && called != name {
			continue
		}
		c.names[called] = true
		if err := c.add(name, map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": metadataOf(called, name), "spec": spec}); err != nil {
			return err
		}
	}
	var published []string
	for _, port := range s.Ports {
		if port.Published != "" {
			published = append(published, fmt.Sprintf("%s (%s:%d in the cluster)", port.Published, name, port.Target))
		}
	}
	if len(published) > 0 {
		c.remark("service %s is no longer at the host's port %s: add an Ingress to the component for users outside of the cluster", s.Name, strings.Join(published, ", "))
	}
	return nil
}

// remarkRest names the settings of a service that have no equivalent.
func (c *composer) remarkRest(s types.ServiceConfig) {
	var names []string
	for _, setting := range []struct {
		name string
		set  bool
	}{
		{"depends_on with service_healthy", waitsForHealth(s.DependsOn)},
		{"build", s.Build != nil && s.Image != ""},
		{"dns", len(s.DNS)+len(s.DNSSearch)+len(s.DNSOpts) > 0},
		{"domainname", s.DomainName != ""},
		{"external_links", len(s.ExternalLinks) > 0},
		{"gpus", len(s.Gpus) > 0},
		{"group_add", len(s.GroupAdd) > 0},
		{"init", s.Init != nil && *s.Init},
		{"labels", len(s.Labels) > 0},
		{"links", len(s.Links) > 0},
		{"logging", s.Logging != nil},
		{"mac_address", s.MacAddress != ""},
		{"network_mode", s.NetworkMode != "" && s.NetworkMode != "bridge"},
		{"pids_limit", s.PidsLimit != 0},
		{"platform", s.Platform != ""},
		{"post_start", len(s.PostStart) > 0},
		{"pre_stop", len(s.PreStop) > 0},
		{"provider", s.Provider != nil},
		{"restart: " + s.Restart, s.Restart == types.RestartPolicyNo || strings.HasPrefix(s.Restart, types.RestartPolicyOnFailure)},
		{"runtime", s.Runtime != ""},
		{"stop_signal", s.StopSignal != ""},
		{"sysctls", len(s.Sysctls) > 0},
		{"ulimits", len(s.Ulimits) > 0},
		{"volumes_from", len(s.VolumesFrom) > 0},
		{"deploy.mode", s.Deploy != nil && s.Deploy.Mode == "global"},
		{"deploy.placement", s.Deploy != nil && len(s.Deploy.Placement.Constraints) > 0},
		{"deploy.resources.reservations.devices", s.Deploy != nil && s.Deploy.Resources.Reservations != nil && len(s.Deploy.Resources.Reservations.Devices) > 0},
		{"security_opt", slices.ContainsFunc(s.SecurityOpt, func(o string) bool { return !strings.HasPrefix(o, "no-new-privileges") })},
	} {
		if setting.set {
			names = append(names, setting.name)
		}
	}
	if len(names) > 0 {
		c.remark("left out of service %s, without an equivalent in a cluster: %s", s.Name, strings.Join(names, ", "))
	}
}

// waitsForHealth reports whether a service waits until others are healthy. Pods start at once, and are started again when they end.
func waitsForHealth(d types.DependsOnConfig) bool {
	for _, dependency := range d {
		if dependency.Condition == types.ServiceConditionHealthy {
			return true
		}
	}
	return false
}
