// Package naming tests the Go SDK of Nacos against a running server.
package naming

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nacos-group/nacos-sdk-go/v2/clients"
	"github.com/nacos-group/nacos-sdk-go/v2/clients/naming_client"
	"github.com/nacos-group/nacos-sdk-go/v2/common/constant"
	"github.com/nacos-group/nacos-sdk-go/v2/model"
	"github.com/nacos-group/nacos-sdk-go/v2/vo"
)

const (
	ip    = "10.1.2.3"
	group = "DEFAULT_GROUP"
	// Far above what anything here needs on a loaded machine of two cores; only a failure ever waits that long.
	deadline = 15 * time.Second
)

func unique(kind string) string {
	return kind + "-" + uuid.NewString()[:12]
}

type client struct {
	naming_client.INamingClient
	t         *testing.T
	namespace string
}

// connect makes a client; by default the SDK ignores an empty list, here it takes it.
func connect(t *testing.T, namespace string, options ...constant.ClientOption) client {
	t.Helper()
	host, port, err := net.SplitHostPort(os.Getenv("NOMINA_HTTP"))
	if err != nil {
		t.Fatalf("NOMINA_HTTP is not set, run this through tests/run: %v", err)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	options = append([]constant.ClientOption{
		constant.WithNamespaceId(namespace),
		constant.WithNotLoadCacheAtStart(true),
		constant.WithUpdateCacheWhenEmpty(true),
		constant.WithLogDir(t.TempDir()),
		constant.WithCacheDir(t.TempDir()),
		constant.WithLogLevel("error"),
	}, options...)
	naming, err := clients.NewNamingClient(vo.NacosClientParam{
		ClientConfig:  constant.NewClientConfig(options...),
		ServerConfigs: []constant.ServerConfig{*constant.NewServerConfig(host, number)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(naming.CloseClient)
	return client{naming, t, namespace}
}

func (c client) another() client {
	c.t.Helper()
	return connect(c.t, c.namespace)
}

func instance(service string, port uint64) vo.RegisterInstanceParam {
	return vo.RegisterInstanceParam{ServiceName: service, Ip: ip, Port: port, Weight: 1, Enable: true, Healthy: true, Ephemeral: true}
}

func (c client) register(what vo.RegisterInstanceParam) {
	c.t.Helper()
	if done, err := c.RegisterInstance(what); !done || err != nil {
		c.t.Fatalf("register %+v: %v, %v", what, done, err)
	}
}

func (c client) deregister(service string, port uint64) {
	c.t.Helper()
	done, err := c.DeregisterInstance(vo.DeregisterInstanceParam{ServiceName: service, Ip: ip, Port: port, Ephemeral: true})
	if !done || err != nil {
		c.t.Fatalf("deregister %s %d: %v, %v", service, port, done, err)
	}
}

func ports(instances []model.Instance) []uint64 {
	found := make([]uint64, 0, len(instances))
	for _, one := range instances {
		found = append(found, one.Port)
	}
	slices.Sort(found)
	return found
}

// until calls read until accept takes its value, and returns that value; it fails with the last one after the deadline.
func until[T any](t *testing.T, read func() T, accept func(T) bool, what string) T {
	t.Helper()
	end := time.Now().Add(deadline)
	for {
		value := read()
		if accept(value) {
			return value
		}
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s; the last value: %+v", deadline, what, value)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// listener keeps what a subscription is told.
type listener struct {
	t      *testing.T
	lock   sync.Mutex
	events [][]model.Instance
	param  *vo.SubscribeParam
}

func (c client) subscribe(service string, clusters ...string) *listener {
	c.t.Helper()
	l := &listener{t: c.t}
	l.param = &vo.SubscribeParam{ServiceName: service, GroupName: group, Clusters: clusters, SubscribeCallback: func(instances []model.Instance, err error) {
		l.lock.Lock()
		defer l.lock.Unlock()
		// The SDK says that a list is empty by an error.
		if err != nil && len(instances) > 0 {
			l.t.Errorf("the listener was told %v", err)
		}
		l.events = append(l.events, instances)
	}}
	if err := c.Subscribe(l.param); err != nil {
		c.t.Fatal(err)
	}
	return l
}

func (l *listener) heard() [][]model.Instance {
	l.lock.Lock()
	defer l.lock.Unlock()
	return slices.Clone(l.events)
}

func (l *listener) waitFor(accept func([]model.Instance) bool, what string) []model.Instance {
	l.t.Helper()
	last := func() []model.Instance {
		if events := l.heard(); len(events) > 0 {
			return events[len(events)-1]
		}
		return []model.Instance{{Ip: "nothing heard"}}
	}
	return until(l.t, last, accept, what)
}

func (l *listener) waitForPorts(wanted ...uint64) []model.Instance {
	l.t.Helper()
	return l.waitFor(func(last []model.Instance) bool { return slices.Equal(ports(last), wanted) }, fmt.Sprintf("the ports are %v", wanted))
}

// direct calls the server's HTTP API, past the SDK.
func (c client) direct(method, path string, parameters map[string]string) string {
	c.t.Helper()
	query := url.Values{"namespaceId": {c.namespace}}
	for name, value := range parameters {
		query.Set(name, value)
	}
	request, err := http.NewRequest(method, "http://"+os.Getenv("NOMINA_HTTP")+"/nacos/v1/ns"+path+"?"+query.Encode(), nil)
	if err != nil {
		c.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		c.t.Fatalf("%s %s: %d %s %v", method, path, answer.StatusCode, body, err)
	}
	return string(body)
}
