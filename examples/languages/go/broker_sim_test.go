package shop

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
)

var kafka struct {
	BootstrapServers string `json:"bootstrap_servers"`
	Control          string `json:"control"`
}

// TestMain runs all tests on one cluster: that of `broker-sim chaos -- go test`, or one that it starts.
func TestMain(m *testing.M) {
	kafka.BootstrapServers, kafka.Control = os.Getenv("KAFKA_BOOTSTRAP_SERVERS"), os.Getenv("BROKER_SIM_CONTROL")
	if kafka.Control != "" {
		os.Exit(m.Run())
	}
	command := exec.Command("broker-sim", "run", "--control-port", "0")
	command.Stderr = os.Stderr
	output, _ := command.StdoutPipe()
	if err := command.Start(); err != nil {
		panic(err)
	}
	ready, _ := bufio.NewReader(output).ReadBytes('\n')
	if err := json.Unmarshal(ready, &kafka); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = command.Process.Signal(os.Interrupt)
	_ = command.Wait()
	os.Exit(code)
}

// fresh brings the cluster back to how it was started; call it first in a test.
func fresh(t *testing.T) {
	t.Helper()
	if os.Getenv("BROKER_SIM_CONTROL") == "" { // under chaos the faults go on
		request(t, "POST", "/reset", "")
	}
}

// request calls a verb of the control port and returns the answer.
func request(t *testing.T, method, path, body string) map[string]any {
	t.Helper()
	call, _ := http.NewRequest(method, kafka.Control+path, strings.NewReader(body))
	call.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(call)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	answer := map[string]any{}
	if err := json.Unmarshal(text, &answer); err != nil || response.StatusCode != http.StatusOK {
		t.Fatal(fmt.Sprint(path, ": ", string(text)))
	}
	return answer
}
