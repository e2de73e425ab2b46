package lint_test

func completenessMutations() map[string]mutation { return nil }
