package lint

import (
	"slices"

	"github.com/solutionctl/solutionctl/lint/crd"
	"github.com/solutionctl/solutionctl/lint/kube"
	"github.com/solutionctl/solutionctl/schema/report"
)

func kubernetesRules() []Rule {
	return slices.Concat(objectRules(), customResourceRules(), definitionRules())
}

// objectRules judge objects of Kubernetes' own kinds.
func objectRules() []Rule {
	return []Rule{
		{
			ID: "SOL301", Name: "unknown-kind", Group: GroupKubernetes, Severity: report.SeverityError,
			Summary: "Every kind is one of Kubernetes, of the Solution's own CustomResourceDefinitions, or of a group that the cluster may have.",
			Explanation: "A kind in a group of Kubernetes, or of the Solution, that neither defines is misspelt. Objects of other groups, such as ServiceMonitor, " +
				"are skipped where the cluster does not have them; groups that are not widely used are reported as a note, since nothing in the archive defines them.",
			Bad: "apiVersion: apps/v1\nkind: Deploiment", Good: "apiVersion: apps/v1\nkind: Deployment",
			check: checkKinds,
		},
		{
			ID: "SOL302", Name: "removed-api", Group: GroupKubernetes, Severity: report.SeverityError,
			Summary: "Every API is served by all releases of Kubernetes that the Solution allows.",
			Explanation: "A release refuses objects of an API that it removed. The releases are those that spec.kubernetesVersion allows, all supported ones without it, " +
				"or the one of --kubernetes-version.",
			Bad: "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget", Good: "apiVersion: policy/v1\nkind: PodDisruptionBudget",
			check: checkAvailability(kube.Removed),
		},
		{
			ID: "SOL303", Name: "deprecated-api", Group: GroupKubernetes, Severity: report.SeverityWarning,
			Summary:     "No API is one that a later release of Kubernetes removes.",
			Explanation: "The archive works today, and fails after the cluster is upgraded. Each finding names the release and the replacement.",
			Bad:         "apiVersion: flowcontrol.apiserver.k8s.io/v1beta3\nkind: FlowSchema", Good: "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema",
			check: checkAvailability(kube.Deprecated),
		},
		{
			ID: "SOL304", Name: "later-api", Group: GroupKubernetes, Severity: report.SeverityError,
			Summary:     "No API is newer than the oldest release of Kubernetes that the Solution allows.",
			Explanation: "Either the manifest asks for a newer Kubernetes in spec.kubernetesVersion, or the object uses the older API.",
			Bad:         "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicy   # with kubernetesVersion: \">=1.30\"", Good: "spec:\n  kubernetesVersion: \">=1.36\"",
			check: checkAvailability(kube.NotYet),
		},
		problemRule("SOL305", "unknown-field", kube.UnknownField,
			"Every field is one that the API has.",
			"The API server drops unknown fields without a word, so that a misspelt setting does nothing.",
			"spec:\n  replica: 3", "spec:\n  replicas: 3"),
		problemRule("SOL306", "missing-field", kube.MissingField,
			"Every field that the API requires is there.",
			"The API server refuses the object.",
			"kind: Service\nspec:\n  ports: [{name: http}]", "kind: Service\nspec:\n  ports: [{name: http, port: 80}]"),
		problemRule("SOL307", "wrong-type", kube.WrongType,
			"Every value has the type that the API wants.",
			"The API server refuses the object. Values are read as Kubernetes does, by YAML 1.1: yes, no, on and off without quotes are booleans, and environment variables must be strings.",
			"env:\n  - {name: VERBOSE, value: yes}", "env:\n  - {name: VERBOSE, value: \"yes\"}"),
		problemRule("SOL308", "wrong-value", kube.WrongValue,
			"Every value is one that the API accepts: of the enumeration, a quantity, a name, a label.",
			"The API server refuses the object.",
			"imagePullPolicy: Allways", "imagePullPolicy: Always"),
		problemRule("SOL309", "duplicate-entry", kube.Duplicate,
			"No two entries of a list have the same key, such as the name of a container or of an environment variable.",
			"Server-side apply refuses such a list, and elsewhere one entry silently wins.",
			"env:\n  - {name: A, value: \"1\"}\n  - {name: A, value: \"2\"}", "env:\n  - {name: A, value: \"2\"}"),
		{
			ID: "SOL310", Name: "duplicate-object", Group: GroupKubernetes, Severity: report.SeverityError,
			Summary:     "No object is there twice.",
			Explanation: "Both are applied, one after the other, to the same name, and the second one wins.",
			Bad:         "ui/a.yaml: Service/web\nui/b.yaml: Service/web", Good: "ui/a.yaml: Service/web",
			check: checkDuplicateObjects,
		},
		{
			ID: "SOL311", Name: "chart-renders", Group: GroupKubernetes, Severity: report.SeverityError,
			Summary:     "Every chart can be rendered offline with the values of its component, or its own.",
			Explanation: "All subcharts must be in the package: 'helm dependency build' before 'helm package'. A chart that needs values is rendered with those that spec.components gives it.",
			Bad:         "charts/web.tgz without charts/web/charts/db", Good: "helm dependency build web && helm package web",
			check: checkCharts,
		},
		{
			ID: "SOL312", Name: "template-variable", Group: GroupKubernetes, Severity: report.SeverityError,
			Summary:     "Manifests of the user interface use no template but {{ repository }}.",
			Explanation: "Where an archive is deployed, {{ repository }} becomes the address of its images. In a project, {{ version }} becomes the version of the Solution when the archive is built. Any other variable stays as it is and ends up in an object.",
			Bad:         "image: \"{{ registry }}/ui:1.0.0\"", Good: "image: \"{{ repository }}/ui:1.0.0\"",
			check: checkTemplates,
		},
	}
}

func problemRule(id, name string, reason kube.Reason, summary, explanation, bad, good string) Rule {
	return Rule{
		ID: id, Name: name, Group: GroupKubernetes, Severity: report.SeverityError,
		Summary: summary, Explanation: explanation, Bad: bad, Good: good, check: checkProblems(reason),
	}
}

// customResourceRules judge custom resources by the definitions in the archive.
func customResourceRules() []Rule {
	return []Rule{
		{
			ID: "SOL315", Name: "invalid-custom-resource", Group: GroupKubernetes, Severity: report.SeverityError,
			Summary: "Custom resources in the archive, samples included, are valid by the archive's own definitions.",
			Explanation: "A sample that the API server refuses is the first thing that a user tries. Checked are the schema and its CEL rules, after defaults are filled in, " +
				"with the code of the API server.",
			Bad: "kind: Website\nspec:\n  replicas: -1", Good: "kind: Website\nspec:\n  replicas: 1",
			check: checkCustomResources,
		},
		{
			ID: "SOL316", Name: "dropped-field", Group: GroupKubernetes, Severity: report.SeverityError,
			Summary:     "Custom resources in the archive have no field that their definition does not know.",
			Explanation: "The API server drops such fields without a word.",
			Bad:         "kind: Website\nspec:\n  tittle: Hello", Good: "kind: Website\nspec:\n  title: Hello",
			check: checkDroppedFields,
		},
		{
			ID: "SOL317", Name: "version-not-served", Group: GroupKubernetes, Severity: report.SeverityError,
			Summary:     "Custom resources in the archive are written in a version that their definition serves.",
			Explanation: "The API server answers 'no matches for kind'.",
			Bad:         "apiVersion: example.com/v1alpha1   # served: false", Good: "apiVersion: example.com/v1",
			check: checkServedVersion,
		},
	}
}

// definitionRules judge CustomResourceDefinitions.
func definitionRules() []Rule {
	return []Rule{
		{
			ID: "SOL320", Name: "crd-file-name", Group: GroupKubernetes, Severity: report.SeverityError,
			Summary:     "Definitions are in files named operator/deploy/crds/**/*_crd.yaml.",
			Explanation: "Activation applies exactly these files; a definition elsewhere is never there when the operator starts. --fix renames the file in a project.",
			Bad:         "operator/deploy/crds/website.yaml", Good: "operator/deploy/crds/website_crd.yaml",
			Fixable: true, check: checkDefinitionFiles,
		},
		{
			ID: "SOL321", Name: "crd-documents", Group: GroupKubernetes, Severity: report.SeverityError,
			Summary:     "A file *_crd.yaml holds exactly one document, a CustomResourceDefinition.",
			Explanation: "MetalK8s reads the file as one YAML document; a second one breaks activation. --fix writes one file per document in a project.",
			Bad:         "kind: CustomResourceDefinition\n---\nkind: CustomResourceDefinition", Good: "websites_crd.yaml\npages_crd.yaml",
			Fixable: true, check: checkDefinitionDocuments,
		},
		fileProblemRule("SOL322", "crd-jinja", crd.Jinja,
			"Definitions contain no Jinja delimiters: two braces, or a brace with % or #.",
			"MetalK8s' Salt renders these files before it reads them. What looks like a template in a description breaks activation, or is replaced by nothing.",
			"description: use {{ name }}", "description: use $(name)"),
		fileProblemRule("SOL323", "crd-old-api", crd.OldAPI,
			"Definitions are written in apiextensions.k8s.io/v1.",
			"v1beta1 is not served since Kubernetes 1.22. In v1 the schema is required and stands in each version.",
			"apiVersion: apiextensions.k8s.io/v1beta1", "apiVersion: apiextensions.k8s.io/v1"),
		fileProblemRule("SOL324", "crd-size", crd.LargeDocument,
			"Definitions are small enough for etcd.",
			"etcd refuses requests above 1.5 MiB, and clients that keep the last applied configuration need the size twice.",
			"a definition of 1.4 MiB with every description", "controller-gen crd:maxDescLen=0"),
		judgementRule("SOL325", "crd-refused", crd.Refused, report.SeverityError,
			"The API server accepts every definition: structural schema, exactly one storage version, CEL rules that compile and are affordable.",
			"The definition is judged by the validation of the API server itself. One that is refused stops the activation.",
			"type: object\nproperties:\n  spec: {}            # without a type", "type: object\nproperties:\n  spec: {type: object}"),
		judgementRule("SOL326", "crd-conversion", crd.NoConversion, report.SeverityWarning,
			"Versions of a definition whose schemas differ are converted by a webhook.",
			"Without it the API server only changes apiVersion: fields that one version does not know are dropped.",
			"versions: [v1, v2]   # with different schemas\nconversion: {strategy: None}", "conversion: {strategy: Webhook, webhook: …}"),
		judgementRule("SOL327", "crd-not-served", crd.NotServed, report.SeverityError,
			"Every definition serves a version.",
			"Objects of a definition without a served version cannot be read or written.",
			"versions:\n  - {name: v1, served: false, storage: true}", "versions:\n  - {name: v1, served: true, storage: true}"),
		judgementRule("SOL328", "crd-preserves-all", crd.PreservesAll, report.SeverityWarning,
			"The schema of every version says what objects look like.",
			"A schema that preserves unknown fields at its root accepts anything: mistakes are found by the operator, or never.",
			"openAPIV3Schema:\n  type: object\n  x-kubernetes-preserve-unknown-fields: true", "openAPIV3Schema:\n  type: object\n  properties: {spec: …}"),
		{
			ID: "SOL329", Name: "crd-twice", Group: GroupKubernetes, Severity: report.SeverityError,
			Summary:     "Every definition is in one file.",
			Explanation: "Both files are applied, and the one that sorts last wins.",
			Bad:         "crds/a_crd.yaml: websites.example.com\ncrds/b_crd.yaml: websites.example.com", Good: "crds/websites_crd.yaml",
			check: checkDefinitionsTwice,
		},
	}
}

func fileProblemRule(id, name string, reason crd.Reason, summary, explanation, bad, good string) Rule {
	return Rule{
		ID: id, Name: name, Group: GroupKubernetes, Severity: report.SeverityError,
		Summary: summary, Explanation: explanation, Bad: bad, Good: good, check: checkDefinitionText(reason),
	}
}

func judgementRule(id, name string, reason crd.Reason, severity report.Severity, summary, explanation, bad, good string) Rule {
	return Rule{
		ID: id, Name: name, Group: GroupKubernetes, Severity: severity,
		Summary: summary, Explanation: explanation, Bad: bad, Good: good, check: checkDefinition(reason),
	}
}
