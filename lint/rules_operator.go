package lint

func operatorRules() []Rule {
	return []Rule{}
}
