package main

import (
	"net/url"
	"path/filepath"

	"github.com/solutionctl/solutionctl/lint"
	"github.com/solutionctl/solutionctl/schema/report"
)

// The parts of SARIF 2.1.0 (OASIS Static Analysis Results Interchange Format) that findings need.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool       sarifTool     `json:"tool"`
		ColumnKind string        `json:"columnKind"`
		Results    []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version,omitempty"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID                   string             `json:"id"`
		Name                 string             `json:"name"`
		ShortDescription     sarifText          `json:"shortDescription"`
		FullDescription      sarifText          `json:"fullDescription"`
		DefaultConfiguration sarifConfiguration `json:"defaultConfiguration"`
		Properties           sarifProperties    `json:"properties"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifConfiguration struct {
		Level string `json:"level"`
	}
	sarifProperties struct {
		Tags []string `json:"tags"`
	}
	sarifResult struct {
		RuleID       string             `json:"ruleId"`
		Level        string             `json:"level"`
		Message      sarifText          `json:"message"`
		Locations    []sarifLocation    `json:"locations,omitempty"`
		Suppressions []sarifSuppression `json:"suppressions,omitempty"`
	}
	sarifLocation struct {
		Physical sarifPhysical `json:"physicalLocation"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn,omitempty"`
	}
	sarifSuppression struct {
		Kind          string `json:"kind"`
		Justification string `json:"justification"`
	}
)

func sarifOf(s *lint.Report, version string) sarifLog {
	run := sarifRun{
		Tool:       sarifTool{sarifDriver{Name: "solutionctl", Version: version, Rules: []sarifRule{}}},
		ColumnKind: "unicodeCodePoints", Results: []sarifResult{},
	}
	for _, rule := range lint.Rules() {
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{
			rule.ID, rule.Name,
			sarifText{rule.Summary},
			sarifText{rule.Explanation},
			sarifConfiguration{string(rule.Severity)},
			sarifProperties{[]string{string(rule.Group)}},
		})
	}
	for _, t := range s.Targets {
		for _, f := range t.Findings {
			run.Results = append(run.Results, sarifResultOf(lintPlace(t, f)))
		}
		for _, f := range t.Suppressed {
			result := sarifResultOf(lintPlace(t, f.Finding))
			result.Suppressions = []sarifSuppression{{"inSource", f.Reason}}
			run.Results = append(run.Results, result)
		}
	}
	return sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}}
}

func sarifResultOf(f report.Finding) sarifResult {
	result := sarifResult{RuleID: f.Rule, Level: string(f.Severity), Message: sarifText{lintMessage(f)}}
	place := sarifLocation{sarifPhysical{Artifact: sarifArtifact{(&url.URL{Path: filepath.ToSlash(f.Path)}).String()}}}
	if f.Line > 0 {
		place.Physical.Region = &sarifRegion{f.Line, f.Column}
	}
	result.Locations = []sarifLocation{place}
	return result
}
