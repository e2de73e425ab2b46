package page_test

import (
	"bytes"
	"testing"

	"github.com/solutionctl/solutionctl/deployer/console/page"
)

func honest(text string) string { return text }

func render(t *testing.T, p *page.Pages, v page.View) string {
	t.Helper()
	var b bytes.Buffer
	if err := p.Render(&b, v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func newPages(t *testing.T, base string) *page.Pages {
	t.Helper()
	p, err := page.New(base)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestRender(t *testing.T) {
	p := newPages(t, "")
	for name, v := range samples(honest) {
		t.Run(name, func(t *testing.T) { render(t, p, v) })
	}
}
