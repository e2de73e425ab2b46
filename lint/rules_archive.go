package lint

func archiveRules() []Rule {
	return []Rule{}
}
