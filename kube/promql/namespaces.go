package promql

import (
	"slices"

	"github.com/prometheus/prometheus/promql/parser"
)

// Mixes tells whether a result of the expression may stand for series of several namespaces: because it adds them up, say,
// and does not keep the label apart. Series whose namespaces are selected are together on purpose.
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

// picks tells whether an aggregation chooses among series, which keep their labels.
func picks(op parser.ItemType) bool { return op == parser.TOPK || op == parser.BOTTOMK }

// scoped tells whether each selector below says which namespaces are meant.
func scoped(node parser.Node) bool {
	if s, ok := node.(*parser.VectorSelector); ok {
		return selectorOf(s).Matches(Namespace)
	}
	return !slices.ContainsFunc(parser.Children(node), func(n parser.Node) bool { return !scoped(n) })
}
