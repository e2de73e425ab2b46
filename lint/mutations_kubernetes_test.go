package lint_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"maps"
	"slices"
	"strings"
	"testing/fstest"
)

func kubernetesMutations() map[string]mutation {
	const (
		ui   = "ui/ui.yaml"
		crds = "operator/deploy/crds/"
		crd  = crds + "websites_crd.yaml"
		cr   = crds + "websites_cr.yaml"
	)
	return map[string]mutation{
		"SOL301": {files: edit(ui, "kind: Deployment", "kind: Deploiment")},
		"SOL302": {files: put("ui/pdb.yaml", "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: ui}\n")},
		"SOL303": {kubernetes: "1.31", files: put("ui/flow.yaml", "apiVersion: flowcontrol.apiserver.k8s.io/v1beta3\nkind: FlowSchema\nmetadata: {name: ui}\n")},
		"SOL304": {files: put("ui/policy.yaml", "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicy\nmetadata: {name: ui}\n")},
		"SOL305": {files: edit(ui, "replicas: 1", "replica: 1")},
		"SOL306": {files: edit(ui, "  selector:\n    matchLabels:\n      app.kubernetes.io/name: example-solution-ui\n  template", "  template")},
		"SOL307": {files: edit(ui, "replicas: 1", "replicas: one")},
		"SOL308": {files: edit(ui, "imagePullPolicy: IfNotPresent", "imagePullPolicy: Never Ever")},
		"SOL309": {files: edit(ui, "            - name: POD_NAMESPACE\n", "            - {name: POD_NAMESPACE, value: default}\n            - name: POD_NAMESPACE\n")},
		"SOL310": {files: func(files fstest.MapFS) { files["ui/again.yaml"] = files[ui] }},
		"SOL311": {files: put("charts/db-1.0.0.tgz", "not a chart")},
		"SOL312": {files: edit(ui, "{{ repository }}", "{{ registry }}")},
		"SOL318": {files: func(files fstest.MapFS) {
			files["charts/web.tgz"] = &fstest.MapFile{Data: packFiles(map[string]string{
				"web/Chart.yaml":          "apiVersion: v2\nname: web\nversion: 1.0.0\n",
				"web/templates/hook.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hook, annotations: {helm.sh/hook: crd-install}}\n",
			})}
		}},
		"SOL319": {files: func(files fstest.MapFS) {
			files["charts/web-1.1.0.tgz"] = &fstest.MapFile{Data: packFiles(map[string]string{"web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n"})}
		}},
		"SOL315": {files: edit(cr, "replicas: 2", "replicas: -1")},
		"SOL316": {files: edit(cr, "spec:", "spec:\n  colour: blue")},
		"SOL317": {files: edit(cr, "/v1alpha1", "/v1")},
		"SOL320": {files: func(files fstest.MapFS) {
			files[crds+"websites.yaml"] = files[crd]
			delete(files, crd)
		}},
		"SOL321": {files: func(files fstest.MapFS) {
			put(crd, string(files[crd].Data)+"---\n"+string(files[crd].Data))(files)
		}},
		"SOL322": {files: edit(crd, "Website is a small website", "Website is a {{ small }} website")},
		"SOL323": {files: edit(crd, "apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1")},
		"SOL324": {files: edit(crd, "Website is a small website", "Website is a small website"+strings.Repeat(" of many words", 80_000))},
		"SOL325": {files: edit(crd, "storage: true", "storage: false")},
		"SOL326": {files: edit(crd, "  versions:\n", "  versions:\n  - name: v2\n    served: true\n    storage: false\n    schema:\n      openAPIV3Schema:\n        type: object\n        properties: {spec: {type: object}}\n")},
		"SOL327": {files: edit(crd, "served: true", "served: false")},
		"SOL328": {files: func(files fstest.MapFS) {
			text := string(files[crd].Data)
			schema, served := strings.Index(text, "      openAPIV3Schema:"), strings.Index(text, "    served:")
			put(crd, text[:schema]+"      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}\n"+text[served:])(files)
		}},
		"SOL329": {files: func(files fstest.MapFS) { files[crds+"again_crd.yaml"] = files[crd] }},
		"SOL330": {files: edit(crd, "  versions:\n", "  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {namespace: web, name: convert}}}}\n  versions:\n")},
	}
}

// packFiles makes a .tgz. Writing to memory does not fail.
func packFiles(files map[string]string) []byte {
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	archive := tar.NewWriter(compressed)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		_ = archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name]))})
		_, _ = archive.Write([]byte(files[name]))
	}
	_ = archive.Close()
	_ = compressed.Close()
	return packed.Bytes()
}
