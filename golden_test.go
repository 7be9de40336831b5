package ramp_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/ramptest"
)

// The contents of the golden files.
const (
	goldenProject = "prj_7Qm2xVd9"
	goldenToken   = "0x13345C94929A47A35A4Dcd36E2574b8123Fe190D"
	goldenUser    = "0x8f2a55949038a9610f50fb23b5883af3b4ecb3c3"
	goldenSession = "hero-4821"
	goldenMint    = "6f1c2f0e-8d5b-4c56-9a3e-2b7d4e5f6a71"
	goldenBurn    = "b2a4d6c8-1e3f-4a5b-8c7d-9e0f1a2b3c4d"

	goldenMintSig = "0xa9c5cc5e7b594f1b1e82f7907303e007adb6f05573e984e7fc8baa80995d90b72bbf5b" +
		"4297ea75d36ba5672b3e49f305edaea0c2bb6d02e1babc67e1340554561b"
)

// golden returns the bytes of a file of testdata.
func golden(t testing.TB, name string) []byte {
	return must.Get(os.ReadFile(filepath.Join("testdata", name)))(t)
}

// readGolden reads a golden file into a wire type.
func readGolden[T any](t testing.TB, name string) T {
	t.Helper()
	var v T
	require.NoError(t, json.Unmarshal(golden(t, name), &v))
	return v
}

// tree is a JSON text with its numbers as they were written.
func tree(t testing.TB, b []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	require.NoError(t, d.Decode(&v))
	_, err := d.Token()
	require.ErrorIs(t, err, io.EOF)
	return v
}

// assertWrittenBack checks that v is written as the golden file has it: the
// same fields, and each number digit by digit.
func assertWrittenBack(t *testing.T, name string, v any) {
	t.Helper()
	written := must.Get(json.Marshal(v))(t)
	assert.Equal(t, tree(t, golden(t, name)), tree(t, written), "%s is not written back unchanged", name)
}

// assertGolden checks that a golden file is read as want, and written back.
func assertGolden[T any](t *testing.T, name string, want T) {
	t.Helper()
	assert.Equal(t, want, readGolden[T](t, name))
	assertWrittenBack(t, name, want)
}

// paths lists the fields of a JSON tree: receipt.logs[].topics.
func paths(prefix string, v any, into map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for name, field := range v {
			at := strings.TrimPrefix(prefix+"."+name, ".")
			into[at] = true
			paths(at, field, into)
		}
	case []any:
		for _, element := range v {
			paths(prefix+"[]", element, into)
		}
	}
}

func goldenItem(t testing.TB, id, count, icon string, nft bool) ramp.Item {
	return ramp.Item{ID: id, Amount: amount(t, count), IconURL: icon, IsNonFungible: nft}
}

func TestGoldenInitializeRequest(t *testing.T) {
	assertGolden(t, "2.2-initialize-request.json", ramp.InitializeRequest{
		PlayerID:      "p-10042",
		Name:          "홍길동 <Lv.7>",
		WalletAddress: goldenUser,
		Server:        "asia-1",
		Intent: ramp.InitializeIntent{
			Network:    ramp.Testnet,
			ProjectID:  goldenProject,
			Token:      goldenToken,
			MintFeeBps: 2000,
			Materials: []ramp.Item{
				goldenItem(t, "gold", "100", "https://cdn.studio.example/icons/gold.png", false),
				goldenItem(t, "dragon_egg", "1", "https://cdn.studio.example/icons/egg.png?v=2&size=64", true),
			},
			Outputs: []ramp.Item{
				goldenItem(t, "gold", "80", "https://cdn.studio.example/icons/gold.png", false),
				goldenItem(t, "dust", "1000000000000000000001", "https://cdn.studio.example/icons/dust.png", false),
			},
		},
	})
	required := ramp.InitializeRequest{Intent: ramp.InitializeIntent{
		Network:   ramp.Mainnet,
		ProjectID: goldenProject,
		Token:     goldenToken,
		Materials: []ramp.Item{},
		Outputs:   []ramp.Item{goldenItem(t, "gold", "0.5", "https://cdn.studio.example/icons/gold.png", false)},
	}}
	assertGolden(t, "2.2-initialize-request-required.json", required)
	required.Intent.Materials = nil
	assertWrittenBack(t, "2.2-initialize-request-required.json", required) // nil is written as []
}

func TestGoldenInitializeResponse(t *testing.T) {
	assertGolden(t, "2.3-initialize-response.json",
		ramp.InitializeResponse{Code: 200, Message: "OK", UUID: goldenMint})
	for name, want := range map[string]ramp.InitializeResponse{
		"7.1-hmac-missing.json":    {Code: 400, Message: "Bad Request", Failure: "X-HMAC-Signature is required"},
		"7.1-hmac-invalid.json":    {Code: 500, Message: "Internal Server Error", Failure: "invalid mac"},
		"7.1-project-missing.json": {Code: 500, Message: "Internal Server Error", Failure: "ramp not found"},
		"7.1-network-invalid.json": {Code: 500, Message: "Internal Server Error", Failure: "ramp not exists"},
	} {
		assertGolden(t, name, want)
	}
	for text, want := range map[string]string{
		`{"code":200,"message":"OK","data":{}}`:             "data.uuid",
		`{"code":200,"message":"OK","data":{"uuid":"one"}}`: "data.uuid",
		`{"message":"OK"}`:                                  "answer",
		`[]`:                                                "answer",
	} {
		var r ramp.InitializeResponse
		assert.Equal(t, want, as[*ramp.InvalidError](t, json.Unmarshal([]byte(text), &r)).Fields[0].Path, text)
	}
	digits := ramp.InitializeResponse{Code: 200, Message: "OK", UUID: strings.ReplaceAll(goldenMint, "-", "")}
	var read ramp.InitializeResponse
	require.NoError(t, json.Unmarshal(must.Get(json.Marshal(digits))(t), &read))
	assert.Equal(t, digits, read, "the notation stays")
}

// The net number of tokens, beside its text.
func TestNet(t *testing.T) {
	net := func(name string) (ramp.Amount, error) {
		r := readGolden[ramp.Result](t, name)
		return r.Intent.Net()
	}
	assert.Equal(t, amount(t, "8"), must.Get(net("6-result-mint.json"))(t))
	_, err := net("6-result-absent-fields.json")
	assert.Equal(t, "intent.actual", as[*ramp.InvalidError](t, err).Fields[0].Path)
	for _, text := range []string{"8 tokens", "0x8", "", strings.Repeat("9", 300)} {
		_, err := (&ramp.Intent{Actual: text}).Net()
		assert.Error(t, err, text)
	}
}

// The schedule lists 19 repeats; with the twentieth they take as long as the interface says (8).
func TestTheScheduleFitsTheResultWindow(t *testing.T) {
	sum := 5 * time.Minute
	for _, pause := range ramptest.Schedule() {
		sum += pause
	}
	assert.Equal(t, ramp.ResultWindow, sum)
}

func TestGoldenAssetsResponse(t *testing.T) {
	assertGolden(t, "2.4-assets-response.json",
		ramp.Response[ramp.AssetsData]{Success: true, Data: &ramp.AssetsData{V1: ramp.Player{
			PlayerID:      "p-10042",
			Name:          "홍길동 <Lv.7>",
			WalletAddress: goldenUser,
			Server:        "asia-1",
			Assets: []ramp.Asset{
				{ID: "gold", Balance: amount(t, "1000000000000000000001")},
				{ID: "dragon_egg", Balance: ramp.Amount{}},
				{ID: "dust", Balance: amount(t, "0.5")},
			},
		}}})

	const required = "2.4-assets-response-required.json"
	assertGolden(t, required,
		ramp.Response[ramp.AssetsData]{Success: true, Data: &ramp.AssetsData{V1: ramp.Player{Assets: []ramp.Asset{}}}})
	// nil is written as []
	assertWrittenBack(t, required, ramp.Response[ramp.AssetsData]{Success: true, Data: &ramp.AssetsData{}})
}

// mintAssets are what mintIntent takes.
var mintAssets = []ramp.AssetAmount{{ID: "dragon_egg", Amount: ramp.NewAmount(1)},
	{ID: "gold", Amount: ramp.NewAmount(100)}}

func mintIntent(t testing.TB) ramp.Intent {
	return ramp.Intent{
		Method: ramp.MethodMint,
		Type:   ramp.Assemble,
		From: []ramp.IntentAsset{
			{Type: ramp.TypeAsset, ID: "gold", Amount: amount(t, "100")},
			{Type: ramp.TypeAsset, ID: "dragon_egg", Amount: amount(t, "1")},
		},
		To:              []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: goldenToken, Amount: amount(t, "10")}},
		TargetCandidate: json.RawMessage(`{}`),
	}
}

func burnIntent(t testing.TB) ramp.Intent {
	return ramp.Intent{
		Method: ramp.MethodBurnPermit,
		Type:   ramp.Disassemble,
		From:   []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: goldenToken, Amount: amount(t, "0.5")}},
		To: []ramp.IntentAsset{
			{Type: ramp.TypeAsset, ID: "gold", Amount: amount(t, "80")},
			{Type: ramp.TypeAsset, ID: "dust", Amount: amount(t, "1000000000000000000001")},
		},
		TargetCandidate: json.RawMessage(`{}`),
	}
}

func TestGoldenValidates(t *testing.T) {
	for name, want := range map[string]struct {
		request ramp.ValidateRequest
		effect  ramp.Effect
	}{
		"2.5-validate-mint.json": {ramp.ValidateRequest{UserSig: goldenMintSig, Digest: vectors[0].digest(t),
			UUID: uuid.MustParse(goldenMint), Intent: mintIntent(t)},
			ramp.Effect{Kind: ramp.Take, Assets: mintAssets}},
		"2.5-validate-burn.json": {ramp.ValidateRequest{Digest: vectors[1].digest(t), UUID: uuid.MustParse(goldenBurn),
			Intent: burnIntent(t)},
			ramp.Effect{}}, // a burn takes nothing at validate
	} {
		got := must.Get(ramp.ParseValidate(golden(t, name)))(t)
		assert.Len(t, got.UserSig, 2+2*65)
		want.request.UserAddress, want.request.ProjectID, want.request.Raw = goldenUser, goldenProject, golden(t, name)
		want.request.UserSig = cmp.Or(want.request.UserSig, got.UserSig)
		assert.Equal(t, &want.request, got)
		assertWrittenBack(t, name, got)
		assert.Equal(t, want.effect, must.Get(got.Intent.Effect(ramp.OrderAccepted))(t))
	}
}

func TestGoldenValidateWithUnknownFields(t *testing.T) {
	const name = "2.5-validate-unknown-fields.json"
	got := must.Get(ramp.ParseValidate(golden(t, name)))(t)
	assert.Equal(t, ramp.MethodBurn, got.Intent.Method, "unchanged")
	assert.Equal(t, ramp.AssetType("erc20"), got.Intent.From[0].Type, "unchanged")
	assert.Len(t, got.UserSig, 2*65, "without 0x, unchanged")
	assert.JSONEq(t, `{"pool":"b","slots":[1,2]}`, string(got.Intent.TargetCandidate))
	direction := must.Get(got.Intent.Direction())(t)
	assert.Equal(t, ramp.Burn, direction)

	assert.Equal(t, golden(t, name), []byte(got.Raw), "Raw is the body, byte for byte")
}

func TestGoldenAnswers(t *testing.T) {
	assertGolden(t, "2.6-validate-response.json", ramp.Response[ramp.Approval]{Success: true, Data: &ramp.Approval{
		UserSig: goldenMintSig, ValidatorSig: vectors[0].signature(t)}})
	assertGolden(t, "4.3-result-response.json", ramp.Response[struct{}]{Success: true})

	const name = "7.2-rejection.json"
	assertGolden(t, name, ramp.Response[ramp.Approval]{ErrorCode: "INVALID_BALANCE"})
	assertGolden(t, name, ramp.Response[ramp.AssetsData]{ErrorCode: "INVALID_BALANCE"})
	assertGolden(t, name, ramp.Response[struct{}]{ErrorCode: "INVALID_BALANCE"})
}

// bloom is a filter with some of its 2048 bits set.
func bloom(bits ...int) hexutil.Bytes {
	b := make(hexutil.Bytes, 256)
	for _, n := range bits {
		b[255-n/8] |= 1 << (n % 8)
	}
	return b
}

// quantity is a Quantity as it is read from JSON.
func quantity(t testing.TB, text string) (q ramp.Quantity) {
	require.NoError(t, json.Unmarshal([]byte(text), &q))
	return q
}

var (
	goldenBlock   = common.HexToHash("0x496aca80e4d8f29fb8e8cd816c3afb48d3f103970b3a2ee1600c08ca67326dee")
	goldenPool    = common.HexToAddress("0x27cac5503836765cd10751d27ab4a6e17d7a80d4")
	transferTopic = common.HexToHash("0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef")
)

// goldenLogs are the two logs of a golden receipt.
func goldenLogs(t testing.TB, tx common.Hash, timestamp string) []ramp.Log {
	return []ramp.Log{{
		Address:          common.HexToAddress(goldenToken),
		Topics:           []common.Hash{transferTopic, {}, common.HexToHash(goldenUser)},
		Data:             hexutil.MustDecode("0x0000000000000000000000000000000000000000000000006f05b59d3b200000"),
		BlockNumber:      quantity(t, `"0x12d687"`),
		TransactionHash:  tx,
		TransactionIndex: quantity(t, `"0x3"`),
		BlockHash:        goldenBlock,
		BlockTimestamp:   quantity(t, timestamp),
		LogIndex:         quantity(t, `"0x5"`),
	}, {
		Address:          goldenPool,
		Topics:           []common.Hash{},
		Data:             hexutil.Bytes{},
		BlockNumber:      quantity(t, `"0x12d687"`),
		TransactionHash:  tx,
		TransactionIndex: quantity(t, `"0x3"`),
		BlockHash:        goldenBlock,
		BlockTimestamp:   quantity(t, timestamp),
		LogIndex:         quantity(t, `"0x6"`),
		Removed:          true,
	}}
}

// goldenReceipt is the common part of all golden receipts.
func goldenReceipt(t testing.TB, tx common.Hash, status, kind string, filter hexutil.Bytes,
	logs []ramp.Log) ramp.Receipt {
	return ramp.Receipt{
		Type:              quantity(t, kind),
		Root:              hexutil.Bytes{},
		Status:            quantity(t, status),
		CumulativeGasUsed: quantity(t, `"0x5b8d80"`),
		LogsBloom:         filter,
		Logs:              logs,
		TransactionHash:   tx,
		GasUsed:           quantity(t, `"0x1e8480"`),
		EffectiveGasPrice: quantity(t, `"0x3b9aca00"`),
		BlockHash:         goldenBlock,
		BlockNumber:       quantity(t, `"0x12d687"`),
		TransactionIndex:  quantity(t, `"0x3"`),
	}
}

// parseGoldenResult reads a result, checks that its bytes are kept, and takes
// them away for a comparison.
func parseGoldenResult(t *testing.T, name string) *ramp.Result {
	t.Helper()
	got := must.Get(ramp.ParseResult(golden(t, name)))(t)
	assert.Equal(t, golden(t, name), []byte(got.Raw), "Raw is the body, byte for byte")
	receipt := tree(t, golden(t, name)).(map[string]any)["receipt"]
	assert.Equal(t, receipt, tree(t, got.Receipt.Raw), "Raw is the receipt")
	got.Raw, got.Receipt.Raw = nil, nil
	return got
}

func TestGoldenResults(t *testing.T) {
	netOfFees := mintIntent(t)
	netOfFees.FeeRate, netOfFees.Actual = "2000", "8"
	for name, want := range map[string]struct {
		id, tx, status, kind string
		logs                 string // their timestamp; "" for none
		intent               ramp.Intent
		effect               ramp.Effect
	}{
		"6-result-mint.json": {goldenMint, "0x42654d7aaf5e9b4369a730fb6eb2774ab6b484b9c448c43b2bc2bd91c3e3146f",
			`"0x1"`, `"0x7"`, `0`,
			netOfFees, ramp.Effect{}}, // the tokens are on the chain
		"6-result-failed-mint.json": {goldenMint, "0x842aa02291e0eb983671e85989ba5266d895c614c9d00b0d7b3a11407883d39b",
			`"0x0"`, `"0x2"`, "",
			netOfFees, ramp.Effect{Kind: ramp.GiveBack, Assets: mintAssets}},
		"6-result-burn.json": {goldenBurn, "0x285793af869803cdbae5dfd3f9cd8287a9ddfee15654c6810344f36e5ee98ec6",
			`"0x1"`, `"0x2"`, `1763693459`,
			burnIntent(t), // without fee_rate and actual
			ramp.Effect{Kind: ramp.Grant, Assets: []ramp.AssetAmount{
				{ID: "dust", Amount: amount(t, "1000000000000000000001")}, {ID: "gold", Amount: amount(t, "80")}}}},
	} {
		tx := common.HexToHash(want.tx)
		filter, logs := bloom(), []ramp.Log{}
		if want.logs != "" {
			filter, logs = bloom(3, 777, 2040), goldenLogs(t, tx, want.logs)
		}
		got := parseGoldenResult(t, name)
		assert.Equal(t, &ramp.Result{SessionID: goldenSession, UUID: uuid.MustParse(want.id), TxHash: want.tx,
			Receipt: goldenReceipt(t, tx, want.status, want.kind, filter, logs), Intent: want.intent}, got)
		assertWrittenBack(t, name, got)
		assert.Equal(t, want.status == `"0x1"`, got.Succeeded())
		assert.Equal(t, want.effect, must.Get(got.Intent.Effect(got.Outcome()))(t))
	}
}

func TestGoldenResultWithFieldsAbsent(t *testing.T) {
	const name = "6-result-absent-fields.json"
	got := parseGoldenResult(t, name)
	intent := mintIntent(t)
	intent.TargetCandidate = nil
	assert.Equal(t, &ramp.Result{
		UUID:   uuid.MustParse(goldenMint),
		TxHash: "0x42654d7aaf5e9b4369a730fb6eb2774ab6b484b9c448c43b2bc2bd91c3e3146f",
		Receipt: ramp.Receipt{Status: quantity(t, `"0x1"`),
			Logs: []ramp.Log{{Address: common.HexToAddress(goldenToken)}}},
		Intent: intent,
	}, got)
	assert.True(t, got.Succeeded())

	// Quantities and options that were absent stay absent.
	written := must.Get(json.Marshal(got))(t)
	has := map[string]bool{}
	paths("", tree(t, written), has)
	for _, path := range []string{
		"receipt.type", "receipt.root", "receipt.gasUsed", "receipt.blockNumber", "receipt.logsBloom", "receipt.from",
		"receipt.logs[].blockTimestamp", "receipt.logs[].logIndex", "intent.target_candidate", "intent.fee_rate",
		"intent.actual",
	} {
		assert.False(t, has[path], path)
	}
}

func TestGoldenResultWithUnknownFields(t *testing.T) {
	const name = "6-result-unknown-fields.json"
	got := must.Get(ramp.ParseResult(golden(t, name)))(t)
	kind := must.Get(got.Receipt.Type.Uint64())(t)
	assert.EqualValues(t, 0x7f, kind)
	assert.Equal(t, ramp.AssetType("ERC1155"), got.Intent.To[0].Type)
	assert.Equal(t, "1763693459", got.Receipt.Logs[0].BlockTimestamp.String())
	assert.Equal(t, golden(t, name), []byte(got.Raw))
	assert.Contains(t, string(got.Receipt.Raw), "blobGasUsed")
}

func TestGoldenReceiptOverJSONRPC(t *testing.T) {
	const name = "4.4-receipt.json"
	tx := common.HexToHash("0x570af2f5a245866df7919cf20448d821a78ae9e3e80bec175774fd251754b2e5")
	got := readGolden[ramp.Receipt](t, name)
	assert.Equal(t, bytes.TrimSpace(golden(t, name)), []byte(got.Raw))
	got.Raw = nil
	want := goldenReceipt(t, tx, `"0x1"`, `"0x7"`, bloom(3, 777, 2040), goldenLogs(t, tx, `"0x691fd393"`))
	want.Root = nil
	want.From = common.HexToAddress(goldenUser)
	want.To = common.HexToAddress(goldenToken)
	want.FeePayer = common.HexToAddress("0x9a1fc3d7b5e86240c9d1f7a3b8e4526d0f7c1a93")
	assert.Equal(t, want, got)

	written := must.Get(json.Marshal(got))(t)
	file := tree(t, golden(t, name)).(map[string]any)
	assert.Nil(t, file["contractAddress"])
	file["contractAddress"] = common.Address{}.Hex() // null is written in the shape of the webhook
	assert.Equal(t, any(file), tree(t, written))
}

// Every field of a wire type must be in a golden file.
func TestEveryWireFieldIsInAGoldenFile(t *testing.T) {
	shown := map[string]bool{}
	files := must.Get(filepath.Glob("testdata/*.json"))(t)
	for _, file := range files {
		in := map[string]bool{}
		paths("", tree(t, golden(t, filepath.Base(file))), in)
		for path := range in {
			shown[path[strings.LastIndex(path, ".")+1:]] = true
		}
	}
	for _, v := range []any{
		ramp.InitializeRequest{}, ramp.InitializeIntent{}, ramp.Item{}, ramp.Player{}, ramp.ValidateRequest{},
		ramp.Result{},
		ramp.Intent{}, ramp.IntentAsset{}, ramp.Receipt{}, ramp.Log{}, ramp.Response[ramp.AssetsData]{},
		ramp.AssetsData{}, ramp.Approval{},
	} {
		of := reflect.TypeOf(v)
		for i := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			if name != "-" {
				assert.True(t, shown[name], "%s.%s (%s) is in no golden file", of, of.Field(i).Name, name)
			}
		}
	}
}
