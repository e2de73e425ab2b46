package testcluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// Compact makes etcd forget all states but the present one, as it does from time to time.
func (c *Cluster) Compact(ctx context.Context) error {
	var status struct {
		Header struct{ Revision string }
	}
	answer, err := c.askEtcd(ctx, "maintenance/status", "{}")
	if err != nil {
		return err
	}
	if err = json.Unmarshal(answer, &status); err != nil {
		return fmt.Errorf("status of etcd: %w: %s", err, answer)
	}
	_, err = c.askEtcd(ctx, "kv/compaction", fmt.Sprintf(`{"revision":%q,"physical":true}`, status.Header.Revision))
	if err != nil && strings.Contains(err.Error(), "has been compacted") {
		return nil // another process was quicker
	}
	return err
}

func (c *Cluster) askEtcd(ctx context.Context, call, question string) ([]byte, error) {
	address := "http://" + net.JoinHostPort(c.private, c.ports.etcdClient) + "/v3/" + call
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader([]byte(question)))
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("etcd: %s: %s: %s", call, response.Status, answer)
	}
	return answer, nil
}
