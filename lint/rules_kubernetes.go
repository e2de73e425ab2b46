package lint

func kubernetesRules() []Rule {
	return []Rule{}
}
