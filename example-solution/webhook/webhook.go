package main

import (
	"encoding/json"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/solutionctl/example-solution/api/conversion"
)

// maxReview is more than the API server ever sends: a list is at most as large as what it reads from etcd at once.
const maxReview = 64 << 20

// review is a ConversionReview of apiextensions.k8s.io/v1, its objects as they came.
type review struct {
	metav1.TypeMeta `json:",inline"`
	Request         *request  `json:"request,omitempty"`
	Response        *response `json:"response,omitempty"`
}

type request struct {
	UID               types.UID        `json:"uid"`
	DesiredAPIVersion string           `json:"desiredAPIVersion"`
	Objects           []map[string]any `json:"objects"`
}

type response struct {
	UID              types.UID        `json:"uid"`
	ConvertedObjects []map[string]any `json:"convertedObjects"`
	Result           metav1.Status    `json:"result"`
}

// Handler answers ConversionReviews at /convert.
func Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /convert", func(w http.ResponseWriter, r *http.Request) {
		var asked review
		decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxReview))
		decoder.UseNumber() // numbers go out as they came in
		if err := decoder.Decode(&asked); err != nil || asked.Request == nil {
			http.Error(w, "want a ConversionReview with a request", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review{TypeMeta: asked.TypeMeta, Response: answer(asked.Request)}) // fails when the caller has gone
	})
	return mux
}

// answer converts all objects or none.
func answer(asked *request) *response {
	for _, object := range asked.Objects {
		if err := conversion.Convert(object, asked.DesiredAPIVersion); err != nil {
			return &response{UID: asked.UID, Result: metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}}
		}
	}
	return &response{UID: asked.UID, ConvertedObjects: asked.Objects, Result: metav1.Status{Status: metav1.StatusSuccess}}
}
