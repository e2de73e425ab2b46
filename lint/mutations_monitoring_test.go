package lint_test

func monitoringMutations() map[string]mutation { return nil }
