package main

import (
	"encoding/json"
	"time"
)

// provenance returns where the files come from, as a statement of in-toto with a predicate of SLSA. It claims no more than it knows: the
// builder is the script, on any machine.
func (r release) provenance(files []sum) ([]byte, error) {
	var subjects []object
	for _, f := range files {
		subjects = append(subjects, object{"name": f.name, "digest": object{"sha256": f.digest}})
	}
	source := object{"uri": "git+" + repository + "@refs/tags/v" + r.version}
	if r.commit != "" {
		source["digest"] = object{"gitCommit": r.commit}
	}
	return json.Marshal(object{
		"_type": "https://in-toto.io/Statement/v1", "subject": subjects, "predicateType": "https://slsa.dev/provenance/v1",
		"predicate": object{
			"buildDefinition": object{
				"buildType":            repository + "/blob/main/docs/releases.md",
				"externalParameters":   object{"version": r.version},
				"internalParameters":   object{"SOURCE_DATE_EPOCH": r.created.Unix()},
				"resolvedDependencies": []object{source},
			},
			"runDetails": object{
				"builder":  object{"id": repository + "/blob/v" + r.version + "/.ci/release"},
				"metadata": object{"startedOn": r.created.Format(time.RFC3339)},
			},
		},
	})
}
