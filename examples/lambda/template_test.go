package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"gopkg.in/yaml.v3"

	dynamostore "github.com/token-ramp/ramp-go/examples/stores/dynamodb"
)

// template is what the tests read of template.yaml.
type template struct {
	Resources map[string]struct {
		Type       string `yaml:"Type"`
		Properties struct {
			// Of a table.
			AttributeDefinitions []struct{ AttributeName string } `yaml:"AttributeDefinitions"`
			KeySchema            keySchema                        `yaml:"KeySchema"`
			Indexes              []struct {
				IndexName string    `yaml:"IndexName"`
				KeySchema keySchema `yaml:"KeySchema"`
			} `yaml:"GlobalSecondaryIndexes"`
			// Of the gateway.
			BinaryMediaTypes []string `yaml:"BinaryMediaTypes"`
			GatewayResponses map[string]struct {
				StatusCode int `yaml:"StatusCode"`
			} `yaml:"GatewayResponses"`
			// Of a function.
			Timeout           int `yaml:"Timeout"`
			Reserved          int `yaml:"ReservedConcurrentExecutions"`
			FunctionURLConfig any `yaml:"FunctionUrlConfig"`
			// Of an alarm's filter.
			FilterPattern string `yaml:"FilterPattern"`
		} `yaml:"Properties"`
	} `yaml:"Resources"`
}

type keySchema []struct {
	AttributeName string `yaml:"AttributeName"`
	KeyType       string `yaml:"KeyType"`
}

// Whatever answers in place of the function answers 500, and the function has ended before the gateway gives
// it up, which is after 29 seconds.
func TestTheTemplateKeepsTheRule(t *testing.T) {
	var read template
	if err := yaml.Unmarshal(must(os.ReadFile("template.yaml"))(t), &read); err != nil {
		t.Fatal(err)
	}
	api, calls := read.Resources["Api"], read.Resources["Calls"]
	if api.Type != "AWS::Serverless::Api" || !slices.Equal(api.Properties.BinaryMediaTypes, []string{"*/*"}) {
		t.Errorf("the gateway is %+v", api)
	}
	for _, kind := range []string{"DEFAULT_4XX", "DEFAULT_5XX"} {
		if status := api.Properties.GatewayResponses[kind].StatusCode; status != 500 {
			t.Errorf("the gateway answers %s with %d", kind, status)
		}
	}
	if len(api.Properties.GatewayResponses) != 2 {
		t.Error("another answer of the gateway takes precedence over the default")
	}
	if n := calls.Properties.Timeout; n < 5 || n > 25 {
		t.Errorf("a call ends after %d s", n)
	}
	if calls.Properties.Reserved == 0 || read.Resources["Books"].Properties.Reserved != 1 {
		t.Error("the calls need a reserved concurrency, and the books one of 1")
	}
	for name, r := range read.Resources {
		if r.Properties.FunctionURLConfig != nil || r.Type == "AWS::Serverless::HttpApi" {
			t.Errorf("%s answers for itself, and cannot answer 500", name)
		}
	}
}

// The functions get each variable that they read.
func TestTheTemplateSetsEachVariable(t *testing.T) {
	text, n := string(must(os.ReadFile("template.yaml"))(t)), 0
	for _, file := range []string{"main.go", "setup.go", "books.go"} {
		for _, name := range regexp.MustCompile(`"(RAMP_\w+)"`).FindAllSubmatch(must(os.ReadFile(file))(t), -1) {
			if n++; !strings.Contains(text, string(name[1])+": ") {
				t.Errorf("no function gets %s", name[1])
			}
		}
	}
	if n < 10 {
		t.Errorf("%d variables", n)
	}
}

// A comma in a description, or a property that SAM does not take there, ends a deployment before it begins.
func TestSAMUnderstandsTheTemplate(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes longer than -short allows")
	}
	lint, err := exec.LookPath("cfn-lint")
	if err != nil {
		t.Skip("*** NOT TESTED: cfn-lint is not installed ***")
	}
	if said, err := exec.CommandContext(t.Context(), lint, "template.yaml").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, said)
	}
}

// The tables are those of the store.
func TestTheTemplateHasTheTables(t *testing.T) {
	var read template
	if err := yaml.Unmarshal(must(os.ReadFile("template.yaml"))(t), &read); err != nil {
		t.Fatal(err)
	}
	for i, table := range (&dynamostore.Store{}).Tables() {
		got := read.Resources[[]string{"Orders", "Balances"}[i]].Properties
		want := []string{ofStore(table.KeySchema)}
		for _, index := range table.GlobalSecondaryIndexes {
			want = append(want, *index.IndexName+": "+ofStore(index.KeySchema))
		}
		have := []string{got.KeySchema.String()}
		for _, index := range got.Indexes {
			have = append(have, index.IndexName+": "+index.KeySchema.String())
		}
		if !slices.Equal(want, have) {
			t.Errorf("%q instead of %q", have, want)
		}
		if len(got.AttributeDefinitions) != len(table.AttributeDefinitions) {
			t.Errorf("%d attributes instead of %d", len(got.AttributeDefinitions), len(table.AttributeDefinitions))
		}
	}
}

func (k keySchema) String() string {
	var keys []string
	for _, key := range k {
		keys = append(keys, fmt.Sprint(key.AttributeName, " ", key.KeyType))
	}
	return strings.Join(keys, ", ")
}

func ofStore(schema []types.KeySchemaElement) string {
	var keys []string
	for _, key := range schema {
		keys = append(keys, fmt.Sprint(*key.AttributeName, " ", key.KeyType))
	}
	return strings.Join(keys, ", ")
}
