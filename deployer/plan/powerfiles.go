package plan

import (
	"iter"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/solutionctl/solutionctl/deployer/definitions"
	"github.com/solutionctl/solutionctl/deployer/engine"
	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/deployer/render"
	"github.com/solutionctl/solutionctl/kube/powers"
	"github.com/solutionctl/solutionctl/schema"
)

// plansOf returns the plans that deploy a Solution in a namespace, or in the cluster: its own and those of its components.
func (r *Run) plansOf(key record.Key) iter.Seq[*engine.Plan] {
	return func(yield func(*engine.Plan) bool) {
		for _, p := range r.Plans {
			if p.Release.Namespace == key.Namespace && p.Release.Name == key.Name && p.Release.Version != "" && !yield(p) {
				return
			}
		}
	}
}

// judgeWithFiles judges the planned objects of a Solution together with the files of the archive that they are from. Their releases do not
// have these: each is rendered again, which is only worth it where there are powers. A dashboard can be where the site wants it: its ConfigMap
// has nothing else.
func (r *Run) judgeWithFiles(owner powers.Owner, j *judged) []schema.Power {
	var list []powers.Object
	dashboards := map[schema.ObjectRef]bool{}
	for p := range r.plansOf(j.key) {
		fileOf := render.Files(j.payload, p.Release.Component, j.key.Namespace, j.monitoring, r.Now())
		for _, object := range withTasks(&p.Release) {
			file := fileOf(object)
			list = append(list, judgeable(j.key, []*unstructured.Unstructured{object}, file)...)
			if p.Release.Component == "" && strings.HasPrefix(file, "monitoring/dashboards/") {
				dashboards[records.RefOf(object.GroupVersionKind(), object)] = true
			}
		}
	}
	return slices.DeleteFunc(powers.Judge(owner, list), func(p schema.Power) bool {
		return p.Name == schema.PowerObjectsElsewhere && dashboards[p.Object]
	})
}

// judgeable returns objects of a file as they are judged. What protects definitions is made by solutionctl, and asks for nothing.
func judgeable(key record.Key, objects []*unstructured.Unstructured, file string) []powers.Object {
	protection := definitions.Protect(key, nil)
	var list []powers.Object
	for _, object := range objects {
		if !slices.ContainsFunc(protection, func(p *unstructured.Unstructured) bool {
			return p.GetKind() == object.GetKind() && p.GetName() == object.GetName() && reflect.DeepEqual(p.Object["spec"], object.Object["spec"])
		}) {
			list = append(list, powers.Object{File: file, Unstructured: object})
		}
	}
	return list
}
