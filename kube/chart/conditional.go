package chart

import (
	"context"
	"slices"
)

// Conditional returns the objects that a chart has only where the cluster serves more APIs than a rendering had, and those APIs: the ones that
// its templates name beside .Capabilities.APIVersions. The options and the rendering are without these APIs.
func (c *Chart) Conditional(ctx context.Context, o Options, plain *Rendering) (objects []Manifest, apis []string, err error) {
	capabilities, err := c.capabilities(o)
	if err != nil {
		return nil, nil, err
	}
	apis = slices.DeleteFunc(c.engine.AskedVersions(), capabilities.APIVersions.Has)
	if len(apis) == 0 {
		return nil, nil, nil
	}
	o.APIVersions = slices.Concat(capabilities.APIVersions, apis)
	full, err := c.Render(ctx, o)
	if err != nil {
		return nil, apis, err
	}
	known := map[string]bool{}
	for _, m := range plain.Manifests {
		known[m.Template+"\x00"+string(m.Text)] = true
	}
	objects = slices.DeleteFunc(full.Manifests, func(m Manifest) bool {
		return m.Object == nil || m.Hook != nil && m.Hook.OnlyTests() || known[m.Template+"\x00"+string(m.Text)]
	})
	return objects, apis, nil
}
