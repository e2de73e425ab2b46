package lint

import "github.com/solutionctl/solutionctl/schema/report"

func operatorRules() []Rule { return append(roleRules(), append(imageRules(), workloadRules()...)...) }

// roleRules judge operator/deploy/role.yaml.
func roleRules() []Rule {
	return []Rule{
		{
			ID: "SOL401", Name: "role-file", Group: GroupOperator, Severity: report.SeverityError,
			Summary:     "operator/deploy/role.yaml holds Role and ClusterRole objects only.",
			Explanation: "MetalK8s creates the ServiceAccount and the bindings itself, and fails on any other kind in this file.",
			Bad:         "kind: ServiceAccount\nmetadata: {name: web-operator}", Good: "kind: Role\nmetadata: {name: web-operator}\nrules: […]",
			check: checkRoleFile,
		},
		{
			ID: "SOL402", Name: "role-takeover", Group: GroupOperator, Severity: report.SeverityError,
			Summary: "No role lets the operator take over more than its namespace.",
			Explanation: `Some permissions give more than they seem to: escalate, bind and impersonate; writing roles, webhook configurations or CustomResourceDefinitions; running commands in pods or reaching the kubelet; listing the Secrets of every namespace. An operator that has one of them, or whoever breaks into it, has the cluster.

A ClusterRole is judged as it is bound: in the namespace of the environment, where it gives what a Role gives and nothing on cluster-scoped resources; everywhere with spec.operator.clusterWide, or with a label that adds its rules to admin, edit or view.`,
			Bad:   "operator: {clusterWide: true}   # in solution.yaml\n---\nkind: ClusterRole\nrules:\n  - {apiGroups: [\"\"], resources: [secrets], verbs: [list]}",
			Good:  "kind: Role\nrules:\n  - {apiGroups: [\"\"], resources: [secrets], verbs: [get], resourceNames: [web-tls]}",
			check: checkTakeover,
		},
		{
			ID: "SOL403", Name: "role-wildcard", Group: GroupOperator, Severity: report.SeverityWarning,
			Summary:     "Roles list what the operator uses instead of permitting everything.",
			Explanation: "A wildcard permits what later versions of Kubernetes and other Solutions add, and tells the administrator nothing.",
			Bad:         "verbs: [\"*\"]", Good: "verbs: [get, list, watch, update]",
			check: checkWildcards,
		},
		{
			ID: "SOL404", Name: "role-without-effect", Group: GroupOperator, Severity: report.SeverityWarning,
			Summary: "Every rule of a role can be granted.",
			Explanation: `Roles are bound by a RoleBinding in the namespace of the environment: rules on cluster-scoped resources and on URLs grant nothing there. Neither does create with resourceNames, because a new object has no name yet when the API server decides.

Set spec.operator.clusterWide when the operator has to work across namespaces.`,
			Bad: "kind: ClusterRole\nrules:\n  - {apiGroups: [\"\"], resources: [nodes], verbs: [list]}", Good: "operator: {clusterWide: true}   # in solution.yaml",
			check: checkWithoutEffect,
		},
		{
			ID: "SOL405", Name: "role-misspelt", Group: GroupOperator, Severity: report.SeverityWarning,
			Summary:     "Roles name resources and verbs that exist.",
			Explanation: "The API server accepts any word in a role and grants nothing for a misspelt one. A role that it would refuse is an error.",
			Bad:         "resources: [deployment]", Good: "resources: [deployments]",
			check: checkMisspelt,
		},
		{
			ID: "SOL406", Name: "own-resources", Group: GroupOperator, Severity: report.SeverityWarning,
			Summary:     "The operator may read the custom resources of its Solution.",
			Explanation: `An operator watches its custom resources: it needs get, list and watch on each, by a Role or ClusterRole of role.yaml. On cluster-scoped ones it needs a ClusterRole and spec.operator.clusterWide.`,
			Bad:         "# websites_crd.yaml is in operator/deploy/crds\nrules: []", Good: "rules:\n  - {apiGroups: [example.com], resources: [websites], verbs: [get, list, watch]}",
			check: checkOwnResources,
		},
		{
			ID: "SOL407", Name: "own-status", Group: GroupOperator, Severity: report.SeverityWarning,
			Summary:     "The operator may write the status of the custom resources that it watches.",
			Explanation: "Where a CustomResourceDefinition has the status subresource, writing the resource leaves the status as it is: update or patch on resource/status is needed.",
			Bad:         "- {apiGroups: [example.com], resources: [websites], verbs: [get, list, watch, update]}",
			Good:        "- {apiGroups: [example.com], resources: [websites], verbs: [get, list, watch]}\n- {apiGroups: [example.com], resources: [websites/status], verbs: [update, patch]}",
			check:       checkOwnStatus,
		},
		{
			ID: "SOL408", Name: "own-finalizers", Group: GroupOperator, Severity: report.SeverityNote, Optional: true,
			Summary:     "The operator may set owner references that block deletion.",
			Explanation: "Clusters with the admission plugin OwnerReferencesPermissionEnforcement, OpenShift among them, ask for update on resource/finalizers before an object can be owned by the resource. Others do not, so this rule has to be enabled.",
			Bad:         "resources: [websites, websites/status]", Good: "resources: [websites/finalizers]\nverbs: [update]",
			check: checkOwnFinalizers,
		},
		{
			ID: "SOL409", Name: "leader-election", Group: GroupOperator, Severity: report.SeverityWarning,
			Summary:     "An operator that may use leases has every verb that an election needs.",
			Explanation: "Electing a leader takes create, get and update on leases. With one of them missing, the operator waits for ever to become the leader. Names cannot restrict create.",
			Bad:         "- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, create]}", Good: "- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, create, update]}",
			check: checkLeases,
		},
		{
			ID: "SOL410", Name: "required-crds", Group: GroupOperator, Severity: report.SeverityError,
			Summary:     "The operator may read the resources of spec.operator.requiresCRDs, and the archive serves their versions.",
			Explanation: "requiresCRDs names the definitions without which the operator cannot work. It reads them by list and watch, in the versions that are listed; where the archive brings the definition itself, it must serve those versions: that one is an error, a permission that is missing a warning.",
			Bad:         "requiresCRDs: [{name: certificates.cert-manager.io, versions: [v1]}]   # and no rule on certificates", Good: "- {apiGroups: [cert-manager.io], resources: [certificates], verbs: [get, list, watch, create]}",
			check: checkRequired,
		},
	}
}

// imageRules judge the operator's image and what lies beside it.
func imageRules() []Rule {
	return []Rule{
		{
			ID: "SOL411", Name: "operator-image", Group: GroupOperator, Severity: report.SeverityError,
			Summary:     "The operator's image is in the archive.",
			Explanation: "The operator is started from spec.operator.image, by default <name>-operator with the version of the Solution as its tag.",
			Bad:         "metadata: {name: web}\nspec: {version: 1.0.0, images: [{name: operator, …}]}", Good: "images: [{name: web-operator, …}]\n# or\noperator: {image: {name: operator, tag: 1.0.0}}",
			check: checkOperatorImage,
		},
		{
			ID: "SOL412", Name: "operator-entry-point", Group: GroupOperator, Severity: report.SeverityWarning,
			Summary: "The operator's image has the executable that its Deployment starts.",
			Explanation: `The Deployment does not use the entry point of the image. It starts "<name>-operator --config=/etc/config/operator.yaml", and the container runtime looks that name up in the PATH of the image.

By default the configuration of the image is judged: an entry point of another name, or in a directory that is not in PATH, is a warning. With --deep the layers are searched for the executable, for every platform: it must be there, be executable and be made for the platform; then a finding is an error.

Whether the executable understands --config cannot be told without running it.`,
			Bad: "ENTRYPOINT [\"/manager\"]", Good: "COPY web-operator /usr/local/bin/\nENTRYPOINT [\"web-operator\"]",
			check: checkEntryPoint,
		},
	}
}

// workloadRules judge everything that runs.
func workloadRules() []Rule {
	return []Rule{
		{
			ID: "SOL413", Name: "probes", Group: GroupOperator, Severity: report.SeverityWarning,
			Summary:     "Every long-running container has a readiness probe.",
			Explanation: "Without one a pod is ready as soon as it starts: an upgrade goes on although the new version does not work. The containers of Jobs and init containers need none.",
			Bad:         "containers: [{name: web, image: …}]", Good: "readinessProbe: {httpGet: {path: /readyz, port: http}}",
			check: checkProbes,
		},
		{
			ID: "SOL414", Name: "resource-requests", Group: GroupOperator, Severity: report.SeverityWarning,
			Summary:     "Every container requests CPU and memory.",
			Explanation: "Without requests the scheduler fills a node until it fails, and such pods are evicted first.",
			Bad:         "resources: {}", Good: "resources: {requests: {cpu: 10m, memory: 32Mi}}",
			check: checkRequests,
		},
		{
			ID: "SOL415", Name: "security-context", Group: GroupOperator, Severity: report.SeverityWarning,
			Summary:     "Every pod fulfils the restricted Pod Security Standard.",
			Explanation: "Environments may enforce it on their namespaces, and then other pods are refused. The finding lists which fields are missing.",
			Bad:         "containers: [{name: web, image: …}]", Good: "securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}\ncontainers:\n  - securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}",
			check: checkSecurity,
		},
		{
			ID: "SOL416", Name: "latest-tag", Group: GroupOperator, Severity: report.SeverityWarning,
			Summary:     "Every image has a tag other than latest, or a digest.",
			Explanation: "What latest means changes from day to day: nobody can tell which content was tested, and nodes keep different ones.",
			Bad:         "image: docker.io/library/nginx", Good: "image: docker.io/library/nginx:1.27.3",
			check: checkLatest,
		},
	}
}
