package lint

func upgradeRules() []Rule {
	return []Rule{}
}
