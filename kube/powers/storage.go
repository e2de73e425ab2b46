package powers

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/schema"
)

// volume judges a PersistentVolume: what it is made of, and whose claim it answers.
func (j *judgement) volume(o Object) {
	spec := nestedMap(o.Object, "spec")
	for _, source := range []string{"hostPath", "local"} {
		if content, ok := spec[source].(map[string]any); ok {
			name, _ := content["path"].(string)
			j.place(o, "spec."+source).add(schema.PowerRawStorage, schema.ReachNode, "mount a path of a node ("+describePath(name)+")", source+" "+name)
			return
		}
	}
	j.place(o, "spec").add(schema.PowerUsesForeignData, schema.ReachOutside, "offer a volume that it has not claimed", "volume"+digestOf(spec))
}

// claim judges the spec of a claim: the volume that it takes, and the data that it starts with.
func (j *judgement) claim(o Object, spec map[string]any, at string) {
	if name := stringIn(spec, "volumeName"); name != "" {
		j.place(o, at+".volumeName").add(schema.PowerUsesForeignData, schema.ReachNamespaces, "take a volume by its name ("+name+")", "volume "+name)
	}
	for _, field := range []string{"dataSource", "dataSourceRef"} {
		source := nestedMap(spec, field)
		group, kind, name, namespace := stringIn(source, "apiGroup"), stringIn(source, "kind"), stringIn(source, "name"), stringIn(source, "namespace")
		if name == "" || (namespace == "" || j.own[namespace]) && (j.ownsKind(group, kind) || j.bringsData(o, group, kind, orOwn(o, namespace), name)) {
			continue
		}
		of := kind + "/" + name
		if namespace != "" {
			of = kind + "/" + namespace + "/" + name
		}
		j.place(o, at+"."+field).add(schema.PowerUsesForeignData, schema.ReachNamespaces, "copy data that the archive does not bring ("+of+")", of)
	}
}

// orOwn returns a namespace, where that is "" the one of the object that refers to it.
func orOwn(o Object, namespace string) string {
	return cmp.Or(namespace, o.GetNamespace())
}

// bringsData reports whether an object with data, to which another one refers, is among the objects, or a claim is of one of their
// StatefulSets.
func (j *judgement) bringsData(o Object, group, kind, namespace, name string) bool {
	if j.brings(group, kind, namespace, name) || group != "" || kind != "PersistentVolumeClaim" || !j.spend(refOf(o), len(j.claimPrefixes)) {
		return j.brings(group, kind, namespace, name)
	}
	claim := namespace + "/" + name
	return slices.ContainsFunc(j.claimPrefixes, func(prefix string) bool { return IsNumbered(claim, prefix) })
}

// ClaimPrefixes returns the names of the claims that a StatefulSet makes, each without the number at its end.
func ClaimPrefixes(set *unstructured.Unstructured) (prefixes []string) {
	for _, template := range nested(set.Object, "spec", "volumeClaimTemplates") {
		prefixes = append(prefixes, stringIn(nestedMap(template, "metadata"), "name")+"-"+set.GetName()+"-")
	}
	return prefixes
}

// IsNumbered reports whether a name is a prefix with a number.
func IsNumbered(name, prefix string) bool {
	number, found := strings.CutPrefix(name, prefix)
	_, err := strconv.ParseUint(number, 10, 32)
	return found && err == nil
}

// snapshots judges what data snapshots are of.
func (j *judgement) snapshots(o Object) {
	switch o.GetKind() {
	case "VolumeSnapshotClass":
		if isDefault(o, "snapshot.storage.kubernetes.io/is-default-class") {
			j.byDefault(o)
		}
		j.class(o, text(o, "driver"))
	case "VolumeSnapshotContent":
		j.place(o, "spec.source").add(schema.PowerUsesForeignData, schema.ReachOutside, "offer a snapshot of a volume that it has not made", "snapshot"+digestOf(nestedMap(o.Object, "spec")))
	case "VolumeSnapshot":
		if name := text(o, "spec", "source", "volumeSnapshotContentName"); name != "" {
			j.place(o, "spec.source").add(schema.PowerUsesForeignData, schema.ReachNamespaces, "take a snapshot by its name ("+name+")", "snapshot "+name)
		}
		name := text(o, "spec", "source", "persistentVolumeClaimName")
		if name != "" && !j.bringsData(o, "", "PersistentVolumeClaim", o.GetNamespace(), name) {
			j.place(o, "spec.source").add(schema.PowerUsesForeignData, schema.ReachNamespaces, "copy data that the archive does not bring (PersistentVolumeClaim/"+name+")", name)
		}
	default:
		j.foreign(o)
	}
}

// ofClaim are variables of a class that stand for the namespace of the claim or snapshot, or for a name that Kubernetes makes.
var ofClaim = []string{
	"${pvc.namespace}", "${pv.name}", "${volumesnapshot.namespace}", "${volumesnapshotcontent.name}",
	"${volumegroupsnapshot.namespace}", "${volumegroupsnapshotcontent.name}",
}

// class judges what a driver does for a class: its parameters can name a path of a node, or a share of others. The Secrets that it reads are
// of others where they are in a namespace that is not the Solution's.
func (j *judgement) class(o Object, driver string) {
	var namespaces, parameters []string
	for key, value := range nestedMap(o.Object, "parameters") {
		text, _ := value.(string)
		switch end := strings.ReplaceAll(strings.ToLower(key), "-", ""); {
		case strings.HasSuffix(end, "secretnamespace"):
			if text != "" && !slices.Contains(ofClaim, text) && !j.own[text] {
				namespaces = append(namespaces, text)
			}
		case !strings.HasSuffix(end, "secretname") && !strings.HasSuffix(end, "fstype"):
			parameters = append(parameters, key+"="+text)
		}
	}
	if len(parameters) > 0 && !j.brings("storage.k8s.io", "CSIDriver", "", driver) {
		settings := []any{o.Object["parameters"], o.GetAnnotations(), o.Object["mountOptions"]}
		j.place(o, "parameters").add(schema.PowerRawStorage, schema.ReachNode,
			"have the driver "+driver+" act by parameters of its choice ("+shortened(enumerate(set(parameters)), "SHA-256 ")+")", driver+digestOf(settings))
	}
	if len(namespaces) == 0 {
		return
	}
	namespaces = set(namespaces)
	reach := schema.ReachNamespaces
	if slices.ContainsFunc(namespaces, schema.IsSystemNamespace) {
		reach = schema.ReachCluster
	}
	j.place(o, "parameters").add(schema.PowerUsesForeignData, reach, fmt.Sprintf("have a driver use Secrets of %s", placeText(namespaces)), namespaces...)
}

// devices judges claims of devices.
func (j *judgement) devices(o Object) {
	spec, at := nestedMap(o.Object, "spec"), "spec"
	if o.GetKind() == "ResourceClaimTemplate" {
		spec, at = nestedMap(spec, "spec"), "spec.spec"
	}
	for i, request := range nested(spec, "devices", "requests") {
		if request["adminAccess"] == true || nestedMap(request, "exactly")["adminAccess"] == true {
			j.place(o, indexed(at+".devices.requests", i)).add(schema.PowerControlNodes, schema.ReachNode, "use devices that others have (adminAccess)", "adminAccess")
		}
	}
}
