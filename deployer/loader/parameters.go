package loader

import (
	"encoding/json"

	"github.com/solutionctl/solutionctl/schema"
	"github.com/solutionctl/solutionctl/schema/report"
)

// ParseParameters parses the files of the pod of a run: the parameters, and the values of charts, nil where there are
// none.
func ParseParameters(parameters, values []byte) (*schema.LoadParameters, error) {
	p, err := schema.ParseStored[schema.LoadParameters]("load", parametersKey, parameters)
	if err != nil || values == nil {
		return p, err
	}
	var hidden hiddenValues
	if err := json.Unmarshal(values, &hidden); err != nil {
		return nil, report.Errorf(report.Corrupt, "%s is not what the launcher wrote", valuesKey) // its content is secret
	}
	for i, e := range p.Environments {
		for j, s := range e.Solutions {
			p.Environments[i].Solutions[j].Values = hidden[e.Name][s.Name]
		}
	}
	return p, nil
}
