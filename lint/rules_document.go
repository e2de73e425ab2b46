package lint

func documentRules() []Rule {
	return []Rule{}
}
