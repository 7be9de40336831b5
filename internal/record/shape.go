package record

import (
	"fmt"
	"slices"
	"strings"

	"github.com/token-ramp/ramp-go/internal/redact"
)

// field is a field of a message, as the interface describes it.
type field struct {
	kinds     []string // its JSON types
	required  bool
	shown     bool // its text is public: it is on the chain, or in the console of everyone in the studio
	signature bool // its text is a signature of the player's wallet
	validator bool // its text is a signature of the validator key
}

// shape has the fields of a message by their path.
type shape map[string]field

// newShape reads a description: in each line a path, its JSON types, and words about it.
func newShape(description string) shape {
	s := shape{}
	for line := range strings.Lines(description) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		f := field{kinds: strings.Split(words[1], "|"), required: true}
		for _, word := range words[2:] {
			switch word {
			case "optional":
				f.required = false
			case "shown":
				f.shown = true
			case "signature":
				f.signature = true
			case "validator":
				f.validator = true
			}
		}
		s[words[0]] = f
	}
	return s
}

const intentShape = `
intent                          object
intent.method                   string shown
intent.type                     string shown
intent.from                     array
intent.from[]                   object
intent.from[].type              string shown
intent.from[].id                string shown
intent.from[].amount            number
intent.to                       array
intent.to[]                     object
intent.to[].type                string shown
intent.to[].id                  string shown
intent.to[].amount              number
intent.target_candidate         object optional
`

const itemsShape = `
intent.LIST                     array
intent.LIST[]                   object
intent.LIST[].id                string shown
intent.LIST[].amount            number
intent.LIST[].icon_url          string
intent.LIST[].is_non_fungible   boolean
`

// The messages of the interface.
var (
	initializeShape = newShape(`
player_id                       string optional
name                            string optional
wallet_address                  string optional
server                          string optional
intent                          object
intent.network                  string shown
intent.project_id               string shown
intent.token                    string shown
intent.mint_fee_bps             number
intent.burn_fee_bps             number
intent.mint_method              string shown
intent.burn_method              string shown
` + strings.ReplaceAll(itemsShape, "LIST", "materials") + strings.ReplaceAll(itemsShape, "LIST", "outputs"))

	initializeAnswerShape = newShape(`
code                            number
message                         string shown
data                            object|string shown
data.uuid                       string shown
`)

	assetsAnswerShape = newShape(`
success                         boolean
errorCode                       string|null shown
data                            object|null
data.v1                         object
data.v1.player_id               string optional
data.v1.name                    string optional
data.v1.wallet_address          string optional
data.v1.server                  string optional
data.v1.assets                  array
data.v1.assets[]                object
data.v1.assets[].id             string shown
data.v1.assets[].balance        string shown
`)

	validateShape = newShape(`
user_sig                        string signature
user_address                    string shown
project_id                      string shown
digest                          string shown
uuid                            string shown
` + intentShape)

	validateAnswerShape = newShape(`
success                         boolean
errorCode                       string|null shown
data                            object|null
data.userSig                    string signature
data.validatorSig               string validator
`)

	resultShape = newShape(`
session_id                      string
uuid                            string shown
tx_hash                         string shown
receipt                         object
receipt.type                    string shown
receipt.root                    string shown
receipt.status                  string shown
receipt.cumulativeGasUsed       string shown
receipt.logsBloom               string shown
receipt.logs                    array
receipt.logs[]                  object
receipt.logs[].address          string shown
receipt.logs[].topics           array
receipt.logs[].topics[]         string shown
receipt.logs[].data             string shown
receipt.logs[].blockNumber      string shown
receipt.logs[].transactionHash  string shown
receipt.logs[].transactionIndex string shown
receipt.logs[].blockHash        string shown
receipt.logs[].blockTimestamp   number
receipt.logs[].logIndex         string shown
receipt.logs[].removed          boolean
receipt.transactionHash         string shown
receipt.contractAddress         string shown
receipt.gasUsed                 string shown
receipt.effectiveGasPrice       string shown
receipt.blockHash               string shown
receipt.blockNumber             string shown
receipt.transactionIndex        string shown
intent.fee_rate                 number optional
intent.actual                   string shown optional
` + intentShape)

	resultAnswerShape = newShape(`
success                         boolean
errorCode                       string|null shown
data                            null
`)
)

// compare returns the fields of a message that the interface does not have, and how its others
// differ from the interface.
func (s shape) compare(text []byte) (fresh, deviations []string) {
	leaves, err := walk(text)
	if err != nil {
		return nil, []string{"the body is no JSON"}
	}
	if leaves[0].kind() != "object" {
		return nil, []string{"the body is no JSON object"}
	}
	parents := map[string]int{} // how often each object occurs
	found := map[string]int{}
	seen := map[string]bool{}
	once := func(list *[]string, format string, args ...any) {
		if line := redact.New().Line(fmt.Sprintf(format, args...), 200); !seen[line] {
			seen[line] = true
			*list = append(*list, line)
		}
	}
	for _, l := range leaves {
		if l.kind() == "object" {
			parents[l.path]++
		}
		f, known := s[l.path]
		switch {
		case l.path == "":
		case !known && s.inside(l.path):
			once(&fresh, "%s (%s)", l.path, l.kind())
		case !known: // inside of a new object
		case !slices.Contains(f.kinds, l.kind()):
			once(&deviations, "%s is of type %s, not %s", l.path, l.kind(), strings.Join(f.kinds, " or "))
		}
		found[l.path]++
	}
	for path, f := range s {
		parent := ""
		if dot := strings.LastIndexByte(path, '.'); dot >= 0 {
			parent = path[:dot]
		}
		if f.required && !strings.HasSuffix(path, "[]") && found[path] < parents[parent] {
			once(&deviations, "%s is missing", path)
		}
		if !strings.HasSuffix(path, "[]") && found[path] > parents[parent] && !strings.Contains(path, "[]") {
			once(&deviations, "%s occurs more than once", path)
		}
	}
	return fresh, deviations
}

// inside reports whether a path lies directly in an object that the interface describes.
func (s shape) inside(path string) bool {
	dot := strings.LastIndexByte(path, '.')
	if dot < 0 {
		return !strings.HasSuffix(path, "[]")
	}
	f, known := s[path[:dot]]
	return known && slices.Contains(f.kinds, "object")
}
