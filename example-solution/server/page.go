package main

import (
	_ "embed"
	"encoding/json"
	"html/template"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

//go:embed page.html
var pageHTML string

var pageTemplate = template.Must(template.New("page").Parse(pageHTML))

// Page is the content of a visitor's page; Version and Hostname identify the server that answered.
type Page struct {
	Title    string   `json:"title"`
	Message  string   `json:"message"`
	Theme    string   `json:"theme"`
	Banners  []string `json:"banners,omitempty"`
	Version  string   `json:"version"`
	Hostname string   `json:"hostname"`
}

// Handler serves the page as HTML at / and as JSON at /info, and counts requests in the registry.
func (p Page) Handler(registry prometheus.Registerer) http.Handler {
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name:        "website_requests_total",
		Help:        "Requests answered.",
		ConstLabels: prometheus.Labels{"version": p.Version},
	}, []string{"code"})
	registry.MustRegister(requests)

	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", p.html)
	mux.HandleFunc("GET /info", p.info)
	return promhttp.InstrumentHandlerCounter(requests, mux)
}

// The errors of writing a response are not handled: they mean that the visitor has gone.

func (p Page) html(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = pageTemplate.Execute(w, p)
}

func (p Page) info(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(p)
}
