package schema

func checkSolution(c *checker) {}
func checkSolutionBuild(c *checker) {}
func checkSolutionsConfiguration(c *checker) {}
func checkOperatorConfig(c *checker) {}
func (c *checker) checkYAML11() {}

func (d *Document) sourceText(path []string) string {
	node := d.root
	for _, step := range path {
		_, value := child(node, step)
		if value == nil {
			return ""
		}
		node = value
	}
	return node.Value
}
