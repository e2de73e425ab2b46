package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/solutionctl/solutionctl/deployer/cluster"
	"github.com/solutionctl/solutionctl/schema/report"
)

// claim is a volume claim of a StatefulSet that is to be enlarged.
type claim struct {
	live *unstructured.Unstructured
	size string
}

// claimsToGrow returns the claims of a replaced StatefulSet that are smaller than in its new templates, because a StatefulSet never
// changes existing claims. Claims that the server does not enlarge are listed in the notes.
func (d *decider) claimsToGrow(ctx context.Context, s *step) (claims []claim, notes []string, err error) {
	sizes := templateSizes(s.desired)
	if len(sizes) == 0 {
		return nil, nil, nil
	}
	for live, err := range d.Cluster.List(ctx, cluster.ClaimKind, s.Object.Namespace, metav1.ListOptions{}) {
		if report.CodeOf(err) == report.Forbidden {
			return nil, []string{"its claims stay as they are: you do not have permission to list them"}, nil
		}
		if err != nil {
			return nil, nil, err
		}
		c := claim{live, sizes[templateOf(live.GetName(), s.Object.Name)]}
		has, _, _ := unstructured.NestedString(live.Object, "spec", "resources", "requests", "storage")
		if !smaller(has, c.size) {
			continue
		}
		if err := d.grow(ctx, c, true); err != nil {
			notes = append(notes, fmt.Sprintf("claim %s stays at %s: %v", live.GetName(), has, err))
			continue
		}
		claims = append(claims, c)
		notes = append(notes, fmt.Sprintf("claim %s grows from %s to %s", live.GetName(), has, c.size))
	}
	return claims, notes, nil
}

// templateSizes returns the sizes in the volume claim templates of a StatefulSet, by their names.
func templateSizes(object *unstructured.Unstructured) map[string]string {
	sizes := map[string]string{}
	templates, _, _ := unstructured.NestedSlice(object.Object, "spec", "volumeClaimTemplates")
	for _, t := range templates {
		template, _ := t.(map[string]any)
		name, _, _ := unstructured.NestedString(template, "metadata", "name")
		if size, ok, _ := unstructured.NestedFieldNoCopy(template, "spec", "resources", "requests", "storage"); ok {
			sizes[name] = fmt.Sprint(size)
		}
	}
	return sizes
}

// templateOf returns the name of the template from which a StatefulSet has created a claim; "" if the claim is not of this StatefulSet.
func templateOf(claim, set string) string {
	at := strings.LastIndexByte(claim, '-')
	if at < 0 {
		return ""
	}
	if _, err := strconv.ParseUint(claim[at+1:], 10, 31); err != nil {
		return ""
	}
	template, ok := strings.CutSuffix(claim[:at], "-"+set)
	if !ok {
		return ""
	}
	return template
}

// smaller compares two sizes; an invalid size is not smaller than another one.
func smaller(a, b string) bool {
	x, err := resource.ParseQuantity(a)
	if err != nil {
		return false
	}
	y, err := resource.ParseQuantity(b)
	return err == nil && x.Cmp(y) < 0
}

// grow sets the size of a claim.
func (e *Engine) grow(ctx context.Context, c claim, dryRun bool) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": c.live.GetUID()},
		"spec":     map[string]any{"resources": map[string]any{"requests": map[string]any{"storage": c.size}}},
	})
	if err != nil {
		return err
	}
	_, err = e.Cluster.Patch(ctx, c.live, types.MergePatchType, patch, cluster.WriteOptions{DryRun: dryRun})
	return err
}
