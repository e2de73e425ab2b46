package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/term"

	"github.com/solutionctl/solutionctl/schema/report"
)

// Ask asks the person at a terminal and returns the line that is typed, without its end. No answer, because the input or
// the context ends, is an error with the code [report.Cancelled].
func Ask(ctx context.Context, in io.Reader, out *Stream, question string) (string, error) {
	fmt.Fprintf(out, "%s", Clean(question))
	return answer(ctx, out, func() (string, error) { return readLine(in) })
}

// AskSecret is like Ask for something that is not shown while it is typed.
func AskSecret(ctx context.Context, in io.Reader, out *Stream, question string) ([]byte, error) {
	terminal := descriptor(in)
	shown, err := term.GetState(terminal)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "%s", Clean(question))
	secret, err := answer(ctx, out, func() ([]byte, error) {
		defer fmt.Fprintln(out)
		return term.ReadPassword(terminal)
	})
	if ctx.Err() != nil { // the terminal is still being read from
		err = errors.Join(err, term.Restore(terminal, shown))
	}
	return secret, err
}

// answer reads until the context ends. The read itself then continues until the process ends, as it cannot be interrupted.
func answer[T any](ctx context.Context, out *Stream, read func() (T, error)) (T, error) {
	type result struct {
		text T
		err  error
	}
	typed := make(chan result, 1)
	go func() {
		text, err := read()
		typed <- result{text, err}
	}()
	var none T
	select {
	case <-ctx.Done():
		fmt.Fprintln(out)
		return none, report.Errorf(report.Cancelled, "not answered")
	case r := <-typed:
		if r.err != nil {
			return none, report.Errorf(report.Cancelled, "no answer: %w", r.err)
		}
		return r.text, nil
	}
}

// readLine takes nothing that follows the line: it may be the next answer.
func readLine(in io.Reader) (string, error) {
	var line strings.Builder
	for one := make([]byte, 1); ; {
		n, err := in.Read(one)
		switch {
		case n == 1 && one[0] == '\n':
			return strings.TrimSuffix(line.String(), "\r"), nil
		case n == 1:
			line.WriteByte(one[0])
		case errors.Is(err, io.EOF) && line.Len() > 0:
			return line.String(), nil
		case err != nil:
			return "", err
		}
	}
}
