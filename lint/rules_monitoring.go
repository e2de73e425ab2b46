package lint

func monitoringRules() []Rule {
	return []Rule{}
}
