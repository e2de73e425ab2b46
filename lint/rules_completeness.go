package lint

func completenessRules() []Rule {
	return []Rule{}
}
