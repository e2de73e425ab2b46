package lint_test

func operatorMutations() map[string]mutation { return nil }
