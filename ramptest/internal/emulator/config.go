package emulator

import (
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/audit"
	"github.com/token-ramp/ramp-go/ramptest/internal/fault"
	"github.com/token-ramp/ramp-go/ramptest/internal/history"
	"github.com/token-ramp/ramp-go/ramptest/internal/statefile"
	"github.com/token-ramp/ramp-go/ramptest/internal/trade"
)

// Mode is how the findings of the audit are reported, see Audit of package ramptest.
type Mode int

// The modes.
const (
	Fail Mode = iota
	Report
	Off
)

// Config configures a [Service]. Config of package ramptest explains each field, has the defaults, and
// checks them.
type Config struct {
	Key                                  ramp.HMACKey
	Validator                            common.Address
	Game                                 string
	AssetsPath, ValidatePath, ResultPath string
	ProjectID                            string
	Networks                             map[ramp.Network]uint64
	Client                               *http.Client // nil for one of the service's own
	Timeout                              time.Duration

	Epoch   time.Time
	Mode    Mode
	Closed  bool
	NoThief bool
	UUID    func() uuid.UUID

	Incomplete   bool // the test may end before everything was seen
	Settle       time.Duration
	Finding      func(*audit.Finding) error // returns a finding as an error
	Regenerating []string
	Mailbox      func(ramp.Session) []ramp.Asset
	IsUnitTest   bool // nothing but a test drives the service: no clock, no page, and no other service

	FailureStatus int
	MaxBody       int64
	Schedule      []time.Duration
	Retry         func(status int) bool

	AcceptExpired bool
	UUIDDigits    bool
	ResultType    string
	Rules         trade.Rules
	Wallet        func(ramp.Session) *ramp.Signer
	Digest        func(*ramp.ValidateRequest) ramp.Digest
	Faults        fault.Forms

	Confirmations int
	BlockTime     time.Duration
	Tokens        ramp.Amount
	AuthorizeRPC  func(*http.Request) bool

	Listener     net.Listener
	PublicURL    string
	ControlToken string
	Keys         string
	Secrets      []string
	Speed        float64
	State        *statefile.File
	KeepOrders   int
	OnEvent      func(control.Event)
	OtherKey     ramp.HMACKey
}

func (c *Config) wallet(session ramp.Session) (*ramp.Signer, error) {
	signer := c.Wallet(session)
	if signer == nil {
		return nil, errors.New("ramptest: Config.Wallet returned nil for the session")
	}
	return signer, nil
}

// secrets returns what the service shows to nobody.
func (c *Config) secrets() history.Secrets {
	known := append([]string{c.ControlToken}, c.Secrets...)
	if at, err := url.Parse(c.Game); err == nil && at.User != nil {
		name := at.User.Username()
		password, _ := at.User.Password()
		known = append(known, password, base64.StdEncoding.EncodeToString([]byte(name+":"+password)))
	}
	return history.NewSecrets(c.Key, known...)
}
