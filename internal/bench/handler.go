package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	ramp "github.com/token-ramp/ramp-go"
)

const validatorKey = "1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"

// handlerComparisons serve signed calls over real connections. The client is as cheap
// as possible and the same on both sides. The times include it.
func handlerComparisons() []comparison {
	compare := func(subject, path string, body []byte, byHand http.HandlerFunc) comparison {
		return comparison{subject: subject, rival: "barest handler by hand", setup: func() sides {
			ours, closeOurs := serve(newHandler(approvingGame{}), path, body)
			theirs, closeTheirs := serve(byHand, path, body)
			return sides{ours: ours, theirs: theirs, close: func() { closeOurs(); closeTheirs() }}
		}}
	}
	return []comparison{
		compare("validate over HTTP", ramp.PathValidate, []byte(validateBody), validateByHand()),
		compare("result over HTTP, 1 log", ramp.PathResult, resultBody(1), resultByHand),
	}
}

func newHandler(game ramp.Game) *ramp.Handler {
	return must(ramp.NewHandler(ramp.HandlerConfig{
		Terms:  must(ramp.NewTerms(ramp.TermsConfig{Any: true})),
		Game:   game,
		Key:    must(ramp.TextKey(hmacSecret)),
		Signer: must(ramp.NewKeySigner("0x" + validatorKey)),
		Logger: slog.New(slog.DiscardHandler),
	}))
}

// approvingGame has no database, so that only the handler is measured.
type approvingGame struct{}

func (approvingGame) Authenticate(context.Context, ramp.Session) error { return nil }
func (approvingGame) Assets(context.Context, ramp.Session) (*ramp.Player, error) {
	return &ramp.Player{}, nil
}
func (approvingGame) Validate(context.Context, ramp.Session, *ramp.ValidateRequest) error {
	return nil
}
func (approvingGame) Result(context.Context, ramp.Session, *ramp.Result) error { return nil }

// The handwritten handlers are the minimum that a careful studio would write: they
// limit and read the body, verify its HMAC, decode it and answer. They check neither
// the session nor the form of the values.

type envelope struct {
	Success   bool    `json:"success"`
	ErrorCode *string `json:"errorCode"`
	Data      any     `json:"data"`
}

type approval struct {
	UserSig      string `json:"userSig"`
	ValidatorSig string `json:"validatorSig"`
}

func validateByHand() http.HandlerFunc {
	key := must(crypto.HexToECDSA(validatorKey))
	return func(w http.ResponseWriter, r *http.Request) {
		var request plainValidate
		if err := readByHand(w, r, &request); err != nil {
			rejectByHand(w, err)
			return
		}
		digest, err := hexutil.Decode(request.Digest)
		if err != nil {
			rejectByHand(w, err)
			return
		}
		signature, err := crypto.Sign(digest, key) // fails unless digest has 32 bytes
		if err != nil {
			rejectByHand(w, err)
			return
		}
		signature[crypto.RecoveryIDOffset] += 27
		answerByHand(w, http.StatusOK, envelope{Success: true, Data: approval{request.UserSig, hexutil.Encode(signature)}})
	}
}

func resultByHand(w http.ResponseWriter, r *http.Request) {
	var result plainResult
	if err := readByHand(w, r, &result); err != nil {
		rejectByHand(w, err)
		return
	}
	answerByHand(w, http.StatusOK, envelope{Success: true})
}

func readByHand(w http.ResponseWriter, r *http.Request, into any) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		return err
	}
	if err := checkHMAC(body, r.Header.Get("X-HMAC-SIGNATURE")); err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}

func rejectByHand(w http.ResponseWriter, err error) {
	status, code := http.StatusBadRequest, "INVALID_BODY"
	if errors.Is(err, errNotAuthentic) {
		status, code = http.StatusUnauthorized, "HMAC_INVALID"
	}
	answerByHand(w, status, envelope{ErrorCode: &code})
}

func answerByHand(w http.ResponseWriter, status int, answer envelope) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer)
}

// serve starts a server with the handler. The call that it returns sends the signed
// body and checks that it is approved.
func serve(handler http.Handler, path string, body []byte) (call func() error, stop func()) {
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	server := &http.Server{Handler: handler}
	go func() { _ = server.Serve(listener) }() // returns when the listener is closed
	client := &rawClient{
		connection: must(net.Dial("tcp", listener.Addr().String())),
		request:    signedRequest(path, body),
		answer:     make([]byte, 64<<10),
	}
	return client.call, func() {
		_ = client.connection.Close()
		_ = server.Close()
	}
}

// signedRequest returns a call as it is sent over the wire (interface 4.3).
func signedRequest(path string, body []byte) []byte {
	head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: game.example\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"+
		"x-dapp-authorization: Bearer token-of-a-session\r\nx-dapp-sessionid: hero-4821\r\nx-hmac-signature: %s\r\n\r\n",
		path, len(body), must(ramp.TextKey(hmacSecret)).Sign(body))
	return append([]byte(head), body...)
}

// rawClient sends the same request repeatedly over one connection. It does not
// allocate, so that only the server's allocations are counted.
type rawClient struct {
	connection      net.Conn
	request, answer []byte
}

var approved = []byte("HTTP/1.1 200 OK\r\n")

func (c *rawClient) call() error {
	if _, err := c.connection.Write(c.request); err != nil {
		return err
	}
	for have, length := 0, 0; length == 0 || have < length; {
		n, err := c.connection.Read(c.answer[have:])
		if err != nil {
			return err
		}
		have += n
		_, length = messageLength(c.answer[:have])
	}
	if !bytes.HasPrefix(c.answer, approved) {
		line, _, _ := bytes.Cut(c.answer, []byte("\r\n"))
		return fmt.Errorf("the server answered %s", line)
	}
	return nil
}

var (
	headEnd       = []byte("\r\n\r\n")
	contentLength = []byte("\r\nContent-Length: ")
)

// messageLength returns the length of the head of an HTTP message and the length of
// the whole message. Both are 0 until the head is complete. It understands only
// messages that net/http writes.
func messageLength(received []byte) (head, whole int) {
	end := bytes.Index(received, headEnd)
	if end < 0 {
		return 0, 0
	}
	head = end + len(headEnd)
	length := 0
	if at := bytes.Index(received[:head], contentLength); at >= 0 {
		for _, digit := range received[at+len(contentLength):] {
			if digit < '0' || digit > '9' {
				break
			}
			length = 10*length + int(digit-'0')
		}
	}
	return head, head + length
}
