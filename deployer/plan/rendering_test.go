package plan

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRenderingIsRemembered(t *testing.T) {
	yes, no, class := true, false, "nginx"
	before := map[string]string{SettingWebhook: "true", SettingIngressClass: "haproxy", settingImages: "busybox"}
	for _, test := range []struct {
		name string
		say  Rendering
		want map[string]string
	}{
		{"nothing said", Rendering{}, before},
		{"switched off", Rendering{Webhook: &no}, map[string]string{SettingIngressClass: "haproxy", settingImages: "busybox"}},
		{"switched on", Rendering{ClusterWide: &yes}, map[string]string{
			SettingWebhook: "true", SettingClusterWide: "true", SettingIngressClass: "haproxy", settingImages: "busybox",
		}},
		{"another class", Rendering{IngressClass: &class}, map[string]string{SettingWebhook: "true", SettingIngressClass: "nginx", settingImages: "busybox"}},
		{"a hazard, for this run", Rendering{AcceptHazards: []string{HazardForeignImages}}, before},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, test.say.merge(maps.Clone(before))); diff != "" {
				t.Error(diff)
			}
		})
	}
}
