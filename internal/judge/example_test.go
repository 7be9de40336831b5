package judge_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/judge"
)

// A server that was written by hand, in whatever language, is asked over HTTP.
// This one writes balances as numbers.
func ExampleJudge_Try() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w,
			`{"success":true,"errorCode":null,"data":{"v1":{"assets":[{"id":"item_gold","balance":1000}]}}}`)
	}))
	defer server.Close()

	key, err := ramp.TextKey("the key of the console")
	if err != nil {
		fmt.Println(err)
		return
	}
	j, err := judge.New(judge.Config{
		URL:       server.URL,
		Key:       key,
		Validator: [20]byte{1},
		Player: func(_ context.Context, name string) (ramp.Session, error) { // log in as your players do
			return ramp.Session{ID: name, Token: ramp.NewAccessToken("token")}, nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer j.Close()
	for _, c := range judge.Cases() {
		if c.ID == "assets-balance-string" {
			fmt.Println(j.Try(context.Background(), c))
		}
	}
	// Output:
	// MUST (interface 2.4): A balance is a decimal string.
	//   saw:  a balance that is a JSON number
	//   want: a JSON string such as "1000"
	//   fix:  Write balances as JSON strings of plain decimals, not as numbers.
}
