module github.com/solutionctl/solutionctl

go 1.26
