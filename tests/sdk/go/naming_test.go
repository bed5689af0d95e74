package naming

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/nacos-group/nacos-sdk-go/v2/common/constant"
	"github.com/nacos-group/nacos-sdk-go/v2/model"
	"github.com/nacos-group/nacos-sdk-go/v2/vo"
)

// query reads without a subscription: a client that has not subscribed asks the server, through a client of its own.
func (c client) query(service string, clusters ...string) []model.Instance {
	c.t.Helper()
	found, err := c.another().SelectAllInstances(vo.SelectAllInstancesParam{ServiceName: service, Clusters: clusters})
	if err != nil {
		c.t.Fatal(err)
	}
	return found
}

func (c client) expect(service string, wanted ...uint64) {
	c.t.Helper()
	if found := ports(c.query(service)); !slices.Equal(found, wanted) {
		c.t.Fatalf("ports %v, wanted %v", found, wanted)
	}
}

func TestAnInstanceIsReadBackAsRegistered(t *testing.T) {
	t.Parallel()
	c := connect(t, unique("ns"))
	sent := instance("svc", 8080)
	sent.ClusterName, sent.Weight = "c1", 2.5
	sent.Metadata = map[string]string{"zone": "a", "text": "ä=&+ \"quoted\" 北京"}
	c.register(sent)
	found := c.query("svc")
	if len(found) != 1 {
		t.Fatalf("%+v", found)
	}
	got := found[0]
	if got.Ip != ip || got.Port != 8080 || got.ClusterName != "c1" || got.Weight != 2.5 || !maps.Equal(got.Metadata, sent.Metadata) {
		t.Errorf("%+v", got)
	}
	if got.ServiceName != "DEFAULT_GROUP@@svc" || !got.Healthy || !got.Enable || !got.Ephemeral || got.InstanceId == "" {
		t.Errorf("%+v", got)
	}
}

func TestAnAcknowledgedRegistrationIsReadAtOnce(t *testing.T) {
	t.Parallel()
	c := connect(t, unique("ns"))
	for range 3 {
		c.register(instance("svc", 1001))
		c.expect("svc", 1001)
		c.deregister("svc", 1001)
		if found := c.direct("GET", "/instance/list", map[string]string{"serviceName": "svc"}); !strings.Contains(found, `"hosts":[]`) {
			t.Fatal(found)
		}
	}
}

func TestGroupsAndClustersSelect(t *testing.T) {
	t.Parallel()
	c := connect(t, unique("ns"))
	other := c.another()
	for client, sent := range map[client]vo.RegisterInstanceParam{
		c:     {Port: 1001, ClusterName: "c1", GroupName: "g1"},
		other: {Port: 1002, ClusterName: "c2", GroupName: "g1"},
	} {
		sent.ServiceName, sent.Ip, sent.Weight, sent.Enable, sent.Healthy, sent.Ephemeral = "svc", ip, 1, true, true, true
		client.register(sent)
	}
	reader := c.another()
	for _, row := range []struct {
		group    string
		clusters []string
		wanted   []uint64
	}{
		{"g1", nil, []uint64{1001, 1002}},
		{"g1", []string{"c2"}, []uint64{1002}},
		{"g1", []string{"c1", "c2"}, []uint64{1001, 1002}},
	} {
		found, err := reader.SelectAllInstances(vo.SelectAllInstancesParam{ServiceName: "svc", GroupName: row.group, Clusters: row.clusters})
		if err != nil || !slices.Equal(ports(found), row.wanted) {
			t.Errorf("%+v: %v, %v", row, found, err)
		}
	}
	one, err := reader.SelectOneHealthyInstance(vo.SelectOneHealthInstanceParam{ServiceName: "svc", GroupName: "g1", Clusters: []string{"c2"}})
	if err != nil || one.Port != 1002 {
		t.Errorf("%+v, %v", one, err)
	}
}

func TestAListenerIsToldAddedChangedAndRemoved(t *testing.T) {
	t.Parallel()
	c := connect(t, unique("ns"))
	other := c.another()
	c.register(instance("svc", 1001))
	told := c.another().subscribe("svc")
	told.waitForPorts(1001)
	other.register(instance("svc", 1002))
	told.waitForPorts(1001, 1002)
	changed := instance("svc", 1001)
	changed.Metadata = map[string]string{"v": "2"}
	c.register(changed)
	told.waitFor(func(last []model.Instance) bool {
		return slices.ContainsFunc(last, func(one model.Instance) bool { return one.Metadata["v"] == "2" })
	}, "changed metadata")
	c.deregister("svc", 1001)
	told.waitForPorts(1002)
	other.deregister("svc", 1002)
	told.waitForPorts()
}

func TestASubscriptionToAClusterIsToldOfThatClusterAlone(t *testing.T) {
	t.Parallel()
	c := connect(t, unique("ns"))
	other := c.another()
	one := instance("svc", 1001)
	one.ClusterName = "c1"
	c.register(one)
	told := c.another().subscribe("svc", "c1")
	told.waitForPorts(1001)
	two := instance("svc", 2001)
	two.ClusterName = "c2"
	other.register(two)
	one.Metadata = map[string]string{"v": "2"}
	c.register(one)
	told.waitFor(func(last []model.Instance) bool { return len(last) > 0 && last[0].Metadata["v"] == "2" }, "changed metadata")
	c.deregister("svc", 1001)
	told.waitForPorts()
	one.Port = 1003
	c.register(one)
	told.waitForPorts(1003)
	for _, event := range told.heard() {
		for _, got := range event {
			if got.ClusterName != "c1" {
				t.Errorf("told of %+v", got)
			}
		}
	}
}

func TestAnUnsubscribedListenerHearsNothingMore(t *testing.T) {
	t.Parallel()
	c := connect(t, unique("ns"))
	reader := c.another()
	c.register(instance("svc", 1001))
	gone := reader.subscribe("svc")
	gone.waitForPorts(1001)
	if err := reader.Unsubscribe(gone.param); err != nil {
		t.Fatal(err)
	}
	heard := len(gone.heard())
	c.register(instance("svc", 1002))
	c.another().subscribe("svc").waitForPorts(1002)
	if now := len(gone.heard()); now != heard {
		t.Errorf("%d events after it had unsubscribed", now-heard)
	}
}

func TestTheServerForgetsASubscriberThatUnsubscribes(t *testing.T) {
	t.Parallel()
	c := connect(t, unique("ns"))
	subscribers := func(count int) {
		t.Helper()
		read := func() string { return c.direct("GET", "/service/subscribers", map[string]string{"serviceName": "svc"}) }
		wanted := fmt.Sprintf(`"count":%d`, count)
		until(t, read, func(list string) bool { return strings.Contains(list, wanted) }, wanted)
	}
	told, stays := c.subscribe("svc"), c.another().subscribe("svc")
	subscribers(2)
	if err := c.Unsubscribe(told.param); err != nil {
		t.Fatal(err)
	}
	subscribers(1)
	c.register(instance("svc", 1001))
	stays.waitForPorts(1001)
}

func TestASubscribedQueryFollowsChanges(t *testing.T) {
	t.Parallel()
	c := connect(t, unique("ns"))
	reader := c.another()
	read := func() []uint64 {
		found, _ := reader.SelectAllInstances(vo.SelectAllInstancesParam{ServiceName: "svc"})
		return ports(found)
	}
	c.register(instance("svc", 1001))
	if found := read(); !slices.Equal(found, []uint64{1001}) {
		t.Fatal(found)
	}
	c.register(instance("svc", 1002))
	until(t, read, func(found []uint64) bool { return slices.Equal(found, []uint64{1002}) }, "the change arrives")
	c.deregister("svc", 1002)
	until(t, read, func(found []uint64) bool { return len(found) == 0 }, "the removal arrives")
}

func TestABatchReplacesWhatTheClientHadRegistered(t *testing.T) {
	t.Parallel()
	c := connect(t, unique("ns"))
	other := c.another()
	batch := func(ports ...uint64) {
		t.Helper()
		param := vo.BatchRegisterInstanceParam{ServiceName: "svc", GroupName: group}
		for _, port := range ports {
			param.Instances = append(param.Instances, instance("svc", port))
		}
		if done, err := c.BatchRegisterInstance(param); !done || err != nil {
			t.Fatal(done, err)
		}
	}
	told := c.another().subscribe("svc")
	other.register(instance("svc", 2001))
	c.register(instance("svc", 1001))
	batch(1002, 1003)
	c.expect("svc", 1002, 1003, 2001)
	batch(1003, 1004)
	c.expect("svc", 1003, 1004, 2001)
	told.waitForPorts(1003, 1004, 2001)
}

func TestADisabledInstanceIsWithheldUntilItIsEnabled(t *testing.T) {
	t.Parallel()
	c := connect(t, unique("ns"))
	c.register(instance("svc", 1001))
	told := c.another().subscribe("svc")
	told.waitForPorts(1001)
	key := map[string]string{"serviceName": "svc", "ip": ip, "port": "1001", "ephemeral": "true", "enabled": "false"}
	c.direct("PUT", "/instance", key)
	told.waitForPorts()
	key["enabled"] = "true"
	c.direct("PUT", "/instance", key)
	told.waitForPorts(1001)
}

func TestWhatOthersRegisterByHTTPIsToldToo(t *testing.T) {
	t.Parallel()
	c := connect(t, unique("ns"))
	told := c.subscribe("svc")
	key := map[string]string{"serviceName": "svc", "ip": ip, "port": "1001"}
	c.direct("POST", "/instance", key)
	told.waitForPorts(1001)
	c.direct("DELETE", "/instance", key)
	told.waitForPorts()
}

func TestTheServiceListPages(t *testing.T) {
	t.Parallel()
	c := connect(t, unique("ns"))
	for _, name := range []string{"a", "b", "c"} {
		c.register(instance(name, 1001))
	}
	other := instance("d", 1001)
	other.GroupName = "g1"
	c.register(other)
	for _, row := range []struct {
		page, size uint32
		group      string
		count      int64
		names      []string
	}{
		{1, 2, group, 3, []string{"a", "b"}},
		{2, 2, group, 3, []string{"c"}},
		{1, 10, "g1", 1, []string{"d"}},
	} {
		list, err := c.GetAllServicesInfo(vo.GetAllServiceInfoParam{NameSpace: c.namespace, GroupName: row.group, PageNo: row.page, PageSize: row.size})
		if err != nil || list.Count != row.count || !slices.Equal(list.Doms, row.names) {
			t.Errorf("%+v: %+v, %v", row, list, err)
		}
	}
}

func TestAPersistentRegistrationIsRefusedClearly(t *testing.T) {
	t.Parallel()
	c := connect(t, unique("ns"))
	persistent := instance("svc", 1001)
	persistent.Ephemeral = false
	// The SDK makes this one call by HTTP, and hands on no more of the answer than its code.
	if done, err := c.RegisterInstance(persistent); done || err == nil || !strings.Contains(err.Error(), "501") {
		t.Errorf("%v, %v", done, err)
	}
	c.register(instance("svc", 1002))
	c.expect("svc", 1002)
}

func TestAClientWithAPasswordWorksThoughNobodyAsks(t *testing.T) {
	t.Parallel()
	c := connect(t, unique("ns"), constant.WithUsername("somebody"), constant.WithPassword("secret+word & more"))
	told := c.subscribe("svc")
	c.register(instance("svc", 1001))
	told.waitForPorts(1001)
}

func TestTheServerIsHealthy(t *testing.T) {
	t.Parallel()
	c := connect(t, unique("ns"))
	until(t, c.ServerHealthy, func(healthy bool) bool { return healthy }, "the server is healthy")
}

func TestTheEndOfAClientTakesItsInstances(t *testing.T) {
	t.Parallel()
	c := connect(t, unique("ns"))
	told := c.subscribe("svc")
	ending := c.another()
	ending.register(instance("svc", 1001))
	told.waitForPorts(1001)
	ending.CloseClient()
	told.waitForPorts()
}
