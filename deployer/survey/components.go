package survey

import (
	"cmp"
	"slices"

	"github.com/solutionctl/solutionctl/deployer/engine/record"
	"github.com/solutionctl/solutionctl/deployer/records"
	"github.com/solutionctl/solutionctl/schema"
)

// addComponents adds to the status of a Solution those of its components.
func (s *picture) addComponents(status *schema.DeploymentStatus, own record.Key, environment string, worsen func(schema.DeploymentHealth, ...schema.Reason)) {
	for _, key := range s.components(own) {
		c := s.component(key, environment)
		if f := s.findings[key]; f != nil {
			status.Objects, status.Ready, status.Completed = status.Objects+f.objects, status.Ready+f.ready, status.Completed+f.completed
			status.Waiting = append(status.Waiting, f.waiting...)
			if s.closely {
				status.Drift = append(status.Drift, f.drift...)
			}
		}
		worsen(c.Health)
		for _, reason := range c.Reasons {
			reason.Component = c.Name
			worsen(c.Health, reason)
		}
		status.Components = append(status.Components, c)
	}
}

// components returns the keys of the deployed components of a Solution, sorted.
func (s *picture) components(own record.Key) []record.Key {
	var keys []record.Key
	for _, key := range s.in(own.Namespace) {
		if key.Component != "" && key.Name == own.Name {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, record.CompareKeys)
	return slices.Compact(keys)
}

// component judges one component.
func (s *picture) component(key record.Key, environment string) schema.ComponentStatus {
	c := schema.ComponentStatus{Name: key.Component, Health: schema.HealthReady, Reasons: []schema.Reason{}}
	state := s.states[key]
	if f := s.findings[key]; f != nil {
		c.Objects, c.Ready, c.Health = f.objects, f.ready, f.health
		c.Reasons = append(c.Reasons, f.reasons...)
	}
	lost := s.lost[key]
	switch {
	case state != nil && state.Damage != nil:
		c.Health = schema.HealthFailed
		c.Reasons = append(c.Reasons, schema.Reason{Text: "its record cannot be read: " + unreadable(state.Damage, environment, key)})
	case lost != nil:
		_, deployed := records.DeployedVersion(cmp.Or(state, &record.State{}))
		c.Health = schema.HealthFailed
		c.Reasons = append(c.Reasons, schema.Reason{Text: offRecord(lost, deployed, Rebuilding(environment, key))})
	case state.Pending != nil && severity(c.Health) < severity(schema.HealthPending):
		c.Health = schema.HealthPending
	}
	if state != nil && state.Current != nil {
		c.Version = state.Current.Version
	}
	return c
}
