package ramptest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/thief"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/ramptest"
)

const token = "0x00000000000000000000000000000000000070c3"

// post sends bytes to a chain.
func (c *counter) post(t *testing.T, network ramp.Network, body string) (int, string) {
	t.Helper()
	answer := c.send(t, "POST", c.service.RPCURL(network), body, "Content-Type", "application/json")
	return answer.StatusCode, whole(t, answer)
}

// rpc calls a method of the testnet and returns result, or the error as text.
func (c *counter) rpc(t *testing.T, method, params string) any {
	t.Helper()
	status, body := c.post(t, ramp.Testnet,
		fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":%q,"params":[%s]}`, method, params))
	require.Equal(t, 200, status)
	var answer struct {
		Version string `json:"jsonrpc"`
		ID      int
		Result  any
		Error   *struct {
			Code    int
			Message string
			Data    string
		}
	}
	require.NoError(t, json.Unmarshal([]byte(body), &answer))
	assert.Equal(t, "2.0", answer.Version)
	assert.Equal(t, 7, answer.ID)
	if answer.Error != nil {
		return fmt.Sprintf("%d %s %s", answer.Error.Code, answer.Error.Message, answer.Error.Data)
	}
	return answer.Result
}

func quote(v fmt.Stringer) string { return fmt.Sprintf("%q", v.String()) }

func (c *counter) holds(t *testing.T, owner string) string {
	t.Helper()
	call := hexutil.Encode(append(crypto.Keccak256([]byte("balanceOf(address)"))[:4],
		common.HexToHash(owner).Bytes()...))
	word := c.rpc(t, "eth_call", fmt.Sprintf(`{"to":%q,"data":%q},"latest"`, token, call)).(string)
	n, ok := new(big.Int).SetString(word, 0)
	require.True(t, ok)
	return new(big.Rat).SetFrac(n, big.NewInt(1e18)).FloatString(2)
}

func TestBlocksComeWithTheClock(t *testing.T) {
	c := newCounter(t)
	assert.Equal(t, "0x0", c.rpc(t, "eth_blockNumber", ""))
	c.service.Advance(100 * time.Second)
	assert.Equal(t, "0x64", c.rpc(t, "eth_blockNumber", ""))
	block := c.rpc(t, "eth_getBlockByNumber", `"0x10",false`).(map[string]any)
	next := c.rpc(t, "eth_getBlockByNumber", `"0x11",true`).(map[string]any)
	assert.Equal(t, block["hash"], next["parentHash"])
	seconds := func(b map[string]any) uint64 { return hexutil.MustDecodeUint64(b["timestamp"].(string)) }
	assert.Equal(t, seconds(block)+1, seconds(next))
	assert.Equal(t, block, c.rpc(t, "eth_getBlockByHash", fmt.Sprintf("%q,false", block["hash"])))
	assert.Nil(t, c.rpc(t, "eth_getBlockByNumber", `"0x65",false`), "it is not there yet")
	assert.Nil(t, c.rpc(t, "eth_getBlockByHash", `"0x`+strings.Repeat("00", 32)+`",false`))
	for tag, want := range map[string]string{"earliest": "0x0", "finalized": "0x24", "safe": "0x44", "latest": "0x64",
		"pending": "0x64"} {
		assert.Equal(t, want, c.rpc(t, "eth_getBlockByNumber", `"`+tag+`",false`).(map[string]any)["number"])
	}
	assert.Equal(t, "7002", c.rpc(t, "net_version", ""))
	assert.Equal(t, "0x1b5a", c.rpc(t, "eth_chainId", ""))
}

func TestAnOrderIsOnTheChain(t *testing.T) {
	for _, kind := range []uint64{0x2, 0x7, 0x63} {
		t.Run(fmt.Sprintf("%#x", kind), func(t *testing.T) {
			c := newCounter(t, reporting)
			order := c.mint(t, ramptest.TransactionType(kind))
			player := order.Request.UserAddress
			hash := quote(order.TxHash)
			// A wallet signs its next transaction with what is pending counted, and looks at
			// what is in blocks without it.
			counts := func() []any {
				ask := func(tag string) any {
					return c.rpc(t, "eth_getTransactionCount",
						fmt.Sprintf("%q,%q", player, tag))
				}
				return []any{ask("latest"), ask("pending")}
			}
			assert.Equal(t, []any{"0x0", "0x1"}, counts())
			assert.Equal(t, "1000.00", c.holds(t, player))
			assert.Nil(t, c.rpc(t, "eth_getTransactionReceipt", hash), "it is in no block yet")
			pending := c.rpc(t, "eth_getTransactionByHash", hash).(map[string]any)
			assert.Nil(t, pending["blockHash"])

			c.service.Advance(5 * time.Second)
			transaction := c.rpc(t, "eth_getTransactionByHash", hash).(map[string]any)
			receipt := c.rpc(t, "eth_getTransactionReceipt", hash).(map[string]any)
			block := c.rpc(t, "eth_getBlockByNumber", `"0x1",true`).(map[string]any)
			assert.Equal(t, []any{transaction}, block["transactions"])
			assert.Equal(t, hexutil.EncodeUint64(kind), transaction["type"])
			assert.Equal(t, "0x1", receipt["status"])
			assert.Equal(t, block["hash"], receipt["blockHash"])
			assert.Equal(t, strings.ToLower(player), receipt["from"])
			assert.Nil(t, receipt["contractAddress"])
			assert.Equal(t, kind == 7, receipt["feePayer"] != nil)
			assert.Equal(t, kind == 7, transaction["fv"] != nil)
			assert.Equal(t, kind == 2, transaction["yParity"] != nil)

			assert.Equal(t, "1008.00", c.holds(t, player), "10 less a fee of 20%")
			logs := c.rpc(t, "eth_getLogs", fmt.Sprintf(`{"fromBlock":"0x0","address":%q,"topics":[null,null,%q]}`,
				token, common.HexToHash(player))).([]any)
			assert.Equal(t, receipt["logs"].([]any)[:1], logs)
			assert.Equal(t, logs,
				c.rpc(t, "eth_getLogs",
					fmt.Sprintf(`{"blockHash":%q,"topics":[null,null,[%q]]}`, block["hash"], common.HexToHash(player))))
			assert.Empty(t, c.rpc(t, "eth_getLogs", fmt.Sprintf(`{"fromBlock":"0x0","address":[%q]}`, player)))

			spent := c.rpc(t, "eth_getBalance", fmt.Sprintf(`%q,"latest"`, player)) != "0xde0b6b3a7640000"
			assert.Equal(t, kind != 7, spent, "the gas of 0x7 is sponsored")
			assert.Equal(t, []any{"0x1", "0x1"}, counts())

			// The package's chain client finds there what the service reports.
			stated, chain := c.shop.results[0], nodeOf(t, c.service)
			assert.Equal(t, order.TxHash.Hex(), stated.TxHash)
			c.service.Advance(15 * time.Second)
			read, err := confirm(t, chain, stated, 10)
			require.NoError(t, err)
			assert.Equal(t, stated.Receipt.BlockHash, read.BlockHash)
			assert.Equal(t, stated.Receipt.LogsBloom, read.LogsBloom)
			assert.Equal(t, stated.Receipt.Logs[0].Data, read.Logs[0].Data)
			assert.Len(t, must.Get(chain.BlockByNumber(t.Context(), ramp.AtBlock(1), true))(t).Transactions, 1)

			// The same transaction, reported as failed.
			require.NoError(t, c.service.Deliver(t.Context(), order, ramptest.Failed))
			var lie *rampproof.MismatchError
			_, err = confirm(t, chain, c.shop.results[1], 1)
			require.ErrorAs(t, err, &lie)
			assert.Equal(t, "receipt.status", lie.Field)
		})
	}
}

func TestAReorganizationReplacesABlock(t *testing.T) {
	c := newCounter(t)
	order := c.mint(t, ramptest.Reorganized())
	other := c.mint(t)
	c.service.Advance(time.Minute)
	require.Len(t, c.shop.results, 3)
	first, second := c.shop.results[0], c.shop.results[1]
	assert.Equal(t, first.TxHash, second.TxHash)
	assert.NotEqual(t, first.Receipt.BlockHash, second.Receipt.BlockHash)
	assert.Nil(t, c.rpc(t, "eth_getBlockByHash", fmt.Sprintf("%q,false", first.Receipt.BlockHash)), "the block is gone")
	for _, o := range []*ramptest.PlacedOrder{order, other} {
		receipt := c.rpc(t, "eth_getTransactionReceipt", quote(o.TxHash)).(map[string]any)
		assert.Equal(t, second.Receipt.BlockHash.Hex(), receipt["blockHash"])
	}
	assert.Equal(t, "1016.00", c.holds(t, order.Request.UserAddress), "nothing happened twice")
}

// Whether the service reports the new block or delivers the same body again, an honest
// result is confirmed after its block was replaced.
func TestAResultIsConfirmedAfterItsBlockWasReplaced(t *testing.T) {
	for _, fault := range []ramptest.Fault{ramptest.Reorganized(), ramptest.ReorganizedUnnoticed()} {
		c := newCounter(t)
		chain := nodeOf(t, c.service)
		c.mint(t, fault)
		c.service.Advance(20 * time.Second)
		require.Len(t, c.shop.results, 2)
		same := c.shop.results[0].Receipt.BlockHash == c.shop.results[1].Receipt.BlockHash
		assert.Equal(t, fault.String() == "reorganized-unnoticed", same)
		receipt, err := confirm(t, chain, c.shop.results[1], 1)
		require.NoError(t, err)
		assert.Equal(t, same, receipt.BlockHash != c.shop.results[1].Receipt.BlockHash)
	}
}

func TestTheNetworksAreApart(t *testing.T) {
	c := newCounter(t)
	order := c.mint(t, ramptest.TransactionFails())
	c.service.Advance(time.Minute)
	receipt := c.rpc(t, "eth_getTransactionReceipt", quote(order.TxHash)).(map[string]any)
	assert.Equal(t, "0x0", receipt["status"])
	assert.Empty(t, receipt["logs"], "a failed transaction has none")
	_, body := c.post(t, ramp.Mainnet,
		`{"jsonrpc":"2.0","id":1,"method":"eth_getTransactionByHash","params":[`+quote(order.TxHash)+`]}`)
	assert.Equal(t, `{"id":1,"jsonrpc":"2.0","result":null}`, body)
	status, _ := c.post(t, "moon", `{}`)
	assert.Equal(t, 404, status)
}

func TestTheChainRejectsAsTheInterfaceSays(t *testing.T) {
	c := newCounter(t)
	failure := func(id, code string) string {
		return `{"error":{"code":` + code + `"},"id":` + id + `,"jsonrpc":"2.0"}`
	}
	parse := failure("null", `-32700,"message":"Parse error","data":"the body is not JSON`)
	batch := failure("null", `-32600,"message":"Invalid Request","data":"a batch has 1 to 1000 requests`)
	invalid := failure("null",
		`-32600,"message":"Invalid Request","data":"a request has jsonrpc 2.0, a method, params, and a number or a `+
			`text as id`)
	params := func(data string) string { return failure("7", `-32602,"message":"Invalid params","data":"`+data) }
	const version = `{"id":7,"jsonrpc":"2.0","result":"7002"}`
	for _, test := range []struct{ body, want string }{
		{`{`, parse},
		{``, parse},
		{`{}{}`, parse},
		{`[]`, batch},
		{`[1` + strings.Repeat(",1", 1000) + `]`, batch},
		{`7`, invalid},
		{`null`, invalid},
		{`[7]`, "[" + invalid + "]"},
		{`{"jsonrpc":"1.0","id":7,"method":"net_version"}`, invalid},
		{`{"JSONRPC":"2.0","id":7,"method":"net_version"}`, invalid},
		{`{"jsonrpc":"2.0","id":{},"method":"net_version"}`, invalid},
		{`{"jsonrpc":"2.0","id":7}`, invalid},
		{`{"jsonrpc":"2.0","id":7,"method":"eth_mine"}`,
			failure("7", `-32601,"message":"Method not found","data":"eth_mine`)},
		{`{"jsonrpc":"2.0","id":"a","method":"eth_getBalance","params":[]}`,
			failure(`"a"`, `-32602,"message":"Invalid params","data":"missing value for required argument 0`)},
		{`{"jsonrpc":"2.0","id":7,"method":"net_version","params":{}}`, params("params is no array")},
		{`{"jsonrpc":"2.0","id":7,"method":"net_version","params":"x"}`, params("params is no array")},
		{`{"jsonrpc":"2.0","id":7,"method":"eth_sendTransaction","params":[{"to":"` + token + `"}]}`,
			params("from is required")},
		{`{"jsonrpc":"2.0","id":7,"method":"eth_sendTransaction","params":[{"From":"` + token + `"}]}`,
			params("from is required")},
		{`{"jsonrpc":"2.0","id":7,"method":"eth_getBalance","params":["` + token + `","earliest"]}`,
			failure("7",
				`-32000,"message":"the state of another block than the latest is not kept","data":"eth_getBalance`)},

		// The answer is there, where one is wanted.
		{`{"jsonrpc":"2.0","id":7,"method":"net_version"}`, version},
		{`{"jsonrpc":"2.0","id":7,"method":"net_version","params":null}`, version},
		{`[{"jsonrpc":"2.0","id":7,"method":"net_version"},{"jsonrpc":"2.0","method":"net_version"}]`,
			"[" + version + "]"},
		{`{"jsonrpc":"2.0","method":"net_version"}`, ""},
		{`{"jsonrpc":"2.0","method":"eth_mine"}`, ""},
		{`[{"jsonrpc":"2.0","method":"net_version"}]`, ""},
		{`{"jsonrpc":"2.0","id":null,"method":"net_version"}`, `{"id":null,"jsonrpc":"2.0","result":"7002"}`},
	} {
		status, got := c.post(t, ramp.Testnet, test.body)
		assert.Equal(t, 200, status)
		assert.Equal(t, test.want, got, test.body)
	}
	for method, params := range map[string]string{
		"eth_getBalance":            `"0x1","latest"`,
		"eth_getBlockByNumber":      `"tomorrow",false`,
		"eth_getTransactionReceipt": `"0x12"`,
		"eth_call":                  `"text"`,
		"eth_sendRawTransaction":    `7`,
		"eth_getLogs":               `{"fromBlock":"0x1","toBlock":"0x0"}`,
	} {
		assert.Contains(t, c.rpc(t, method, params), "-32602", method)
	}
	assert.Contains(t, c.rpc(t, "eth_call", `{"to":"`+token+`","data":"0x12345678"},"latest"`),
		"3 execution reverted 0x")
}

// What a page of another site can send must reach neither the API nor the control API. The
// requests of programs may, and those to the control API if they come from this machine.
func TestTheServiceIsForPrograms(t *testing.T) {
	const own, json = "127.0.0.1:8090", "application/json"
	c := newCounter(t)
	for _, test := range []struct {
		name, host, origin, media string
		api, control              int
	}{
		{"a program", own, "", json, 200, 200},
		{"a program that says more of JSON", own, "", "application/json; charset=utf-8", 200, 200},
		{"under another name of this machine", "localhost:8090", "", json, 200, 200},
		{"under another name", "host.docker.internal", "", json, 200, 403},
		{"a page of this service", own, "http://" + own, json, 200, 200},
		{"a page of another site", own, "https://evil.example", json, 403, 403},
		{"a page of another port", own, "http://127.0.0.1:1", json, 403, 403},
		{"a page without an origin", own, "null", json, 403, 403},
		{"a name that was made to point here", "evil.example", "http://evil.example", json, 403, 403},
		{"a form", own, "", "application/x-www-form-urlencoded", 415, 415},
		{"a form of text", own, "", "text/plain", 415, 415},
		{"a program that names no type", own, "", "", 415, 415},
	} {
		t.Run(test.name, func(t *testing.T) {
			serve := func(path, from string) int {
				return c.direct("POST", path, "{}", from, "Host", test.host, "Origin", test.origin, "Content-Type",
					test.media).Code
			}
			assert.Equal(t, test.api, serve("/rpc/testnet", away))
			assert.Equal(t, max(test.api, 400), serve("/api/v2/initialize", away), "which is not signed")
			assert.Equal(t, test.control, serve("/control/reset", here))
			assert.Equal(t, 403, serve("/control/reset", away))
		})
	}
}

// A request without a body needs no header about it, but a browser's does: it cannot be told from a form.
func TestARequestWithoutABodyIsForPrograms(t *testing.T) {
	c := newCounter(t)
	for _, test := range []struct {
		name   string
		header []string
		want   int
	}{
		{"a program", nil, 200},
		{"a page of another site", []string{"Origin", "https://evil.example"}, 403},
		{"a browser that sends no origin", []string{"Sec-Fetch-Site", "cross-site"}, 415},
		{"a form", []string{"Content-Type", "application/x-www-form-urlencoded"}, 415},
	} {
		assert.Equal(t, test.want, c.direct("POST", "/control/reset", "", here,
			append([]string{"Host", "127.0.0.1:8090"}, test.header...)...).Code, test.name)
	}
}

func TestTheChainCanBeScriptedToFail(t *testing.T) {
	c := newCounter(t)
	c.service.FailRPC(-32603, 0, -32000, 3, 429, 503)
	assert.Equal(t, "-32603 Internal error scripted", c.rpc(t, "eth_blockNumber", ""))
	assert.Equal(t, "0x0", c.rpc(t, "eth_blockNumber", ""), "0 lets one through")
	assert.Equal(t, "-32000 Server error scripted", c.rpc(t, "eth_blockNumber", ""))
	assert.Equal(t, "3 execution reverted scripted", c.rpc(t, "eth_blockNumber", ""))
	for _, want := range []struct {
		status int
		after  string
	}{{429, "1"}, {503, ""}} {
		answer := c.send(t, "POST", c.service.RPCURL(ramp.Testnet), "{}", "Content-Type", "application/json")
		assert.Equal(t, want.status, answer.StatusCode)
		assert.Equal(t, want.after, answer.Header.Get("Retry-After"))
	}
	assert.Equal(t, "0x0", c.rpc(t, "eth_blockNumber", ""))
}

func TestWhoMayCallTheChainIsASwitch(t *testing.T) {
	c := newCounter(t, func(c *ramptest.Config) {
		c.AuthorizeRPC = func(r *http.Request) bool { return r.Header.Get("Authorization") == "Bearer node" }
	})
	status, _ := c.post(t, ramp.Testnet, `{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}`)
	assert.Equal(t, 401, status)
}

// signed returns the list of a transaction with the signature of a wallet: v, r and s.
func signed(t *testing.T, wallet *ramp.Signer, kind []byte, list ...any) []any {
	t.Helper()
	unsigned := must.Get(rlp.EncodeToBytes(list))(t)
	signature := must.Get(wallet.Sign(t.Context(), ramp.Digest(crypto.Keccak256(kind, unsigned))))(t)
	return append(list, uint64(signature[64])-27, new(big.Int).SetBytes(signature[:32]),
		new(big.Int).SetBytes(signature[32:64]))
}

// sendRaw sends a transaction as a wallet does: its type, unless it is a legacy one, and its
// list. It returns the answer and the hash of what was sent.
func (c *counter) sendRaw(t *testing.T, kind []byte, list any) (answer any, hash string) {
	t.Helper()
	raw := must.Get(rlp.EncodeToBytes(list))(t)
	raw = append(kind, raw...)
	return c.rpc(t, "eth_sendRawTransaction", fmt.Sprintf("%q", hexutil.Encode(raw))), crypto.Keccak256Hash(raw).Hex()
}

func TestTheChainReadsOlderTransactions(t *testing.T) {
	c := newCounter(t)
	wallet := must.Get(ramp.NewKeySigner("0x" + strings.Repeat("42", 32)))(t)
	to, price, value := common.HexToAddress(token), big.NewInt(1), big.NewInt(7)
	old := func(v uint64) []any { // the chain's ID is signed in place of a signature (EIP-155)
		list := signed(t, wallet, nil, uint64(0), price, uint64(21_000), to, value, []byte{}, uint64(7002),
			uint64(0), uint64(0))
		y, r, s := list[9].(uint64), list[10], list[11]
		return append(list[:6], y+v, r, s)
	}
	listed := signed(t, wallet, []byte{1}, uint64(7002), uint64(1), price, uint64(21_000), to, value, []byte{}, []any{})

	for _, test := range []struct {
		prefix []byte
		list   []any
		kind   string
	}{{nil, old(35 + 2*7002), "0x0"}, {[]byte{1}, listed, "0x1"}} {
		hash, sent := c.sendRaw(t, test.prefix, test.list)
		assert.Equal(t, sent, hash)
		c.service.Advance(time.Second)
		transaction := c.rpc(t, "eth_getTransactionByHash", fmt.Sprintf("%q", hash)).(map[string]any)
		assert.Equal(t, strings.ToLower(wallet.Address().Hex()), transaction["from"])
		assert.Equal(t, test.kind, transaction["type"])
		assert.NotContains(t, transaction, "maxFeePerGas")
		assert.Equal(t, "0x1",
			c.rpc(t, "eth_getTransactionReceipt", fmt.Sprintf("%q", hash)).(map[string]any)["status"])
	}

	for v, want := range map[uint64]string{27: "only replay-protected", 37: "invalid chain id"} {
		answer, _ := c.sendRaw(t, nil, old(v))
		assert.Contains(t, answer, want)
	}
}

func TestASponsorPaysTheGas(t *testing.T) {
	c := newCounter(t)
	wallet := must.Get(ramp.NewKeySigner("0x" + strings.Repeat("42", 32)))(t)
	payer := common.HexToAddress("0x00000000000000000000000000000000000fee00")
	tx := signed(t, wallet, []byte{2}, uint64(7002), uint64(0), big.NewInt(1), big.NewInt(2e9), uint64(21_000),
		common.Address{}, big.NewInt(7), []byte{}, []any{})
	whole := []any{tx, payer, uint64(1), uint64(2), uint64(3)}
	hash, _ := c.sendRaw(t, []byte{7}, whole)
	plain := must.Get(rlp.EncodeToBytes(tx))(t)
	assert.Equal(t, crypto.Keccak256Hash([]byte{2}, plain).Hex(), hash, "the hash is that of what the sender signed")
	c.service.Advance(time.Second)
	receipt := c.rpc(t, "eth_getTransactionReceipt", fmt.Sprintf("%q", hash)).(map[string]any)
	assert.Equal(t, "0x7", receipt["type"])
	assert.Equal(t, strings.ToLower(payer.Hex()), receipt["feePayer"])
	assert.Equal(t, "0xde0b6b3a763fff9", c.rpc(t, "eth_getBalance", fmt.Sprintf(`%q,"latest"`, wallet.Address())),
		"a coin less 7 wei")
	whole[3] = new(big.Int).Lsh(big.NewInt(1), 300)
	for want, list := range map[string]any{"not signed": whole, "rlp": []uint{1}} {
		answer, _ := c.sendRaw(t, []byte{7}, list)
		assert.Contains(t, answer, want)
	}
}

func TestATokenSaysWhatItIs(t *testing.T) {
	c := newCounter(t, func(c *ramptest.Config) { c.Decimals = 6 })
	c.mint(t)
	c.service.Advance(time.Second)
	for function, want := range map[string]string{
		"decimals()":    "6",
		"symbol()":      "TOKEN",
		"totalSupply()": "2010000000", // two wallets with 1000 of their own, and what was minted
	} {
		call := hexutil.Encode(crypto.Keccak256([]byte(function))[:4])
		word := hexutil.MustDecode(c.rpc(t, "eth_call",
			fmt.Sprintf(`{"to":%q,"input":%q},"latest"`, token, call)).(string))
		got := new(big.Int).SetBytes(word).String()
		if len(word) > 32 {
			got = strings.TrimRight(string(word[64:]), "\x00")
		}
		assert.Equal(t, want, got, function)
	}
	assert.Equal(t, "0x", c.rpc(t, "eth_call", `{},"latest"`))
}

func TestAWalletCanSendTransactions(t *testing.T) {
	c := newCounter(t)
	wallet := must.Get(ramp.NewKeySigner("0x" + strings.Repeat("42", 32)))(t)
	friend := common.HexToAddress("0x00000000000000000000000000000000000f41e0")
	transfer := append(crypto.Keccak256([]byte("transfer(address,uint256)"))[:4],
		common.BytesToHash(friend[:]).Bytes()...)
	transfer = append(transfer, common.BigToHash(big.NewInt(5e18)).Bytes()...)
	free := new(big.Int)
	sign := func(chain, nonce, gas uint64, value *big.Int) []byte {
		list := signed(t, wallet, []byte{2}, chain, nonce, big.NewInt(1), big.NewInt(2e9), gas,
			common.HexToAddress(token), value, transfer, []any{})
		return append([]byte{2}, must.Get(rlp.EncodeToBytes(list))(t)...)
	}
	raw := sign(7002, 0, 100_000, free)
	hash := c.rpc(t, "eth_sendRawTransaction", fmt.Sprintf("%q", hexutil.Encode(raw)))
	assert.Equal(t, crypto.Keccak256Hash(raw).Hex(), hash)
	assert.Contains(t, c.rpc(t, "eth_sendRawTransaction", fmt.Sprintf("%q", hexutil.Encode(raw))),
		"-32000 already known")
	assert.Empty(t, c.service.Advance(time.Minute), "nobody hears of it")
	assert.Equal(t, "0x1", c.rpc(t, "eth_getTransactionReceipt", fmt.Sprintf("%q", hash)).(map[string]any)["status"])
	assert.Equal(t, "1005.00", c.holds(t, friend.Hex()))
	assert.Equal(t, "995.00", c.holds(t, wallet.Address().Hex()))

	for want, raw := range map[string][]byte{
		"nonce too low":      sign(7002, 0, 1, free),
		"nonce too high":     sign(7002, 9, 100_000, free),
		"insufficient funds": sign(7002, 1, 100_000, big.NewInt(2e18)),
		"invalid chain id":   sign(1, 0, 100_000, free),
		"not supported":      {4, 2, 3},
		"rlp":                {2, 3},
	} {
		assert.Contains(t, c.rpc(t, "eth_sendRawTransaction", fmt.Sprintf("%q", hexutil.Encode(raw))), want)
	}

	hash = c.rpc(t, "eth_sendTransaction", fmt.Sprintf(`{"from":%q,"to":%q,"value":"0x1"}`, friend, wallet.Address()))
	c.service.Advance(time.Minute)
	assert.Equal(t, "0x1", c.rpc(t, "eth_getTransactionReceipt", fmt.Sprintf("%q", hash)).(map[string]any)["status"])
	assert.Equal(t, "0x5208", c.rpc(t, "eth_estimateGas", `{}`))
}

// What a dishonest player puts on the chain is there for everybody, also after a restart.
func TestTheTricksOfADishonestPlayerAreOnTheChain(t *testing.T) {
	c := newCounter(t, kept(t))
	order := c.mint(t, ramptest.StaysPending()) // of 10 tokens
	contract, player := common.HexToAddress(token), c.service.Wallet(c.session)
	friend := c.service.Wallet(thief.Friend(c.session))
	tokens := new(big.Int).Mul(big.NewInt(10), big.NewInt(1e18))
	moved := func(from, to common.Address, units *big.Int) []ramp.Transfer {
		return []ramp.Transfer{{Token: contract, From: from, To: to, Value: units, LogIndex: ramp.NewQuantity(0)}}
	}
	type shown struct {
		from      common.Address
		creates   bool
		succeeded bool
		signed    bool
		transfers []ramp.Transfer
		logs      int
	}
	want := map[thief.Trick]shown{
		thief.FailedCall:     {from: player, signed: true},
		thief.FailedCreation: {from: player, creates: true, signed: true},
		thief.SignedTransfer: {from: player, succeeded: true, signed: true,
			transfers: moved(player, friend, tokens), logs: 1},
		thief.FriendsTransfer: {from: friend, succeeded: true, signed: true,
			transfers: moved(friend, player, big.NewInt(1)), logs: 1},
		thief.SelfTransfer: {from: player, succeeded: true, transfers: moved(player, player, tokens), logs: 1},
		thief.Approval:     {from: player, succeeded: true, logs: 1},
	}
	hashes := map[thief.Trick]common.Hash{}
	for _, trick := range thief.Tricks() {
		hash := must.Get(thief.Play(t.Context(), c.service, order, trick))(t)
		hashes[trick] = hash
		c.service.Advance(time.Second)
	}
	for _, restarted := range []bool{false, true} {
		if restarted {
			c.restart(t, c.handler)
		}
		chain := nodeOf(t, c.service)
		got := map[thief.Trick]shown{}
		for trick, hash := range hashes {
			sent := must.Get(chain.Transaction(t.Context(), hash))(t)
			receipt := must.Get(chain.Receipt(t.Context(), hash))(t)
			assert.Zero(t, sent.FeePayer, "the ramp pays for none")
			got[trick] = shown{sent.From, sent.To == nil, receipt.Succeeded(),
				bytes.Contains(sent.Input, order.Approval.ValidatorSig[:64]),
				receipt.Transfers(), len(receipt.Logs)}
		}
		assert.Equal(t, want, got)
		held := tokenBalance(t, chain, contract, player)
		assert.Equal(t, new(big.Int).Add(new(big.Int).Mul(big.NewInt(990), big.NewInt(1e18)), big.NewInt(1)), held)
	}
}

// Whatever a chain is asked, it answers with JSON, or a notification with nothing.
func FuzzRPC(f *testing.F) {
	c := newCounter(f)
	c.mint(f)
	c.service.Advance(time.Minute)
	for _, seed := range []string{
		`[{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"0x0","topics":[null,["0x00"]]}]}]`,
		`{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0xffffffffffffffff",true]}`,
		`{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x1",true]}`,
		`{"jsonrpc":"2.0","id":1,"method":"eth_call","params":[{"to":"0x00000000000000000000000000000000000070c3",` +
			`"data":"0x70a08231"},"latest"]}`,
		`{"jsonrpc":"2.0","id":{},"method":"eth_sendRawTransaction","params":["0x02c0"]}`,
		`{"jsonrpc":"2.0","id":1,"method":"eth_sendTransaction","params":[{"value":"0x1"}]}`,
		`{"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x00000000000000000000000000000000000070c3",{}]}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		w := c.direct("POST", "/rpc/testnet", body, here, "Content-Type", "application/json")
		require.Equal(t, 200, w.Code)
		answer := w.Body.Bytes()
		require.True(t, len(answer) == 0 || json.Valid(answer), string(answer))
	})
}
