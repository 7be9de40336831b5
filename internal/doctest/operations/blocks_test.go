//go:build docs

// The blocks of docs/operations.md.
package operations

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// block: // withDeadline ends

func TestADeadlineEndsTheContext(t *testing.T) {
	handler := withDeadline(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		w.WriteHeader(http.StatusInternalServerError)
	}), time.Millisecond)
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/api/result", nil))
	require.Equal(t, http.StatusInternalServerError, answer.Code)
}
