package promql

import (
	"slices"

	"github.com/prometheus/prometheus/promql/parser"
)

// Mixes reports whether a result of the expression can combine series of several namespaces, for example in a sum that
// drops the label. Selecting series by namespace counts as intended.
func (e *Expression) Mixes() bool { return mixes(e.root) }

func mixes(node parser.Node) bool {
	switch n := node.(type) {
	case *parser.VectorSelector:
		return false
	case *parser.AggregateExpr:
		if !picks(n.Op) && n.Without == slices.Contains(n.Grouping, Namespace) {
			return !scoped(n)
		}
	case *parser.BinaryExpr:
		m := n.VectorMatching
		if m != nil && m.Card == parser.CardOneToOne && m.On != slices.Contains(m.MatchingLabels, Namespace) {
			return !scoped(n)
		}
	case *parser.Call:
		if slices.Contains([]string{"absent", "absent_over_time", "scalar"}, n.Func.Name) {
			return !scoped(n)
		}
	}
	return slices.ContainsFunc(parser.Children(node), mixes)
}

// picks reports whether an aggregation chooses among series, which keep their labels.
func picks(op parser.ItemType) bool { return op == parser.TOPK || op == parser.BOTTOMK }

// scoped reports whether each selector below selects namespaces.
func scoped(node parser.Node) bool {
	if s, ok := node.(*parser.VectorSelector); ok {
		return selectorOf(s).Matches(Namespace)
	}
	return !slices.ContainsFunc(parser.Children(node), func(n parser.Node) bool { return !scoped(n) })
}
