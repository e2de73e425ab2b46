package lint_test

func upgradeMutations() map[string]mutation { return nil }
